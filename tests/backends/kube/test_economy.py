"""How much the operator asks of an API server for one job, from its creation to its end. Counted, not timed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cluster.cluster import Cluster

from oarsman import names
from oarsman.control.health import Metrics, Turns
from oarsman.control.operator import Operator
from oarsman.control.operator_settings import OperatorSettings
from oarsman.engines.kube import views
from oarsman.engines.kube.client import Informer, Kube, load_access
from oarsman.engines.kube.client.resources import MPIJOBS
from tests.engines.kube.played import Kubelet

WORKERS = 4
OBJECTS = {"pods": WORKERS, "services": 1, "secrets": 1, "configmaps": 1, "jobs": 1}  # the launcher is a Job


def manifest(**run_policy: Any) -> dict[str, Any]:
    def template(name: str) -> dict[str, Any]:
        container = {"name": "mpi", "image": "pi", "command": ["mpirun", "./pi"] if name == "launcher" else None}
        return {"template": {"spec": {"schedulerName": "nobody", "containers": [container]}}}

    roles = {"Launcher": template("launcher"), "Worker": {"replicas": WORKERS, **template("worker")}}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "pi"},
        "spec": {"runPolicy": run_policy, "mpiReplicaSpecs": roles},
    }


class Place:
    """An operator whose requests are counted, and pods that seem to run."""

    def __init__(self, kube: Kube, namespace: str, asked: Counter[tuple[str, str]]) -> None:
        self._kube = kube
        self._namespace = namespace
        self._kubelet = Kubelet(kube, namespace)
        self._asked = asked
        self._news = asyncio.Event()
        self.jobs: Informer[views.MPIJobView] = Informer(
            kube, MPIJOBS, views.MPIJobView, namespaces=[namespace], changed=lambda *_: self._news.set()
        )

    async def run(self, **run_policy: Any) -> None:
        """Until the status says that it does."""
        await self._kube.create(MPIJOBS, manifest(**run_policy), self._namespace)
        await self._kubelet.workers_run(WORKERS)
        await self._kubelet.run(await self._kubelet.launcher_named())
        await self._until(names.RUNNING)

    async def end(self) -> None:
        await self._kubelet.end(await self._kubelet.launcher_named(), 0)
        await self._until(names.SUCCEEDED)

    async def _until(self, type_: str) -> None:
        while not self._is(type_):
            self._news.clear()
            await self._news.wait()

    def _is(self, type_: str) -> bool:
        job = self.jobs.get(self._namespace, "pi")
        conditions = (job.status or {}).get("conditions", ()) if job is not None else ()
        return any(said["type"] == type_ and said["status"] == "True" for said in conditions)

    def asked(self, verb: str) -> dict[str, int]:
        return {plural: count for (how, plural), count in self._asked.items() if how == verb}


@asynccontextmanager
async def place(served: Cluster, namespace: str) -> AsyncIterator[tuple[Place, Operator]]:
    access = load_access(kubeconfig=Path(str(served.kubeconfig)))
    asked: Counter[tuple[str, str]] = Counter()

    def count(verb: str, plural: str, status: int, seconds: float) -> None:
        if plural:  # what is asked of the server itself, such as its version, is for no job
            asked[verb, plural] += 1

    settings = OperatorSettings(namespaces=(namespace,), leader_elect=False)
    async with Kube(access, observe=count) as kube, Kube(access) as other:
        operator = Operator(kube, settings, Metrics(process=False), Turns())
        here = Place(other, namespace, asked)
        tasks = [asyncio.create_task(operator.run()), asyncio.create_task(here.jobs.run())]
        try:
            yield here, operator
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def test_a_job_costs_one_request_per_object_and_few_beside(served: Cluster, api_namespace: str) -> None:
    async def story() -> None:
        async with place(served, api_namespace) as (here, operator):
            await here.run()
            await here.end()
            await operator.queue.idle()

            created = here.asked("create")
            events = created.pop("events")
            assert created == OBJECTS  # nothing twice, and nothing that was there already
            assert events <= 3  # created, running, succeeded
            # Created, its launcher known, each worker once at most, running, succeeded: fewer where they come together.
            assert here.asked("update").keys() == {"mpijobs"}
            assert here.asked("update")["mpijobs"] <= WORKERS + 4
            # The hosts are known from the start, so the ConfigMap is right at once; the rest is in the caches.
            for verb in ("patch", "get", "delete"):
                assert here.asked(verb) == {}, verb

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_job_that_runs_is_not_asked_about(served: Cluster, api_namespace: str) -> None:
    async def story() -> None:
        async with place(served, api_namespace) as (here, operator):
            await here.run()
            await operator.queue.idle()
            before = [here.asked(verb) for verb in ("create", "get", "update", "patch", "delete")]
            for _ in range(10):  # as if somebody else had touched it
                operator.queue.add(f"{api_namespace}/pi")
                await operator.queue.idle()
            assert [here.asked(verb) for verb in ("create", "get", "update", "patch", "delete")] == before

    asyncio.run(asyncio.wait_for(story(), 60))


def test_what_the_policy_clears_away_is_deleted_once(served: Cluster, api_namespace: str) -> None:
    async def story() -> None:
        async with place(served, api_namespace) as (here, operator):
            await here.run(cleanPodPolicy="All")
            await here.end()
            await operator.queue.idle()
            deleted = here.asked("delete")
            assert deleted["jobs"] == 1
            assert WORKERS <= deleted["pods"] <= WORKERS + 1  # with the launcher's

    asyncio.run(asyncio.wait_for(story(), 60))
