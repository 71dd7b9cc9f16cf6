"""Nodes, who holds what of them, and whether a job has room."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cluster.cluster import Cluster
from kube_objects import delete
from waiting import waiting

from oarsman import names
from oarsman.backends.base import Amounts, HostRecord
from oarsman.backends.kube import nodes
from oarsman.backends.kube.backend import KubeBackend
from oarsman.backends.kube.nodes import ClusterNode, ClusterView
from oarsman.engines.kube.client import load_access, resources
from oarsman.engines.kube.client.credentials import Impersonating
from oarsman.errors import ManifestError
from oarsman.manifest import job_from_document
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.gang import Taint
from oarsman.plan.capacity.nodes import UNSEEN_NODES, UNSEEN_PODS
from oarsman.plan.capacity.placement import Machine

from .played import a_document

GIB = 2**30
ANode = Callable[..., str]


@pytest.fixture(autouse=True)
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "FRESH_SECONDS", -1.0)


@pytest.fixture
def a_node(jobs: KubeBackend) -> Iterator[ANode]:
    """Nodes without a kubelet; what one would report of itself is given."""
    made = []

    def make(*conditions: tuple[str, str, str], cordoned: bool = False, **allocatable: str) -> str:
        name = f"node-{secrets.token_hex(4)}"
        body = {"metadata": {"name": name, "labels": {"only": name}}, "spec": {"unschedulable": cordoned}}
        said = [{"type": kind, "status": status, "message": message} for kind, status, message in conditions]
        amounts = {key.replace("__", "/").replace("_", "."): value for key, value in allocatable.items()}
        status = {"status": {"allocatable": {"pods": "10", **amounts}, "conditions": said}}
        jobs.ask(lambda kube: kube.create(resources.NODES, body))
        made.append(name)
        jobs.ask(lambda kube: kube.patch(resources.NODES, name, status, subresource="status"))
        return name

    yield make
    for name in made:
        jobs.ask(lambda kube, name=name: delete(kube, resources.NODES, name))  # type: ignore[misc]


def put(jobs: KubeBackend, node: str, name: str, *, labels: dict[str, str] | None = None, **requests: str) -> None:
    wanted = {key.replace("__", "/").replace("_", "."): value for key, value in requests.items()}
    limits = {key: value for key, value in wanted.items() if "/" in key}
    container = {"name": "c", "image": "x", "resources": {"requests": wanted, "limits": limits}}
    body = {
        "metadata": {"name": name, "namespace": jobs.home, "labels": labels or {}},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container]},
    }
    jobs.ask(lambda kube: kube.create(resources.PODS, body))


def host(jobs: KubeBackend, name: str) -> HostRecord:
    (found,) = [one for one in jobs.hosts() if one.name == name]
    return found


READY = ("Ready", "True", "")


def test_a_node_has_what_is_promised_and_to_whom(jobs: KubeBackend, a_node: ANode) -> None:
    name = a_node(READY, cpu="8", memory="16Gi", nvidia_com__gpu="4", amd_com__gpu="1")
    labels = {names.LABEL_JOB: "pi", names.LABEL_ROLE: "worker"}
    put(jobs, name, "pi-worker-0", labels=labels, cpu="1500m", memory="2Gi", nvidia_com__gpu="1")
    put(jobs, name, "pi-worker-1", labels=labels, cpu="500m", memory="2Gi")
    put(jobs, name, "torch", labels={**labels, names.LABEL_OPERATOR: "pytorchjob-controller"}, cpu="1")
    put(jobs, name, "other", memory="1Gi")
    put(jobs, name, "ended", cpu="2")
    over = {"status": {"phase": "Succeeded"}}
    jobs.ask(lambda kube: kube.patch(resources.PODS, "ended", over, jobs.home, subresource="status"))

    found = host(jobs, name)
    assert (found.state, found.message, found.used) == ("ready", "", None)
    assert found.total == Amounts(cpus=8, memory_bytes=16 * GIB, gpus=5)
    assert found.held == Amounts(cpus=3, memory_bytes=5 * GIB, gpus=1)
    (held,) = found.holdings
    assert (held.key, held.amounts) == (f"{jobs.home}/pi", Amounts(cpus=2, memory_bytes=4 * GIB, gpus=1))


@pytest.mark.parametrize(
    ("condition", "cordoned", "state", "message"),
    [
        (READY, True, "cordoned", "no new pods are placed on it"),
        (("Ready", "False", "no network"), False, "unready", "no network"),
        (("Ready", "Unknown", "kubelet is silent"), False, "lost", "kubelet is silent"),
        (("DiskPressure", "True", "disk full"), False, "pressed", "disk full"),
    ],
)
def test_a_node_that_takes_nothing_says_why(
    jobs: KubeBackend, a_node: ANode, condition: tuple[str, str, str], cordoned: bool, state: str, message: str
) -> None:
    found = host(jobs, a_node(*{READY[0]: READY, condition[0]: condition}.values(), cordoned=cordoned, cpu="4"))
    assert found.state == state
    assert message in found.message


def asking(workers: int = 2, only: str | None = None, launcher: Any = None, **limits: str) -> dict[str, Any]:
    document = a_document()
    roles = document["spec"]["mpiReplicaSpecs"]
    roles["Worker"]["replicas"], document["spec"]["slotsPerWorker"] = workers, 4
    wanted = {key.replace("__", "/").replace("_", "."): value for key, value in limits.items()}
    roles["Worker"]["template"]["spec"]["containers"][0]["resources"] = {"limits": wanted}
    if launcher:
        roles["Launcher"]["template"]["spec"]["containers"][0]["resources"] = {"requests": launcher}
    if only:
        for role in roles.values():
            role["template"]["spec"]["nodeSelector"] = {"only": only}
            role["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    return document


def test_a_real_node_has_room_until_it_is_full(jobs: KubeBackend, a_node: ANode) -> None:
    name = a_node(READY, cpu="8", memory="16Gi")
    found = jobs.fit(asking(only=name, cpu="3", memory="1Gi"))
    assert (found.now, found.ever, found.reason) == (True, True, "")
    assert found.wanted == Amounts(cpus=6, memory_bytes=2 * GIB)
    assert found.free.cpus >= 8
    put(jobs, name, "big", cpu="4")
    found = jobs.fit(asking(only=name, cpu="3"))
    assert (found.now, found.ever) == (False, True)
    found = jobs.fit(asking(only=name, cpu="9"))
    assert (found.now, found.ever, found.reason) == (
        False,
        False,
        "the worker asks for 9 CPUs, no node has more than 8",
    )


def test_a_quota_is_named_when_it_is_in_the_way(jobs: KubeBackend, a_node: ANode) -> None:
    name = a_node(READY, cpu="64", memory="64Gi")
    quota = {"metadata": {"name": "small", "namespace": jobs.home}, "spec": {"hard": {"requests.cpu": "4"}}}
    jobs.ask(lambda kube: kube.create(nodes.QUOTAS, quota))
    found = jobs.fit(asking(only=name, cpu="3"))
    allows = f"the quota small of namespace {jobs.home} allows 4"
    assert (found.now, found.ever, found.reason) == (False, False, f"needs 6 CPUs, {allows}")
    used = {"status": {"hard": {"requests.cpu": "4"}, "used": {"requests.cpu": "3"}}}
    jobs.ask(lambda kube: kube.patch(nodes.QUOTAS, "small", used, jobs.home, subresource="status"))
    found = jobs.fit(asking(workers=1, only=name, cpu="2"))
    assert (found.now, found.ever) == (False, True)
    assert found.reason == f"needs 2 CPUs, {allows} and 1 of it are left"


def test_one_who_may_not_see_nodes_has_none_and_is_told_that_room_is_unknown(served: Cluster) -> None:
    access = load_access(kubeconfig=Path(str(served.kubeconfig)))
    nobody = waiting(
        KubeBackend(replace(access, credentials=Impersonating(access.credentials, user="nobody", uid="", groups=())))
    )
    try:
        assert nobody.hosts() == []
        found = nobody.fit(asking(cpu="4000"))
        assert (found.now, found.ever, found.reason) == (True, True, UNSEEN_NODES)
    finally:
        nobody.close()


def test_what_is_no_job_fits_nowhere(jobs: KubeBackend) -> None:
    with pytest.raises(ManifestError):
        jobs.fit(asking(workers=-1))


def test_the_cluster_is_looked_at_once_for_several_questions(
    jobs: KubeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "FRESH_SECONDS", 3600.0)
    looks = []
    monkeypatch.setattr(nodes, "_look", lambda kube, real=nodes._look: looks.append(1) or real(kube))
    for _ in range(3):
        jobs.fit(asking())
    jobs.hosts()
    assert len(looks) == 1


NO_JOBS: Mapping[str, Capacity] = {}


# -- words -----------------------------------------------------------------------------------------------
def node(
    name: str,
    cpus: int,
    held: int = 0,
    memory: int = 64,
    *,
    pods: int = 100,
    state: str = "ready",
    taints: tuple[Taint, ...] = (),
    jobs: Mapping[str, Capacity] = NO_JOBS,
) -> ClusterNode:
    has = Capacity(cpu=Decimal(cpus), memory=Decimal(memory * GIB), pods=Decimal(pods))
    left_out = "" if state == "ready" else state
    machine = Machine(name=name, capacity=has, taints=taints, left_out=left_out)
    return ClusterNode(machine=machine, state=state, message="", held=Capacity(cpu=Decimal(held)), jobs=jobs)


TAINT = (Taint(key="control-plane", effect="NoSchedule"),)
HELD = {"x/big": Capacity(cpu=Decimal(6)), "x/small": Capacity(cpu=Decimal(1))}


@pytest.mark.parametrize(
    ("nodes_", "document", "now", "ever", "reason"),
    [
        ([node("a", 8)], asking(cpu="4"), True, True, ""),
        ([node("a", 8), node("b", 8)], asking(3, cpu="4"), True, True, ""),
        (
            [node("a", 8, 7, jobs=HELD), node("b", 2)],
            asking(cpu="2"),
            False,
            True,
            "needs 4 CPUs, 3 of 10 are free (held by x/big: 6, x/small: 1)",
        ),
        (
            [node("a", 8, 6), node("b", 8, 6), node("c", 8, 4)],
            asking(1, cpu="5"),
            False,
            True,
            "8 CPUs are free, but no node has the 5 that the worker asks for",
        ),
        (
            [node("a", 8, 3), node("b", 8, 5)],
            asking(2, cpu="4"),
            False,
            True,
            "there is room for 1 of 2 workers: free resources are scattered over the nodes",
        ),
        (
            [node("a", 4, 0, memory=1), node("b", 8, 8)],
            asking(1, cpu="2", memory="4Gi"),
            False,
            True,
            "no node has 2 CPUs and 4 GiB of memory free at the same time, which the worker asks for",
        ),
        (
            [node("a", 4, 0, memory=1), node("b", 1)],
            asking(1, cpu="2", memory="4Gi"),
            False,
            False,
            "no node has 2 CPUs and 4 GiB of memory together, which the worker asks for",
        ),
        ([node("a", 8)], asking(3, cpu="4"), False, False, "needs 12 CPUs, all nodes together have 8"),
        (
            [node("a", 6), node("b", 6)],
            asking(3, cpu="4"),
            False,
            False,
            "even with nothing else on them, the nodes have room for 2 of 3 workers",
        ),
        ([node("a", 8)], asking(nvidia_com__gpu="1"), False, False, "the worker asks for 1 GPU, no node has any"),
        ([node("a", 8, pods=2)], asking(2), False, False, "needs 3 pods, all nodes together have 2"),
        ([node("a", 8, state="unready")], asking(), False, True, "no node is ready"),
        (
            [node("a", 8, taints=TAINT)],
            asking(),
            False,
            False,
            "no node takes the launcher: none has the labels and taints that its template allows for",
        ),
        (
            [node("a", 8, taints=TAINT), node("b", 2)],
            asking(1, cpu="4"),
            False,
            False,
            "the worker asks for 4 CPUs, no node has more than 2",
        ),
        ([], asking(), False, False, "the cluster has no nodes"),
    ],
)
def test_why_it_does_not_fit_is_said_in_plain_words(
    nodes_: list[ClusterNode], document: dict[str, Any], now: bool, ever: bool, reason: str
) -> None:
    found = nodes.fit(job_from_document(document), ClusterView(nodes=tuple(nodes_)), ())
    assert (found.reason, found.now, found.ever) == (reason, now, ever)


def test_without_a_view_of_pods_only_what_could_ever_be_is_known() -> None:
    job = job_from_document(asking(cpu="4"))
    found = nodes.fit(job, ClusterView(nodes=(node("a", 8),), pods=False), ())
    assert (found.now, found.ever, found.reason) == (True, True, UNSEEN_PODS)
    found = nodes.fit(job, ClusterView(nodes=(node("a", 2),), pods=False), ())
    assert (found.now, found.ever) == (False, False)


def test_a_pod_needs_what_the_scheduler_counts() -> None:
    """The most of what runs before, and the sum of what runs together, what stays beside it included."""
    document = asking(1)
    spec = document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    spec["containers"][0]["resources"] = {"requests": {"cpu": 1}, "limits": {"cpu": 9, "memory": "1Gi"}}
    spec["initContainers"] = [
        {"name": "beside", "image": "x", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
        {"name": "before", "image": "x", "resources": {"requests": {"cpu": 2, "memory": "512Mi"}}},
    ]
    spec["overhead"] = {"memory": "1Gi"}
    needed = nodes.gang_of(job_from_document(document)).worker.need
    assert needed == {"cpu": Decimal("2.5"), "memory": Decimal(2 * GIB), "pods": Decimal(1)}
