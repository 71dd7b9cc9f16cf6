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
from oarsman.engines.kube.client import Kube, load_access
from oarsman.engines.kube.client import resources as kinds
from oarsman.job.state import Attempt, Cause, QueuePlace, ReplicaCount
from oarsman.status.codec import to_wire
from tests.builders import a_status, at

from .kube_jobs import V1, V2BETA1, document
from .played import Kubelet, Stage, stage, until

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


def test_a_suspended_job_is_active_until_the_last_of_its_pods_is_gone(served: Cluster, api_namespace: str) -> None:
    """Kueue starts who comes next when nothing is active any more: the nodes are free then, and not before."""
    slow = {"terminationGracePeriodSeconds": 60, "nodeName": "a-node"}  # only that node's kubelet lets them go

    async def story(stage: Stage) -> None:
        await stage.submit(worker=slow, launcher=slow)
        await stage.kubelet.workers_run()
        launcher = await stage.kubelet.launcher_named()
        await stage.kubelet.run(launcher)
        await stage.until_true("Running")
        await stage.edit({"runPolicy": {"suspend": True}})
        await stage.until_true("Suspended")

        async def all_going() -> bool:
            found = await stage.kube.list(kinds.PODS, stage.namespace)
            return len(found) == 3 and all("deletionTimestamp" in pod["metadata"] for pod in found)

        await until(all_going, "all pods are on their way out")
        for left, name in ((2, "pi-worker-1"), (1, launcher), (0, "pi-worker-0")):
            assert await stage.active() == left + 1
            end = ("delete", "pod", name, "-n", stage.namespace, "--grace-period=0", "--force", "--wait=false")
            await asyncio.to_thread(served.kubectl, *end)  # as its kubelet does when it has ended
            await stage.until_active(left)

    play(served, api_namespace, story)


def test_a_job_whose_worker_is_drained_from_its_node_starts_again_at_no_cost(
    served: Cluster, api_namespace: str
) -> None:
    async def story(stage: Stage) -> None:
        await stage.submit(worker={"nodeName": "a-node"}, runPolicy={"backoffLimit": 1})
        await stage.kubelet.workers_run()
        await stage.kubelet.run(await stage.kubelet.launcher_named())
        await stage.until_true("Running")
        path = f"/api/v1/namespaces/{stage.namespace}/pods/pi-worker-1"
        about = {"name": "pi-worker-1", "namespace": stage.namespace}
        eviction = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about})
        ask = ("create", "--raw", f"{path}/eviction", "-f", "-")
        await asyncio.to_thread(served.kubectl, *ask, stdin=eviction, check=False)
        pod = await stage.kube.get(kinds.PODS, "pi-worker-1", stage.namespace)
        if all(found["type"] != "DisruptionTarget" for found in pod["status"]["conditions"]):
            pytest.skip("servers before 1.26 do not say why a pod goes")
        await stage.until_true("Restarting")
        [attempt] = (await stage.status())["attempts"]
        assert attempt["outcome"] == "Disrupted"
        assert attempt["cause"]["summary"] == "pi-worker-1 was lost: it was evicted, as when its node is drained"

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
        assert failed["message"].endswith("the launcher exited with code 1")  # nobody says whose the last words are
        assert status["cause"]["lastLines"] == ["boom again"]

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


