"""Upstream's integration cases I1-I7: the operator on a real API server, with the kubelet played."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from cluster.cluster import Cluster

from oarsman import names
from oarsman.engines.kube.client import resources as kinds
from oarsman.job.state import Attempt, Cause, QueuePlace, ReplicaCount
from oarsman.status.codec import to_wire
from tests.builders import a_status, at

from .kube_jobs import V1
from .played import Stage, stage, until

Story = Callable[[Stage], Awaitable[None]]


def play(served: Cluster, namespace: str, story: Story, **settings: Any) -> None:
    async def main() -> None:
        async with stage(served, namespace, **settings) as found:
            await story(found)

    asyncio.run(main())


def _definition(resource: Any) -> dict[str, Any]:
    """A PodGroup that takes anything: no scheduler is here to read it."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": resource.version, "served": True, "storage": True, "schema": schema}
    allowed = {"api-approved.kubernetes.io": "unapproved, for tests"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"podgroups.{resource.group}", "annotations": allowed},
        "spec": {
            "group": resource.group,
            "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


@pytest.fixture(scope="module")
def pod_groups(served: Cluster) -> Iterator[None]:
    resources = (kinds.VOLCANO_POD_GROUPS, kinds.PLUGINS_POD_GROUPS)
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [_definition(r) for r in resources]})
    served.kubectl("apply", "-f", "-", stdin=listed)
    served.kubectl("wait", "--for=condition=Established", "--timeout=180s", "-f", "-", stdin=listed)
    yield
    served.kubectl("delete", "--timeout=180s", "-f", "-", stdin=listed)  # a second try makes them anew


