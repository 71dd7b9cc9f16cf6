"""The judge of operators: creates jobs, and sees with watches of its own when pods are there, run and have ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import msgspec
import yaml
from cluster.kwok import ENDS, on_kwok
from measure import MANIFEST

from oarsman import names
from oarsman.engines.kube.client import Informer, Kube
from oarsman.engines.kube.client.resources import MPIJOBS, PODS

PATIENCE = 300.0  # seconds without any news
AT_ONCE = 32  # requests of the judge
NOBODY = "nobody"  # schedules pods that shall never run


class Stuck(RuntimeError):
    """The operator does not get there."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    """What an informer needs: of 100,000 pods nothing else is kept."""

    name: str
    namespace: str
    uid: str
    resource_version: str


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Meta


class _Job(msgspec.Struct, frozen=True):
    metadata: _Meta
    status: dict[str, Any] = {}


def manifest(name: str, workers: int, *, kubelets: bool) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(
        MANIFEST.format(name=name, command='["mpirun", "true"]', workers=workers, slots=1)
    )
    for role in document["spec"]["mpiReplicaSpecs"].values():
        template = role["template"]
        template["spec"] = on_kwok(template["spec"]) if kubelets else {**template["spec"], "schedulerName": NOBODY}
    return document


class Judge:
    """`running`, `ended`: when the status of each job said so for the first time."""

    def __init__(self, kube: Kube, namespace: str, *, kubelets: bool = True) -> None:
        self._kube = kube
        self._namespace = namespace
        self._kubelets = kubelets
        self._workers: dict[str, int] = {}
        self._told: dict[str, float] = {}  # of each job, when a watch last told of one of its pods
        self._failed: list[str] = []
        self._news = asyncio.Event()
        self._room = asyncio.Semaphore(AT_ONCE)
        self.pods = 0
        self.running: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.lags: list[float] = []  # from the last that was told of a job's pods to a status that says so

    async def __aenter__(self) -> Self:
        scope = [self._namespace]
        pods = Informer(self._kube, PODS, _Pod, namespaces=scope, changed=self._pod_changed)
        jobs = Informer(self._kube, MPIJOBS, _Job, namespaces=scope, changed=self._job_changed)
        self._following = [asyncio.create_task(informer.run()) for informer in (pods, jobs)]
        await pods.synced.wait()
        await jobs.synced.wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)

    async def create(self, jobs: Mapping[str, int]) -> None:
        """By name, with their numbers of workers."""
        self._workers |= jobs
        bodies = [manifest(name, workers, kubelets=self._kubelets) for name, workers in jobs.items()]
        await self._all(self._kube.create(MPIJOBS, body, self._namespace) for body in bodies)

    async def until_pods(self, count: int) -> None:
        await self._until(lambda: self.pods >= count)

    async def until_running(self, jobs: Iterable[str]) -> None:
        wanted = set(jobs)
        await self._until(lambda: wanted <= self.running.keys())

    async def end(self) -> None:
        """The launchers' commands exit; returns when every status says so."""
        launchers = await self._kube.list(PODS, self._namespace, view=_Pod, labels=f"{names.LABEL_ROLE}!=worker")
        mark = {"metadata": {"annotations": {ENDS: "true"}}}
        await self._all(
            self._kube.patch(PODS, pod.metadata.name, mark, self._namespace, view=_Pod) for pod in launchers
        )
        await self._until(lambda: len(self.ended) == len(self._workers))

    async def _all(self, requests: Iterable[Awaitable[Any]]) -> None:
        async def one(request: Awaitable[Any]) -> None:
            async with self._room:
                await request

        await asyncio.gather(*map(one, requests))

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            if self._failed:
                raise Stuck(f"these jobs failed: {', '.join(self._failed)}")
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), PATIENCE)
            except TimeoutError:
                there = f"{self.pods} pods, {len(self.running)} jobs that ran, {len(self.ended)} that ended"
                raise Stuck(f"nothing new for {PATIENCE:.0f} s, with {there}") from None

    def _pod_changed(self, old: _Pod | None, new: _Pod | None) -> None:
        if new is not None:
            self._told["-".join(new.metadata.name.split("-")[:2])] = time.monotonic()
            if old is None:
                self.pods += 1
            self._news.set()

    def _job_changed(self, _: _Job | None, new: _Job | None) -> None:
        if new is None:
            return
        name, status = new.metadata.name, new.status
        true = {said["type"] for said in status.get("conditions", ()) if said["status"] == "True"}
        active = status.get("replicaStatuses", {}).get("Worker", {}).get("active", 0)
        if names.RUNNING in true and active == self._workers.get(name):
            self._first(self.running, name)
        if names.SUCCEEDED in true:
            self._first(self.ended, name)
        if names.FAILED in true:
            self._failed.append(name)
            self._news.set()

    def _first(self, when: dict[str, float], name: str) -> None:
        if name not in when:
            when[name] = time.monotonic()
            self.lags.append(when[name] - self._told.get(name, when[name]))
            self._news.set()