@pytest.mark.parametrize("version", [V1, V2BETA1])
def test_a_copy_of_what_kubectl_prints_is_the_same_job(served: Cluster, api_namespace: str, version: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.submit(version=version, runPolicy={"suspend": True})
        await stage.until_true("Suspended")
        asked = ("get", "mpijob", "pi", f"--namespace={stage.namespace}", "-o", "yaml")
        printed = (await asyncio.to_thread(served.kubectl, *asked)).stdout
        assert f"apiVersion: {V1}\n" in printed
        copy = printed.replace("\n  name: pi\n", "\n  name: copy\n").replace("suspend: true", "suspend: false")
        await asyncio.to_thread(served.kubectl, "create", "-f", "-", stdin=copy)

        async def begun() -> bool:
            found = await stage.kube.get(kinds.MPIJOBS, "copy", stage.namespace)
            return "startTime" in (found.get("status") or {})

        await until(begun, "the copy has begun")
        written = [(await stage.kube.get(kinds.MPIJOBS, name, stage.namespace))["status"] for name in ("pi", "copy")]
        assert [status["writtenAs"] for status in written] == [version, version]
        assert await stage.names(kinds.JOBS) == (["copy-launcher"] if version == V2BETA1 else [])

    play(served, api_namespace, story)


async def _made_by_upstream(kube: Kube, namespace: str) -> None:
    """A job that runs under the mpi-operator: only its pods have labels of the job."""
    body = document(namespace=namespace)
    body["metadata"] = {"name": "pi", "namespace": namespace}
    uid = (await kube.create(kinds.MPIJOBS, body, namespace))["metadata"]["uid"]
    times = dict.fromkeys(("lastUpdateTime", "lastTransitionTime"), "2026-01-01T00:00:00Z")
    told = [
        {"type": t, "status": "True", "reason": f"MPIJob{t}", "message": "", **times} for t in ("Created", "Running")
    ]
    status = {"conditions": told, "startTime": "2026-01-01T00:00:00Z", "replicaStatuses": {"Worker": {"active": 2}}}
    await kube.patch(kinds.MPIJOBS, "pi", {"status": status}, namespace, subresource="status")
    owner = {"apiVersion": V2BETA1, "kind": "MPIJob", "name": "pi", "uid": uid, "controller": True}
    labels = {"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "pi"}

    async def make(resource: Any, name: str, **parts: Any) -> None:
        meta = {"name": name, "labels": parts.pop("labels", {"app": "pi"}), "ownerReferences": [owner]}
        made = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **parts}
        await kube.create(resource, made, namespace)

    def pod(name: str) -> dict[str, Any]:
        main = {"name": "mpi", "image": "pi", "command": ["sleep", "1"]}
        return {"hostname": name, "subdomain": "pi", "restartPolicy": "Never", "containers": [main]}

    await make(kinds.SERVICES, "pi", spec={"clusterIP": "None", "selector": labels})
    await make(kinds.CONFIG_MAPS, "pi-config", data={"hostfile": "", "discover_hosts.sh": "#!/bin/sh\n"})
    await make(kinds.SECRETS, "pi-ssh", data={"ssh-privatekey": "eA==", "ssh-publickey": "eA=="})
    for index in range(2):
        more = {"training.kubeflow.org/job-role": "worker", "training.kubeflow.org/replica-index": str(index)}
        await make(kinds.PODS, f"pi-worker-{index}", labels={**labels, **more}, spec=pod(f"pi-worker-{index}"))
    template = {
        "metadata": {"labels": {**labels, "training.kubeflow.org/job-role": "launcher"}},
        "spec": pod("pi-launcher"),
    }
    await make(kinds.JOBS, "pi-launcher", spec={"template": template})


def test_a_job_that_the_mpi_operator_runs_keeps_its_pods_and_ends(served: Cluster, api_namespace: str) -> None:
    async def before() -> tuple[str, dict[str, str]]:
        async with Kube(load_access(kubeconfig=served.kubeconfig)) as kube:
            await _made_by_upstream(kube, api_namespace)
            kubelet = Kubelet(kube, api_namespace)
            await kubelet.workers_run()
            launcher = await kubelet.launcher_named()
            await kubelet.run(launcher)
            return launcher, await pods_of(kube)

    async def pods_of(kube: Kube) -> dict[str, str]:
        found = await kube.list(kinds.PODS, api_namespace)
        living = [pod["metadata"] for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return {meta["name"]: meta["uid"] for meta in living}

    launcher, pods = asyncio.run(before())

    async def story(stage: Stage) -> None:
        async def taken_over() -> bool:
            return "writtenAs" in await stage.status()

        await until(taken_over, "it is taken over")
        await stage.until_true("Running")
        assert await pods_of(stage.kube) == pods
        await stage.kubelet.end(launcher, 0)
        await stage.until_true("Succeeded")
        assert await pods_of(stage.kube) == pods

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
        wire = {**to_wire(full), "writtenAs": V1, "validSpec": {"mpiReplicaSpecs": {"Launcher": {"anything": 1}}}}
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


def _denial(namespace: str) -> str:
    """A policy against pods called pi-worker-1, as the owner of a cluster may have one."""
    group, name = "admissionregistration.k8s.io/v1", f"closed-{namespace}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    policy = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here},
            "validations": [{"expression": "object.metadata.name != 'pi-worker-1'", "message": "the queue is closed"}],
        },
    }
    binding = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [policy, binding]})


def test_a_policy_that_denies_a_pod_is_told_and_the_job_starts_when_it_is_gone(
    served: Cluster, api_namespace: str
) -> None:
    if "validatingadmissionpolicies" not in served.kubectl("api-resources", "-o", "name").stdout:
        pytest.skip("servers before 1.30 have no such policies")
    denial = _denial(api_namespace)
    pod = {"containers": [{"name": "mpi", "image": "pi"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pi-worker-1"}, "spec": pod}

    async def denied(stage: Stage) -> bool:
        ask = ("create", "-n", stage.namespace, "--dry-run=server", "-f", "-")
        found = await asyncio.to_thread(served.kubectl, *ask, stdin=json.dumps(body), check=False)
        return "the queue is closed" in found.stderr

    async def story(stage: Stage) -> None:
        await asyncio.to_thread(served.kubectl, "apply", "-f", "-", stdin=denial)
        try:
            await until(lambda: denied(stage), "the policy holds")
            await stage.submit()
            await stage.until_true("Queued")
            [waiting] = [c for c in (await stage.status())["conditions"] if c["type"] == "Queued"]
            assert waiting["reason"] == "Trouble"
            assert "denied request: the queue is closed" in waiting["message"]
        finally:
            await asyncio.to_thread(served.kubectl, "delete", "-f", "-", stdin=denial)
        await stage.kubelet.workers_run()
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