def test_i1_a_job_succeeds(served: Cluster, api_namespace: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.submit(runPolicy={"cleanPodPolicy": "Running"})
        await stage.until_true("Created")
        await stage.kubelet.workers_run()
        launcher = await stage.kubelet.launcher_named()
        selector = (await stage.kube.get(kinds.SERVICES, "pi", stage.namespace))["spec"]["selector"]
        pods = [*(await stage.kubelet.pods("worker")), *(await stage.kubelet.pods("launcher"))]
        assert len(pods) == 3
        for pod in pods:
            assert selector.items() <= pod["metadata"]["labels"].items()
            volumes = {v["name"]: v for v in pod["spec"]["volumes"]}
            assert volumes["ssh-auth"]["secret"]["secretName"] == "pi-ssh"
            assert volumes["mpi-job-config"]["configMap"]["name"] == "pi-config"
        await stage.kubelet.run(launcher)
        await stage.until_true("Running")
        counts = (await stage.status())["replicaStatuses"]
        assert (counts["Launcher"]["active"], counts["Worker"]["active"]) == (1, 2)
        await stage.kubelet.end(launcher, 0)
        await stage.until_true("Succeeded")
        await stage.until_pods_are(launcher)
        status = await stage.status()
        assert status["replicaStatuses"]["Launcher"] == {"succeeded": 1}
        assert "active" not in status["replicaStatuses"]["Worker"]
        assert status["completionTime"]

        async def told() -> bool:
            """Where a scheduler runs, it has said first that it knows no node."""
            found = [reason for reason in await stage.events() if reason != "WaitingForRoom"]
            return found == ["MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"]

        await until(told, "the events")

    play(served, api_namespace, story)


def test_i2_a_launcher_that_waits_for_its_workers_is_made_when_they_are_ready(
    served: Cluster, api_namespace: str
) -> None:
    async def story(stage: Stage) -> None:
        await stage.submit(launcherCreationPolicy="WaitForWorkersReady")
        await stage.kubelet.workers_run(ready=False)

        async def seen_running() -> bool:
            worker = (await stage.status()).get("replicaStatuses", {}).get("Worker", {})
            return worker.get("active") == 2

        await until(seen_running, "both workers are seen to run")
        assert await stage.names(kinds.JOBS) == []
        await stage.kubelet.workers_run()
        await stage.kubelet.run(await stage.kubelet.launcher_named())
        await stage.until_true("Running")

    play(served, api_namespace, story)


def test_i3_a_job_is_resumed_suspended_and_resumed_again_with_what_was_added_meanwhile(
    served: Cluster, api_namespace: str
) -> None:
    directives = {
        "metadata": {"labels": {"foo": "bar"}, "annotations": {"note": "a"}},
        "spec": {"nodeSelector": {"pool": "a"}, "tolerations": [{"key": "t", "operator": "Exists"}]},
    }

    async def story(stage: Stage) -> None:
        await stage.submit(runPolicy={"suspend": True})
        await stage.until_true("Suspended")
        status = await stage.status()
        assert "startTime" not in status
        assert await stage.names(kinds.PODS) == await stage.names(kinds.JOBS) == []
        await stage.edit({"mpiReplicaSpecs": {"Launcher": {"template": directives}}, "runPolicy": {"suspend": False}})
        await stage.kubelet.workers_run()
        first = await stage.kubelet.launcher_named()
        pod = await stage.kube.get(kinds.PODS, first, stage.namespace)
        assert pod["metadata"]["labels"]["foo"] == "bar"
        assert pod["metadata"]["annotations"]["note"] == "a"
        assert pod["spec"]["nodeSelector"] == {"pool": "a"}
        assert "t" in [toleration.get("key") for toleration in pod["spec"]["tolerations"]]
        await stage.kubelet.run(first)
        await stage.until_true("Running")
        assert (await stage.status())["startTime"]
        await stage.edit({"runPolicy": {"suspend": True}})
        await stage.until_true("Suspended")
        await stage.until_true("Running", "False")
        await stage.until_pods_are()
        again = {"metadata": {"labels": {"foo": "again"}}, "spec": {"nodeSelector": {"pool": "b"}}}
        await stage.edit({"mpiReplicaSpecs": {"Launcher": {"template": again}}, "runPolicy": {"suspend": False}})
        await stage.kubelet.workers_run()
        pod = await stage.kube.get(kinds.PODS, await stage.kubelet.launcher_named(but=first), stage.namespace)
        assert pod["metadata"]["labels"]["foo"] == "again"
        assert pod["spec"]["nodeSelector"] == {"pool": "b"}
        assert pod["metadata"]["annotations"]["oarsman.dev/attempt"] == "2"

    play(served, api_namespace, story)


def test_i4_a_failed_launcher_is_tried_again_and_the_last_one_fails_the_job(
    served: Cluster, api_namespace: str
) -> None:
    async def story(stage: Stage) -> None:
        await stage.submit(runPolicy={"cleanPodPolicy": "Running", "backoffLimit": 1})
        await stage.kubelet.workers_run()
        first = await stage.kubelet.launcher_named()
        await stage.kubelet.run(first)
        await stage.until_true("Running")
        await stage.kubelet.end(first, 1, "boom")
        await stage.until_true("Restarting")
        status = await stage.status()
        assert status["replicaStatuses"]["Launcher"]["failed"] == 1
        assert not await stage.is_true("Failed")
        stage.advance(11)
        second = await stage.kubelet.launcher_named(but=first)
        assert first in await stage.names(kinds.PODS)  # with its log
        await stage.kubelet.run(second)
        await stage.until_true("Running")
        await stage.kubelet.end(second, 1, "boom again")
        await stage.until_true("Failed")
        await stage.until_pods_are(first, second)
        status = await stage.status()
        assert status["replicaStatuses"]["Launcher"]["failed"] == 2
        assert [a["outcome"] for a in status["attempts"]] == ["Failed", "Failed"]
        [failed] = [c for c in status["conditions"] if c["type"] == "Failed"]
        assert failed["reason"] == "BackoffLimitExceeded"
        assert "boom again" in failed["message"]

        async def told() -> bool:
            return "BackoffLimitExceeded" in await stage.events()

        await until(told, "the event")

    play(served, api_namespace, story)


async def _group_is(stage: Stage, resource: Any, **fields: Any) -> bool:
    found = await stage.kube.list(resource, stage.namespace)
    return [{name: group["spec"].get(name) for name in fields} for group in found] == [fields]


@pytest.mark.usefixtures("pod_groups")
def test_i5_an_edit_reaches_the_group_of_the_scheduler_plugins(served: Cluster, api_namespace: str) -> None:
    async def story(stage: Stage) -> None:
        resource = kinds.PLUGINS_POD_GROUPS
        await stage.submit()
        await until(lambda: _group_is(stage, resource, minMember=3, scheduleTimeoutSeconds=0), "the group")
        await stage.kubelet.launcher_named()
        for pod in [*(await stage.kubelet.pods("worker")), *(await stage.kubelet.pods("launcher"))]:
            assert pod["spec"]["schedulerName"] == "coscheduler"
            assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "pi"
        await stage.edit({"runPolicy": {"schedulingPolicy": {"scheduleTimeoutSeconds": 77}}})
        await until(lambda: _group_is(stage, resource, scheduleTimeoutSeconds=77), "the edit")

    play(served, api_namespace, story, gang_scheduling="coscheduler")


@pytest.mark.usefixtures("pod_groups")
def test_i6_edits_reach_the_group_of_volcano_and_an_impossible_amount_can_be_taken_out(
    served: Cluster, api_namespace: str
) -> None:
    async def story(stage: Stage) -> None:
        resource = kinds.VOLCANO_POD_GROUPS
        policy = {"queue": "default", "minResources": {"cpu": "1000"}}
        await stage.submit(runPolicy={"schedulingPolicy": policy})
        await until(
            lambda: _group_is(stage, resource, minMember=3, queue="default", minResources={"cpu": "1000"}), "the group"
        )
        changed = {"minAvailable": 2, "queue": "other", "minResources": None}
        await stage.edit({"runPolicy": {"schedulingPolicy": changed}})
        await until(lambda: _group_is(stage, resource, minMember=2, queue="other", minResources={}), "the edits")

    play(served, api_namespace, story, gang_scheduling="volcano")


def test_i7_a_job_managed_by_others_is_not_touched(served: Cluster, api_namespace: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.submit(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"})

        async def had_its_turn() -> bool:
            count = stage.metrics.registry.get_sample_value("oarsman_reconcile_seconds_count", {"result": "ok"})
            return (count or 0) > 0

        await until(had_its_turn, "a turn")
        assert await stage.status() == {}
        for resource in (kinds.PODS, kinds.JOBS, kinds.SERVICES, kinds.CONFIG_MAPS):
            assert "pi" not in "".join(await stage.names(resource))
        assert await stage.events() == []

    play(served, api_namespace, story)


def test_a_v1_job_written_through_v1_has_a_bare_launcher_and_rights(served: Cluster, api_namespace: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.submit(version=V1)
        await stage.kubelet.workers_run()
        launcher = await stage.kubelet.launcher_named()
        assert launcher == "pi-launcher"
        assert await stage.names(kinds.JOBS) == []
        assert await stage.names(kinds.ROLES) == await stage.names(kinds.ROLE_BINDINGS) == ["pi-launcher"]
        assert (await stage.status())["writtenAs"] == V1
        await stage.kubelet.run(launcher)
        await stage.until_true("Running")
        await stage.kubelet.end(launcher, 0)
        await stage.until_true("Succeeded")

    play(served, api_namespace, story)


def test_scaling_through_the_subresource_changes_the_number_of_workers(served: Cluster, api_namespace: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.submit()
        await stage.kubelet.workers_run()
        launcher = await stage.kubelet.launcher_named()
        await stage.kubelet.run(launcher)
        await stage.until_true("Running")
        await stage.kube.patch(kinds.MPIJOBS, "pi", {"spec": {"replicas": 3}}, stage.namespace, subresource="scale")
        await stage.kubelet.workers_run(3)

        async def listed() -> bool:
            found = await stage.kube.get(kinds.CONFIG_MAPS, "pi-config", stage.namespace)
            return "pi-worker-2" in found["data"]["discover_hosts.sh"]

        async def told() -> bool:
            pod = await stage.kube.get(kinds.PODS, launcher, stage.namespace)
            return "oarsman.dev/hosts" in pod["metadata"]["annotations"]

        # The list is written first and the launcher's pod is marked after it, so the second may still be on its way.
        await until(listed, "the new host is listed")
        await until(told, "the launcher's pod is marked")

    play(served, api_namespace, story)


def test_a_status_comes_back_from_the_server_as_it_was_written(served: Cluster, api_namespace: str) -> None:
    """A field the definition does not know would be dropped, and written again for ever."""
    cause = Cause(
        summary="s",
        rank=1,
        host="h",
        exit_code=2,
        signal=3,
        memory_limit_hit=True,
        last_lines=("a", "b"),
        hint="x",
    )
    attempt = Attempt(number=1, started=at(1), ended=at(2.5), outcome="Failed", cause=cause, workers=2, launcher="l")
    count = ReplicaCount(active=1, succeeded=2, failed=3, ready=4)
    full = a_status(
        true=("Created", "Failed"),
        attempts=(attempt,),
        cause=cause,
        completion_time=at(9),
        launcher=count,
        worker=count,
        queue=QueuePlace(position=1, reason="r"),
        retry_at=at(8),
        placement={0: "h", 1: "h"},
        machines={"h": "node1"},
        timeline={step: at(1) for step in names.STEPS},
    )
    assert all(getattr(full, field.name) for field in dataclasses.fields(full))
    assert all(getattr(attempt, field.name) for field in dataclasses.fields(attempt))
    assert all(getattr(cause, field.name) for field in dataclasses.fields(cause))

    async def story(stage: Stage) -> None:
        await stage.submit(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"})
        wire = {**to_wire(full), "writtenAs": V1}
        wire["replicaStatuses"]["Worker"]["selector"] = "a=b"
        kept = await stage.kube.patch(kinds.MPIJOBS, "pi", {"status": wire}, stage.namespace, subresource="status")
        assert (
            kept["status"] == wire
        )  # asked for afterwards it may be another: the operator takes the job for one that began

    play(served, api_namespace, story)


def test_a_job_at_rest_is_not_written_again(served: Cluster, api_namespace: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.submit()
        await stage.kubelet.workers_run()
        await stage.kubelet.run(await stage.kubelet.launcher_named())
        await stage.until_true("Running")

        def number(name: str, **labels: str) -> float:
            return stage.metrics.registry.get_sample_value(name, labels) or 0

        async def another_turn(after: float) -> None:
            async def taken() -> bool:
                return number("oarsman_reconcile_seconds_count", result="ok") > after

            stage.operator.queue.add(f"{stage.namespace}/pi")
            await until(taken, "a turn")

        await another_turn(number("oarsman_reconcile_seconds_count", result="ok"))
        await stage.operator.queue.idle()
        version = (await stage.job())["metadata"]["resourceVersion"]
        for _ in range(3):
            await another_turn(number("oarsman_reconcile_seconds_count", result="ok"))
        assert (await stage.job())["metadata"]["resourceVersion"] == version

    play(served, api_namespace, story)


def test_a_class_that_is_missing_is_waited_for_and_said(served: Cluster, api_namespace: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.submit(worker={"priorityClassName": "not-there-yet"})
        await stage.until_true("Queued")
        [waiting] = [c for c in (await stage.status())["conditions"] if c["type"] == "Queued"]
        assert waiting["reason"] == "Trouble"
        assert "not-there-yet" in waiting["message"]
        assert not await stage.is_true("Failed")

    play(served, api_namespace, story)


def test_pods_the_server_refuses_fail_the_job_with_its_words(served: Cluster, api_namespace: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.submit(worker={"tolerations": [{"key": "a", "operator": "Sometimes"}]})
        await stage.until_true("Failed")
        [failed] = [c for c in (await stage.status())["conditions"] if c["type"] == "Failed"]
        assert failed["reason"] == "ValidationError"
        assert "spec.tolerations[0].operator" in failed["message"]
        assert await stage.names(kinds.JOBS) == []

    play(served, api_namespace, story)
