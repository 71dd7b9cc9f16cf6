"""Pods that only seem to run: says of every pod of a job what a scheduler and a kubelet would say.

With it a control plane alone carries jobs from their creation to their end, thousands of pods included. A launcher runs
once all its workers do, and ends when told to. Templates name the scheduler `SCHEDULER`, so that no real one meddles.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Coroutine
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import msgspec

from cluster.kubectl import Kubectl
from cluster.world import Program
from oarsman import names
from oarsman.engines.kube.client import Informer, Kube, Meta
from oarsman.engines.kube.client.resources import JOBS, PODS

SCHEDULER = "pretended"
_AT_ONCE = 32


class _Object(msgspec.Struct, frozen=True):
    metadata: Meta
    spec: dict[str, Any] = {}


class Pretended:
    """`seen` has, per job, the moment at which a watch last told of a change of one of its pods."""

    def __init__(self, kube: Kube, namespace: str, *, workers: int, job_controller: bool = True) -> None:
        """`job_controller`: whether a real one makes the pods of launchers."""
        self._kube = kube
        self._workers = workers
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._up: defaultdict[str, set[str]] = defaultdict(set)
        self._complete: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._launched: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.seen: dict[str, float] = {}
        self.pods: Informer[_Object] = Informer(
            kube, PODS, _Object, namespaces=[namespace], labels=names.LABEL_JOB, changed=self._pod_changed
        )
        self.jobs: Informer[_Object] = Informer(
            kube,
            JOBS,
            _Object,
            namespaces=[namespace],
            labels=names.LABEL_JOB,
            changed=None if job_controller else self._job_changed,
        )

    async def __aenter__(self) -> Self:
        for informer in (self.pods, self.jobs):
            self._start(informer.run())
            await informer.synced.wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def end(self, job: str, code: int = 0) -> None:
        """The launcher's command ends, once it has begun."""
        await self._launched[job].wait()
        pod = next(p for p in self.pods.all() if _job(p) == job and _role(p) == "launcher")
        ended = {"exitCode": code, "finishedAt": _now()}
        phase = "Failed" if code else "Succeeded"
        await self._tell(pod, phase, ready=False, state={"terminated": ended})

    def _start(self, doing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.result()  # told by the loop if it was an error

    def _pod_changed(self, old: _Object | None, new: _Object | None) -> None:
        if new is not None:
            self.seen[_job(new)] = time.monotonic()
            if old is None:
                self._start(self._live(new))

    def _job_changed(self, old: _Object | None, new: _Object | None) -> None:
        if old is None and new is not None:
            self._start(self._make_launcher(new))

    async def _make_launcher(self, job: _Object) -> None:
        meta, template = job.metadata, job.spec["template"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta.name, "uid": meta.uid, "controller": True}
        metadata = {**template["metadata"], "generateName": f"{meta.name}-", "ownerReferences": [owner]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        await self._kube.create(PODS, pod, meta.namespace)

    async def _live(self, pod: _Object) -> None:
        job, launcher = _job(pod), _role(pod) == "launcher"
        await self._tell(pod, "Pending", ready=False)
        if launcher and self._workers:
            await self._complete[job].wait()
        await self._tell(pod, "Running", ready=True, state={"running": {"startedAt": _now()}})
        if launcher:
            self._launched[job].set()
            return
        self._up[job].add(pod.metadata.name)
        if len(self._up[job]) >= self._workers:
            self._complete[job].set()

    async def _tell(self, pod: _Object, phase: str, *, ready: bool, state: dict[str, Any] | None = None) -> None:
        now = _now()
        conditions = {"PodScheduled": True, "Ready": ready, "ContainersReady": ready}
        status: dict[str, Any] = {
            "phase": phase,
            "conditions": [
                {"type": type_, "status": str(is_true), "lastTransitionTime": now}
                for type_, is_true in conditions.items()
            ],
        }
        if state is not None:
            status["containerStatuses"] = [
                {"name": _role(pod), "ready": ready, "restartCount": 0, "image": "", "imageID": "", "state": state}
            ]
        async with self._room:
            meta = pod.metadata
            await self._kube.patch(PODS, meta.name, {"status": status}, meta.namespace, subresource="status", view=_Any)


def has_job_controller(cluster: Kubectl) -> bool:
    """A control plane of two programs has none; one that somebody else runs has."""
    programs: list[Program] | None = getattr(cluster, "programs", None)
    return programs is None or any(program.name == "kube-controller-manager" for program in programs)


class _Any(msgspec.Struct, frozen=True):
    """Nothing of the answer is looked at."""


def _job(pod: _Object) -> str:
    return pod.metadata.labels[names.LABEL_JOB]


def _role(pod: _Object) -> str:
    """Also the name of the container."""
    return pod.metadata.labels[names.LABEL_ROLE]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
