"""The loop on Kubernetes: the API server keeps the jobs, one leader turns.

As on one machine a request is only a key, everything is read again, and the status is written once per
turn, here with the version it was read at: whoever wrote in between is never overwritten, the turn is
just taken again. Events are recorded only after their status was accepted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from oarsman import names
from oarsman.control.health import HealthServer, Reachable, Turns, lease_is_renewed
from oarsman.control.metrics import Metrics
from oarsman.control.operator_settings import OperatorSettings
from oarsman.control.queue import WorkQueue
from oarsman.control.turns import in_steps, so_far
from oarsman.engines.contract import Assignment
from oarsman.engines.kube import views
from oarsman.engines.kube.caches import Caches
from oarsman.engines.kube.client import Access, Kube, NotFound
from oarsman.engines.kube.client import resources as kinds
from oarsman.engines.kube.engine import KubeEngine
from oarsman.engines.kube.events import EventRecorder, ObjectRef
from oarsman.engines.kube.lease import Election
from oarsman.engines.kube.objects.common import KubeOptions
from oarsman.engines.kube.versions import document_of
from oarsman.errors import ManifestError, OarsmanError, RetryableError
from oarsman.job.job import Job
from oarsman.job.state import Status
from oarsman.manifest import job_from_document, salvaged
from oarsman.plan.actions import DeleteJob, Plan
from oarsman.plan.reconcile import ours, reconcile, reject
from oarsman.status.codec import from_wire, to_wire

log = logging.getLogger("oarsman")
_CONCURRENT_REQUESTS: Final = 64
_REST: Final = 0.1  # seconds between two turns of a job: pods change in crowds, and a crowd is looked at in one turn


@dataclass(frozen=True, slots=True)
class _KnownJob:
    """The last valid form of a job, and what it was read from."""

    version: tuple[str, int, str]  # uid, generation, annotations
    job: Job


class Operator:
    def __init__(
        self,
        kube: Kube,
        settings: OperatorSettings,
        metrics: Metrics,
        turns: Turns,
        *,
        may_act: Callable[[], bool] = lambda: True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._may_act = may_act
        self._kube = kube
        self._settings = settings
        self._metrics = metrics
        self._turns = turns
        self._now = now
        self.caches = Caches(kube, settings.namespaces)
        self.engine = KubeEngine(kube, self.caches, _options(settings))
        self._recorder = EventRecorder(kube, instance=socket.gethostname())
        self._known: dict[str, _KnownJob] = {}
        self.queue = WorkQueue(ahead=self._known.__contains__)  # a flood of new jobs must not delay news of the others
        self._states: dict[str, str] = {}
        self._stopping = False
        metrics.watch_queue(lambda: len(self.queue))

    async def run(self) -> None:
        """Until cancelled; a turn that is under way is finished first, if it does not take too long."""
        await self.engine.start(self.queue.add)
        workers = [asyncio.create_task(self._work()) for _ in range(max(1, self._settings.threadiness))]
        try:
            await asyncio.gather(*workers, self.caches.follow())
        finally:
            self._stopping = True
            await _finish(workers, self._settings.shutdown_seconds)
            await self.engine.close()

    async def _work(self) -> None:
        while not self._stopping:
            key = await self.queue.take()
            turn = asyncio.ensure_future(self._timed(key))
            try:
                await asyncio.shield(turn)
            except asyncio.CancelledError:
                await asyncio.wait([turn], timeout=self._settings.shutdown_seconds)
                raise
            finally:
                self.queue.done(key, rest=_REST)

    async def _timed(self, key: str) -> None:
        started, result = time.monotonic(), "ok"
        try:
            with self._turns.turn(key):
                await self.turn(key)
            self.queue.succeeded(key)
        except (RetryableError, OSError) as error:
            result = "retry"
            delay = self.queue.retry(key)
            log.log(logging.INFO if delay < 1 else logging.WARNING, "%s: %s; again in %.1f s", key, error, delay)
        except Exception:
            result = "error"
            log.exception("%s: a turn failed; again in %.1f s", key, self.queue.retry(key))
        self._metrics.turn(result, time.monotonic() - started)

    # -- one turn -------------------------------------------------------------------------------------
    async def turn(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        stored = self.caches.mpijobs.get(namespace, name)
        if stored is None:
            await self._forget(key)
            return
        if stored.metadata.deletion_timestamp is not None:
            return  # what it owns goes with it
        status = from_wire(stored.status)
        try:
            job = self._job_of(key, stored)
        except ManifestError as error:
            found = self._last_valid(key, stored, status)
            if found is None:
                rejected = reject(status, error.problems, self._now(), generation=stored.metadata.generation)
                await self._write(key, stored, None, rejected)
                return
            job = found
        job, taken_away = _still_ours(job, status)
        if not ours(job):
            return
        assignment = Assignment(
            job=job,
            status=status,
            environment={},
            folder=Path("/"),
            stop_requested=job.annotation(names.ANNOTATION_STOP) == "true",
        )
        observed = await self.engine.observe(assignment)
        if taken_away:
            observed = replace(observed, outdated=(*observed.outdated, "spec.runPolicy.managedBy"))
        plan = reconcile(job, observed, self._now())
        trouble = await self._act(assignment, plan)
        if trouble is not None and not plan.status.finished:
            plan = so_far(status, plan, trouble, self._now())
        if not any(isinstance(action, DeleteJob) for action in plan.actions):
            await self._write(key, stored, job, plan)
        if trouble is not None:
            raise trouble
        if plan.look_again_in is not None:
            self.queue.add_after(key, plan.look_again_in.total_seconds())

    async def _act(self, assignment: Assignment, plan: Plan) -> OarsmanError | None:
        """Carry the plan out as far as it goes. What is left undone is planned again."""
        for step in in_steps(plan.actions):
            self._check_office()
            outcomes = await asyncio.gather(
                *(self.engine.apply(assignment, action) for action in step), return_exceptions=True
            )
            for outcome in outcomes:
                if isinstance(outcome, RetryableError):
                    return outcome
                if isinstance(outcome, BaseException):
                    raise outcome
        return None

    async def _write(self, key: str, stored: views.MPIJobView, job: Job | None, plan: Plan) -> None:
        """One write per turn, and none if nothing became different."""
        before = stored.status or {}
        wire = to_wire(plan.status)
        if job is not None:
            wire |= {"writtenAs": job.api_version.value}
            wire["replicaStatuses"]["Worker"]["selector"] = _selector(job)
        if wire != before:
            self._check_office()
            meta = stored.metadata
            body = {
                "apiVersion": kinds.MPIJOBS.api_version,
                "kind": names.KIND,
                "metadata": {"name": meta.name, "namespace": meta.namespace, "resourceVersion": meta.resource_version},
                "spec": stored.spec,
                "status": wire,
            }
            try:
                written = await self._kube.replace(
                    kinds.MPIJOBS, meta.name, body, meta.namespace, subresource="status", view=views.MPIJobView
                )
            except NotFound:
                return
            self.caches.mpijobs.put(written)
            self._metrics.status_written()
        self._count(key, from_wire(before), plan.status, job)
        for event in plan.events:
            await self._recorder.record(_reference(stored, job), event.severity.value, event.reason, event.message)

    def _check_office(self) -> None:
        """A leader that could not renew its lease must not act any more, whatever turn it is in."""
        if not self._may_act():
            raise RetryableError("the lease was lost in the middle of a turn")

    # -- what is known of a job ------------------------------------------------------------------------
    def _job_of(self, key: str, stored: views.MPIJobView) -> Job:
        meta = stored.metadata
        version = (meta.uid, meta.generation, repr(sorted(meta.annotations.items())))
        known = self._known.get(key)
        if known is not None and known.version == version:
            return known.job
        job = job_from_document(document_of(stored.document()))
        self._known[key] = _KnownJob(version, job)
        return job

    def _last_valid(self, key: str, stored: views.MPIJobView, status: Status) -> Job | None:
        """A job that has begun is looked after although an edit, or a newer release, makes it invalid."""
        known = self._known.get(key)
        if known is not None and known.job.uid == stored.metadata.uid:
            return known.job
        begun = status.start_time is not None or bool(status.attempts)
        return salvaged(document_of(stored.document())) if begun else None

    async def _forget(self, key: str) -> None:
        known = self._known.pop(key, None)
        if self._states.pop(key, None) is not None:
            self._metrics.jobs(Counter(self._states.values()))
        if known is not None:
            self._metrics.job_gone(known.job.namespace, known.job.launcher_host)
            await self.engine.forget(known.job.uid)

    def _count(self, key: str, before: Status, after: Status, job: Job | None) -> None:
        if before.condition(names.CREATED) is None and after.condition(names.CREATED) is not None:
            self._metrics.job_created()
        if after.finished and not before.finished:
            (self._metrics.job_succeeded if after.is_true(names.SUCCEEDED) else self._metrics.job_failed)()
        if job is not None and after.attempts:
            self._metrics.launcher_seen(job.namespace, job.launcher_host)
        launched = after.timeline.get("launched")
        if job is not None and job.created_at and launched and "launched" not in before.timeline:
            self._metrics.started_after((launched - job.created_at).total_seconds())
        if self._states.get(key) != after.phase:
            self._states[key] = after.phase
            self._metrics.jobs(Counter(self._states.values()))


def _still_ours(job: Job, status: Status) -> tuple[Job, bool]:
    """managedBy cannot be changed once we have taken a job up: it would be run by two."""
    if ours(job) or status.condition(names.CREATED) is None or status.observed_generation == 0:
        return job, False
    return replace(job, run_policy=replace(job.run_policy, managed_by=None)), True


def _selector(job: Job) -> str:
    return f"{names.LABEL_JOB}={job.name},{names.LABEL_ROLE}=worker"


def _reference(stored: views.MPIJobView, job: Job | None) -> ObjectRef:
    meta = stored.metadata
    version = job.api_version.value if job is not None else kinds.MPIJOBS.api_version
    return ObjectRef(api_version=version, kind=names.KIND, name=meta.name, namespace=meta.namespace, uid=meta.uid)


def _options(settings: OperatorSettings) -> KubeOptions:
    defaults = KubeOptions()
    return KubeOptions(
        cluster_domain=settings.cluster_domain,
        kubectl_image=settings.kubectl_delivery_image or defaults.kubectl_image,
        gang_scheduler=settings.gang_scheduling,
        barrier_seconds=int(settings.start_barrier_seconds),
    )


async def _finish(tasks: list[asyncio.Task[Any]], seconds: float) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=seconds + 1)


async def run(settings: OperatorSettings, access: Access) -> None:
    """The whole process: health and metrics at once, turns while this replica leads."""
    metrics, turns, reachable = Metrics(), Turns(), Reachable()

    def request(verb: str, plural: str, status: int, seconds: float) -> None:
        metrics.request(verb, plural, status, seconds)
        reachable.request(verb, plural, status, seconds)

    # The lease has a client of its own: however busy the jobs are, it is renewed.
    async with (
        Kube(access, rate=settings.rate, concurrency=_CONCURRENT_REQUESTS, observe=request) as kube,
        Kube(access, observe=request) as lease_kube,
    ):
        await _require_definition(kube)
        election = Election(
            lease_kube,
            namespace=settings.lock_namespace,
            name=settings.lease_name,
            duration=settings.lease_seconds,
            renew_deadline=settings.renew_deadline_seconds,
            retry=settings.retry_seconds,
            annotations={names.ANNOTATION_WATCHES: ",".join(settings.namespaces)},
        )
        may_act = (lambda: election.leading) if settings.leader_elect else (lambda: True)
        office = _Office(lambda: Operator(kube, settings, metrics, turns, may_act=may_act), metrics)
        health = HealthServer(
            alive={"lease": lease_is_renewed(election), "turns": turns},
            ready={"api": reachable, "caches": office.trouble},
            metrics=metrics,
            health_port=settings.health_port,
            monitoring_port=settings.monitoring_port,
            address=settings.bind_address,
        )
        await health.start()
        try:
            await (election.run(office.lead) if settings.leader_elect else office.lead())
        finally:
            await health.stop()


class _Office:
    """What a leader does, and whether it can. A replica that only waits is ready too."""

    def __init__(self, make: Callable[[], Operator], metrics: Metrics) -> None:
        self._make = make
        self._metrics = metrics
        self._operator: Operator | None = None

    async def lead(self) -> None:
        self._operator = self._make()
        self._metrics.leading(True)
        try:
            await self._operator.run()
        finally:
            self._metrics.leading(False)
            self._operator = None

    def trouble(self) -> str | None:
        if self._operator is None:
            return None
        caches = self._operator.caches
        return caches.trouble or (None if caches.synced else "not everything has been read yet")


async def _require_definition(kube: Kube) -> None:
    """Without the CRD there is nothing to do; waiting for it is kinder than restarting for ever."""
    told = False
    while not await _answered(lambda: kube.has(kinds.MPIJOBS)):
        if not told:
            log.warning("the cluster does not know MPIJobs yet; waiting for the definition mpijobs.kubeflow.org")
        told = True
        await asyncio.sleep(5)


async def _answered(ask: Callable[[], Awaitable[bool]]) -> bool:
    with contextlib.suppress(RetryableError):
        return await ask()
    return False
