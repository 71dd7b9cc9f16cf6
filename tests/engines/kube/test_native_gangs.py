"""Gangs by Kubernetes' own scheduler, which is the judge here: it binds all pods of a job, or none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from cluster.build import programs
from cluster.cluster import Cluster, start
from cluster.places import ROOT

from oarsman.engines.kube.client import resources as kinds

from .played import Stage, stage, until

GATES = ("GenericWorkload", "GangScheduling")


@pytest.fixture(scope="module")
def gangs() -> Iterator[Cluster]:
    if programs().version < (1, 36):
        pytest.skip("Kubernetes has PodGroups of its own from 1.36 on")
    found = start("gangs", pods=False, features=GATES)
    found.apply_file(ROOT / "deploy" / "crd")
    found.kubectl("wait", "--for=condition=Established", "--timeout=180s", "crd/mpijobs.kubeflow.org")
    yield found
    found.stop()


def add_node(cluster: Cluster, name: str, cpus: int) -> None:
    """Nobody runs there; it takes pods all the same."""
    room = {"cpu": str(cpus), "memory": "8Gi", "pods": "20"}
    ready = {"type": "Ready", "status": "True", "reason": "Played"}
    node = cluster.client.ask("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    node["status"] = {"capacity": room, "allocatable": room, "conditions": [ready]}
    del node["metadata"]["resourceVersion"]
    cluster.client.ask("PUT", f"/api/v1/nodes/{name}/status", node)


def one_cpu() -> dict[str, Any]:
    container = {"name": "mpi", "image": "pi", "command": ["mpirun", "pi"], "resources": {"requests": {"cpu": "1"}}}
    return {"containers": [container], "tolerations": [{"operator": "Exists"}]}


def test_no_pod_of_a_job_is_bound_before_all_fit(gangs: Cluster) -> None:
    async def story(found: Stage) -> None:
        async def pods() -> list[dict[str, Any]]:
            return list(await found.kube.list(kinds.PODS, found.namespace))

        async def all_are_there() -> bool:
            return len(await pods()) == 4

        async def all_were_tried() -> bool:
            said = [c for pod in await pods() for c in pod["status"].get("conditions", ())]
            return sum(c["type"] == "PodScheduled" and c["status"] == "False" for c in said) == 4

        async def all_are_bound() -> bool:
            return all(pod["spec"].get("nodeName") for pod in await pods())

        template = {"template": {"spec": one_cpu()}}
        roles = {"Launcher": template, "Worker": {"replicas": 3, **template}}
        await found.submit(mpiReplicaSpecs=roles)
        await until(all_are_there, "launcher and workers")
        await until(all_were_tried, "the scheduler has tried")
        [group] = await found.kube.list(kinds.NATIVE_POD_GROUPS, found.namespace)
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
        assert [pod["spec"].get("nodeName") for pod in await pods()] == [None] * 4
        add_node(gangs, "large", 4)
        await until(all_are_bound, "all are bound")

    async def main(namespace: str) -> None:
        async with stage(gangs, namespace, gang_scheduling="kubernetes") as found:
            await story(found)

    add_node(gangs, "small", 2)
    with gangs.fresh_namespace() as namespace:
        asyncio.run(main(namespace))


def test_a_cluster_that_has_no_pod_groups_of_its_own_is_named_as_the_reason(
    served: Cluster, api_namespace: str
) -> None:
    async def main() -> None:
        async with stage(served, api_namespace, gang_scheduling="kubernetes") as found:

            async def says_so() -> bool:
                conditions = (await found.status()).get("conditions", ())
                return any(
                    "PodGroups of scheduling.k8s.io/v1alpha2" in c.get("message", "")
                    for c in conditions
                    if c["status"] == "True"
                )

            await found.submit()
            await until(says_so, "a condition names what is missing")
            assert await found.names(kinds.PODS) == []

    asyncio.run(main())
