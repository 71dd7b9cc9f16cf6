"""One turn of the loop: read everything again, plan, act, write the status once.

A request is only a key. Whatever was lost on the way (an event, a turn, the whole supervisor), the
next turn finds out from the world itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from oarsman import names
from oarsman.control.admission import AdmissionControl
from oarsman.control.environments import NOTHING, Attaching
from oarsman.control.queue import WorkQueue
from oarsman.control.turns import so_far
from oarsman.engines.contract import Assignment, Engine
from oarsman.errors import ManifestError, OarsmanError, RetryableError
from oarsman.job.job import Job
from oarsman.job.observed import Observed
from oarsman.job.state import Status
from oarsman.manifest import job_from_document
from oarsman.plan.actions import DeleteJob, Plan
from oarsman.plan.reconcile import ours, reconcile, reject
from oarsman.status.codec import from_wire, to_wire
from oarsman.store.jobs import JobStore, StoredJob

log = logging.getLogger("oarsman")
_WORKERS = 8
_BUILD_SECONDS = 1.0  # between two looks at an environment that is being built


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class EngineSite:
    """Where jobs run: an engine, and the room it has."""

    engine: Engine
    admission_control: AdmissionControl


class Loop:
    def __init__(
        self,
        store: JobStore,
        engine: Engine,
        admission_control: AdmissionControl,
        queue: WorkQueue,
        *,
        changed: Callable[[str], None],
        now: Callable[[], datetime] = utc_now,
        attaching: Attaching | None = None,
        others: Mapping[str, EngineSite] | None = None,
    ) -> None:
        """engine: where jobs run that say nothing; others: where those run that name an engine."""
        self._store = store
        self._home = EngineSite(engine, admission_control)
        self._others = others or {}
        self.queue = queue
        self._changed = changed
        self._now = now
        self._attaching = attaching
        self._jobs: dict[str, Job] = {}  # the last valid form of each job we work on

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            uid = await self.queue.take()
            try:
                await self.turn(uid)
                self.queue.succeeded(uid)
            except (RetryableError, OSError) as error:
                delay = self.queue.retry(uid)
                log.warning("%s: %s; again in %.1f s", uid, error, delay)
            except Exception:
                delay = self.queue.retry(uid)
                log.exception("%s: a turn failed; again in %.1f s", uid, delay)
            finally:
                self.queue.done(uid)

    async def adopt(self, stored: StoredJob) -> None:
        """Take up a job that an earlier supervisor left running."""
        job = self._job_of(stored)
        if job is None:
            return
        status = from_wire(stored.status)
        site = self._site(stored)
        if status.start_time is not None and not status.finished:
            site.admission_control.hold(job)
        await site.engine.adopt(self._assignment(stored, job, status))

    def _site(self, stored: StoredJob) -> EngineSite:
        return self._others.get(stored.engine, self._home)

    async def turn(self, uid: str) -> None:
        stored = self._store.by_uid(uid)
        if stored is None:
            self._jobs.pop(uid, None)
            for site in (self._home, *self._others.values()):
                site.admission_control.release(uid)
                await site.engine.forget(uid)
            return
        status = from_wire(stored.status)
        try:
            job = self._job_of(stored, strict=True)
        except ManifestError as error:
            job = self._jobs.get(uid)
            if job is None and stored.deleting:
                await self._remove(stored)
                return
            if job is None:
                self._write(
                    stored, reject(status, error.problems, self._now(), generation=stored.generation), settled=True
                )
                return
        assert job is not None
        if not ours(job):
            await self._leave_alone(stored, status)
            return
        site = self._site(stored)
        assignment = await self._admitted(self._assignment(stored, job, status), site.admission_control)
        observed = await site.engine.observe(assignment)
        plan = reconcile(job, observed, self._now())
        trouble = await self._act(site.engine, assignment, plan)
        if assignment.admission.about == names.REASON_ENVIRONMENT and not plan.status.finished:
            self.queue.add_after(stored.uid, _BUILD_SECONDS)
        await self._conclude(stored, observed, plan, trouble)

    async def _admitted(self, assignment: Assignment, admission_control: AdmissionControl) -> Assignment:
        """With room, if there is some, and in its environment. Whoever waits for an environment holds no room."""
        job, attaching = assignment.job, self._attaching
        asking = not assignment.status.finished and not job.run_policy.suspend
        attached = attaching.of(job) if attaching is not None else NOTHING
        if attached.admission is not None and assignment.status.start_time is None:
            admission_control.release(job.uid)
        elif asking:
            assignment = replace(assignment, admission=admission_control.ask(job, self._now()))
            if attaching is not None and attached.tree is not None and assignment.admission.admitted:
                attached = await asyncio.to_thread(attaching.keep, job)
        if attached.admission is not None and asking:
            assignment = replace(assignment, admission=attached.admission)
        return attached.equip(assignment)

    async def _act(self, engine: Engine, assignment: Assignment, plan: Plan) -> OarsmanError | None:
        """Carry the plan out as far as it goes. What is left undone is planned again."""
        for action in plan.actions:
            try:
                await engine.apply(assignment, action)
            except RetryableError as error:
                return error
        return None

    async def _conclude(self, stored: StoredJob, observed: Observed, plan: Plan, trouble: OarsmanError | None) -> None:
        nothing_lives = not observed.workers and observed.launcher is None and observed.published_hosts is None
        over = plan.status.finished and (nothing_lives or not plan.actions) and observed.published_hosts is None
        gone = any(isinstance(action, DeleteJob) for action in plan.actions)
        if gone or (stored.deleting and over):
            await self._remove(stored)
            return
        if trouble is None or plan.status.finished:  # a verdict stands; what it could not clear away is tried again
            self._write(stored, plan, settled=over and trouble is None)
        else:
            self._write(stored, so_far(from_wire(stored.status), plan, trouble, self._now()), settled=False)
        if over or (plan.status.is_true(names.SUSPENDED) and not observed.workers and observed.launcher is None):
            self._site(stored).admission_control.release(stored.uid)
        if over:
            self._jobs.pop(stored.uid, None)
        if trouble is not None:
            raise trouble
        if plan.look_again_in is not None:
            self.queue.add_after(stored.uid, plan.look_again_in.total_seconds())

    async def _leave_alone(self, stored: StoredJob, status: Status) -> None:
        """A job of somebody else takes no room here and runs nothing; only its record is ours."""
        if stored.deleting:
            await self._remove(stored)
        else:
            self._write(stored, Plan(status=status), settled=True)

    async def _remove(self, stored: StoredJob) -> None:
        site = self._site(stored)
        site.admission_control.release(stored.uid)
        self._store.remove(stored.uid)
        await site.engine.forget(stored.uid)
        self._jobs.pop(stored.uid, None)
        self._changed(stored.uid)

    def _write(self, stored: StoredJob, plan: Plan, *, settled: bool) -> None:
        """One write per turn, and none if nothing became different. Events go with the status or not at all."""
        wire = to_wire(plan.status)
        if wire == stored.status and not plan.events and settled == stored.finished:
            return
        events = [(event.severity.value, event.reason, event.message) for event in plan.events]
        self._store.write_status(stored.uid, wire, finished=settled, events=events, now=self._now())
        self._changed(stored.uid)

    def _assignment(self, stored: StoredJob, job: Job, status: Status) -> Assignment:
        return Assignment(
            job=job,
            status=status,
            environment=stored.environment,
            folder=Path(stored.folder),
            stop_requested=stored.stop_requested or stored.deleting,
        )

    def _job_of(self, stored: StoredJob, *, strict: bool = False) -> Job | None:
        known = self._jobs.get(stored.uid)
        if known is not None and known.generation == stored.generation:
            return known
        try:
            job = job_from_document(stored.document)
        except ManifestError:
            if strict:
                raise
            return None
        job = replace(
            job,
            uid=stored.uid,
            generation=stored.generation,
            created_at=stored.created_at,
            namespace=stored.namespace,
            owner=stored.owner,
        )
        self._jobs[stored.uid] = job
        return job
