"""The operator: the process in a cluster that looks after its MPIJobs, one leader of all that run."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

from oarsman import names
from oarsman.control.health import HealthServer, Metrics, Reachable, Turns, lease_is_renewed
from oarsman.control.kube_records import KubeRecords
from oarsman.control.metrics_access import MetricsReaders
from oarsman.control.operator_settings import OperatorSettings
from oarsman.control.queue import WorkQueue
from oarsman.control.reconciler import EngineSite, Reconciler, Tried, utc_now
from oarsman.engines.contract import Assignment
from oarsman.engines.kube.caches import Caches
from oarsman.engines.kube.client import Access, Kube, on_behalf_of
from oarsman.engines.kube.client import resources as kinds
from oarsman.engines.kube.engine import KubeEngine
from oarsman.engines.kube.lease import Election
from oarsman.engines.kube.objects.common import KubeOptions
from oarsman.errors import RetryableError
from oarsman.job.job import Job

log = logging.getLogger("oarsman")
_CONCURRENT_REQUESTS: Final = 64
_BETWEEN_LOOKS: Final = 5.0  # seconds, for the definition
_REST: Final = 0.1  # seconds between two turns of a job: pods change in crowds, and a crowd is looked at in one turn


class Operator:
    """Follows everything, and acts while it leads."""

    def __init__(
        self,
        kube: Kube,
        settings: OperatorSettings,
        metrics: Metrics,
        turns: Turns,
        *,
        may_act: Callable[[], bool] = lambda: True,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._metrics = metrics
        self._turns = turns
        self.caches = Caches(kube, settings.namespaces)
        options = KubeOptions(
            cluster_domain=settings.cluster_domain,
            kubectl_image=settings.kubectl_delivery_image or KubeOptions().kubectl_image,
            gang_scheduler=settings.gang_scheduling,
            barrier_seconds=int(settings.start_barrier_seconds),
        )
        self.engine = KubeEngine(kube, self.caches, options)
        # A flood of new jobs must not delay news of the others.
        self.queue = WorkQueue(ahead=lambda key: self.reconciler.knows(key))
        self.reconciler = Reconciler(
            KubeRecords(kube, self.caches.mpijobs, metrics, self.queue.add_after),
            EngineSite(self.engine, LeftToTheScheduler()),
            self.queue,
            now=now,
            may_act=may_act,
            around=self._measured,
            workers=max(1, settings.threadiness),
            rest=_REST,
            finish_within=settings.shutdown_seconds,
        )
        metrics.queue_depth.set_function(lambda: len(self.queue))  # asked at each scrape
        self._following: asyncio.Task[None] | None = None
        self._warm = asyncio.Event()

    def follow(self) -> asyncio.Task[None]:
        """Begins before it leads: who has read everything already takes over at once."""
        if self._following is None:
            self._following = asyncio.create_task(self._follow())
        return self._following

    async def _follow(self) -> None:
        try:
            await self.engine.start(self.queue.add)
            self._warm.set()
            await self.caches.follow()
        finally:
            await self.engine.close()

    async def run(self) -> None:
        """Until cancelled; a turn that is under way is finished first, if it does not take too long."""
        following = self.follow()
        turning = asyncio.create_task(self._act())
        try:
            await asyncio.gather(turning, following)
        finally:
            turning.cancel()
            await asyncio.wait([turning])
            following.cancel()
            await asyncio.wait([following])

    async def _act(self) -> None:
        await self._warm.wait()
        await self.reconciler.run()

    async def _measured(self, key: str, turn: Tried) -> None:
        on_behalf_of.set(key)
        started = time.monotonic()
        with self._turns.turn(key):
            result = await turn(key)
        self._metrics.turn(result, time.monotonic() - started)


class LeftToTheScheduler:
    """Every job may start: the cluster itself finds its pods a place, or lets them wait."""

    def hold(self, job: Job) -> None:
        pass

    async def admit(self, assignment: Assignment, now: datetime) -> Assignment:
        return assignment

    def release(self, uid: str) -> None:
        pass


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
        await _require_definition(kube, access.server)
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
        office = _Office(Operator(kube, settings, metrics, turns, may_act=may_act), metrics)
        health = HealthServer(
            alive={"lease": lease_is_renewed(election), "turns": turns},
            ready={"api": reachable, "caches": office.trouble},
            metrics=metrics,
            health_port=settings.health_port,
            monitoring_port=settings.monitoring_port,
            readers=MetricsReaders(kube) if settings.monitoring_auth else None,
            address=settings.bind_address,
        )
        await health.start()
        following = office.operator.follow()
        try:
            await (election.run(office.lead) if settings.leader_elect else office.lead())
        finally:
            following.cancel()
            await asyncio.wait([following])
            await health.stop()


class _Office:
    """What a leader does, and whether it can. A replica that only waits is ready too."""

    def __init__(self, operator: Operator, metrics: Metrics) -> None:
        self.operator = operator
        self._metrics = metrics
        self._leads = False

    async def lead(self) -> None:
        self._leads = True
        self._metrics.leader.set(1)
        try:
            await self.operator.run()
        finally:
            self._metrics.leader.set(0)
            self._leads = False

    def trouble(self) -> str | None:
        if not self._leads:
            return None
        caches = self.operator.caches
        return caches.trouble or (None if caches.synced else "not everything has been read yet")


async def _require_definition(kube: Kube, server: str) -> None:
    """Without the CRD there is nothing to do; waiting for it is kinder than restarting for ever."""
    told = ""
    while True:
        try:
            if await kube.has(kinds.MPIJOBS):
                return
            why = "the cluster does not know MPIJobs yet; waiting for the definition mpijobs.kubeflow.org"
        except RetryableError as error:
            why = f"cannot ask {server} whether it knows MPIJobs; trying again: {error}"
        if why != told:
            log.warning("%s", why)
        told = why
        await asyncio.sleep(_BETWEEN_LOOKS)
