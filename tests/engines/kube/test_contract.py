"""The Kubernetes engine keeps what every engine promises: on a real API server, with the kubelet played."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cluster.cluster import Cluster

from engines.contract_suite import EngineContract, Stage
from oarsman.engines.contract import Assignment
from oarsman.engines.kube.caches import Caches
from oarsman.engines.kube.client import Kube, load_access
from oarsman.engines.kube.client import resources as kinds
from oarsman.engines.kube.engine import KubeEngine
from oarsman.engines.kube.objects.common import KubeOptions
from oarsman.job.observed import Observed, Phase
from oarsman.job.state import Status
from oarsman.manifest import job_from_document

from .kube_jobs import V1, V2BETA1, document
from .played import Kubelet, until


class KubeStage(Stage):
    async def start_launcher(self) -> Observed:
        """A launcher is Pending until a kubelet has taken it up."""
        await super().start_launcher()
        return await self.until(lambda seen: seen.launcher is not None and seen.launcher.phase is not Phase.PENDING)


class _KubeContract(EngineContract):
    version: str

    @pytest.fixture
    def tell(self, served: Cluster, api_namespace: str) -> Callable[[Callable[[Stage], Awaitable[None]]], None]:
        def run(story: Callable[[Stage], Awaitable[None]]) -> None:
            asyncio.run(_on_stage(served, api_namespace, self.version, story))

        return run


class TestJobsOfV2beta1(_KubeContract):
    version = V2BETA1


class TestJobsOfV1(_KubeContract):
    version = V1


async def _on_stage(served: Cluster, namespace: str, version: str, story: Callable[[Stage], Awaitable[None]]) -> None:
    given = document(namespace=namespace, version=version)
    for field in ("uid", "generation", "creationTimestamp"):
        del given["metadata"][field]
    async with Kube(load_access(kubeconfig=served.kubeconfig)) as kube:
        made = await kube.create(kinds.MPIJOBS, {**given, "apiVersion": V2BETA1}, namespace)
        job = replace(job_from_document(given), uid=made["metadata"]["uid"], namespace=namespace)
        changed = asyncio.Event()
        engine = KubeEngine(kube, Caches(kube, (namespace,)), KubeOptions())
        await engine.start(lambda _key: changed.set())
        assignment = Assignment(job=job, status=Status(), environment={}, folder=Path("/"))
        stage = KubeStage(engine, assignment, changed)
        kubelet = asyncio.create_task(_kubelet(stage, Kubelet(kube, namespace)))
        try:
            await story(stage)
            assert not kubelet.done()
        finally:
            kubelet.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await kubelet
            await engine.close()


async def _kubelet(stage: Stage, kubelet: Kubelet) -> None:
    """Every pod runs; a launcher says `here` and ends with the code in EXIT, or goes on."""

    async def once() -> bool:
        for pod in await kubelet.pods("worker"):
            await _run(pod, kubelet)
        launcher = await kubelet.launcher()
        if launcher is not None:
            await _run(launcher, kubelet)
            code = stage.assignment.environment.get("EXIT")
            if code is not None and _phase(launcher) == "Running":
                await kubelet.end(launcher["metadata"]["name"], int(code), "here\n")
        return False

    while True:
        with contextlib.suppress(AssertionError):  # it was not asked to come to an end
            await until(once, "")


async def _run(pod: dict[str, Any], kubelet: Kubelet) -> None:
    if _phase(pod) == "Pending" and "deletionTimestamp" not in pod["metadata"]:
        await kubelet.run(pod["metadata"]["name"])


def _phase(pod: dict[str, Any]) -> str:
    return str(pod["status"].get("phase", "Pending"))
