"""PodGroups of both gang schedulers (upstream's P1-P25)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from oarsman.engines.kube.client import resources
from oarsman.engines.kube.objects import gang
from oarsman.engines.kube.objects.common import KubeOptions
from oarsman.engines.kube.objects.launcher import launcher
from oarsman.engines.kube.objects.worker import worker
from oarsman.job.job import Resources

from .kube_jobs import UID, V1, V2BETA1, a_kube_job

VOLCANO = KubeOptions(gang_scheduler="volcano")
PLUGINS = KubeOptions(gang_scheduler="coscheduler")
GIB = 1024**3


def container(
    requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    amounts = {"requests": requests, "limits": limits}
    return {
        "name": "mpi",
        "image": "pi",
        "resources": {part: found for part, found in amounts.items() if found},
        **more,
    }


def sized(
    launcher: list[dict[str, Any]] | None = None, worker: list[dict[str, Any]] | None = None, **given: Any
) -> Any:
    """A job with one CPU and 2 GiB in its launcher and ten times as much in its workers."""
    parts = {"launcher": launcher or [container({"cpu": "1", "memory": "2Gi"}, command=["mpirun", "a"])]}
    parts["worker"] = worker or [container({"cpu": "10", "memory": "32Gi"})]
    classes = given.pop("classes", {})
    for role, containers in parts.items():
        given[role] = {"containers": containers} | ({"priorityClassName": classes[role]} if role in classes else {})
    return a_kube_job(**given)


POLICY = {
    "minAvailable": 2,
    "queue": "policy-queue",
    "priorityClass": "policy-class",
    "minResources": {"cpu": "100", "memory": "512Gi"},
    "scheduleTimeoutSeconds": 100,
}


def group(job: Any, options: KubeOptions, priorities: dict[str, int] | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = gang.pod_group(job, options, priorities)["spec"]
    return spec


# -- the whole object -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "api_version", "spec"),
    [
        pytest.param(
            VOLCANO,
            "scheduling.volcano.sh/v1beta1",
            {"queue": "policy-queue", "priorityClassName": "policy-class"},
            id="volcano",
        ),
        pytest.param(PLUGINS, "scheduling.x-k8s.io/v1alpha1", {"scheduleTimeoutSeconds": 100}, id="plugins"),
    ],
)
def test_p1_what_the_policy_says_is_taken(options: KubeOptions, api_version: str, spec: dict[str, Any]) -> None:
    job = sized(runPolicy={"schedulingPolicy": POLICY}, annotations={"scheduling.volcano.sh/queue-name": "other"})
    assert gang.pod_group(job, options) == {
        "apiVersion": api_version,
        "kind": "PodGroup",
        "metadata": {
            "name": "pi",
            "namespace": "default",
            "labels": {
                "app": "pi",
                "training.kubeflow.org/job-name": "pi",
                "training.kubeflow.org/operator-name": "mpi-operator",
            },
            "ownerReferences": [
                {
                    "apiVersion": V2BETA1,
                    "kind": "MPIJob",
                    "name": "pi",
                    "uid": UID,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"minMember": 2, "minResources": {"cpu": "100", "memory": str(512 * GIB)}, **spec},
    }


def test_p2_without_a_policy_the_group_is_launcher_and_workers_together() -> None:
    job = sized(classes={"launcher": "high"}, annotations={"scheduling.volcano.sh/queue-name": "default"})
    amounts = {"cpu": "21", "memory": str(66 * GIB)}
    assert group(job, VOLCANO) == {
        "minMember": 3,
        "minResources": amounts,
        "queue": "default",
        "priorityClassName": "high",
    }
    assert group(job, PLUGINS) == {"minMember": 3, "minResources": amounts, "scheduleTimeoutSeconds": 0}


def test_p3_a_launcher_alone_is_a_group_of_one() -> None:
    job = a_kube_job(workers=None, launcher={"containers": [container({"cpu": "1"}, command=["mpirun", "a"])]})
    for options in (VOLCANO, PLUGINS):
        assert group(job, options)["minMember"] == 1
        assert group(job, options)["minResources"] == {"cpu": "1"}


@pytest.mark.parametrize(
    ("classes", "policy", "found"),
    [
        pytest.param({"launcher": "l", "worker": "w"}, {"priorityClass": "p"}, "p", id="P4: the policy"),
        pytest.param({"launcher": "l", "worker": "w"}, {}, "l", id="P5: the launcher"),
        pytest.param({"worker": "w"}, {}, "w", id="P6: the worker"),
        pytest.param({}, {}, "", id="P7: nobody"),
    ],
)
def test_whose_priority_class_is_taken(classes: dict[str, str], policy: dict[str, Any], found: str) -> None:
    assert gang.priority_class(sized(classes=classes, runPolicy={"schedulingPolicy": policy})) == found


def test_fields_without_a_value_are_left_out() -> None:
    assert set(group(sized(), VOLCANO)) == {"minMember", "minResources"}


@pytest.mark.parametrize("version", [V1, V2BETA1])
@pytest.mark.parametrize(
    ("options", "label", "annotation"),
    [
        pytest.param(VOLCANO, None, "pi", id="volcano"),
        pytest.param(PLUGINS, "pi", None, id="plugins"),
    ],
)
def test_p8_every_pod_names_its_scheduler_and_group(
    version: str, options: KubeOptions, label: str | None, annotation: str | None
) -> None:
    job = a_kube_job(version=version, worker={"schedulerName": "mine"})
    made = launcher(job, 1, options)
    pods = (made["spec"]["template"] if made["kind"] == "Job" else made, worker(job, 0, options))
    for pod in pods:
        assert pod["spec"]["schedulerName"] == options.gang_scheduler
        assert pod["metadata"]["labels"].get("scheduling.x-k8s.io/pod-group") == label
        assert pod["metadata"]["annotations"].get("scheduling.k8s.io/group-name") == annotation


# -- what is needed -------------------------------------------------------------------------------------
@pytest.mark.parametrize("options", [pytest.param(VOLCANO, id="P9, volcano"), pytest.param(PLUGINS, id="P13, plugins")])
def test_resources_that_are_stated_are_taken(options: KubeOptions) -> None:
    job = sized(runPolicy={"schedulingPolicy": {"minResources": {"cpu": "100", "memory": "512Gi"}}})
    assert group(job, options)["minResources"] == {"cpu": "100", "memory": str(512 * GIB)}


@pytest.mark.parametrize(
    "options", [pytest.param(VOLCANO, id="P10, volcano"), pytest.param(PLUGINS, id="P14, plugins")]
)
def test_a_group_of_nobody_needs_nothing(options: KubeOptions) -> None:
    assert gang.min_resources(sized(), 0, {}) is None
    assert gang.min_resources(sized(), -1, {}) is None


def test_p11_and_p15_containers_of_all_members_are_summed() -> None:
    two = [container({"cpu": "1"}, command=["mpirun", "a"]), {**container({"cpu": "500m"}), "name": "side"}]
    four = [container({"cpu": "2", "memory": "1Gi"}), {**container(None, {"nvidia.com/gpu": 1}), "name": "side"}]
    found = gang.min_resources(sized(two, four, workers=4), 5, {})
    assert found == {"cpu": Decimal("9.5"), "memory": Decimal(4 * GIB), "nvidia.com/gpu": Decimal(4)}
    assert group(sized(two, four, workers=4), PLUGINS)["minResources"]["cpu"] == "9500m"


def test_p12_a_launcher_alone_needs_what_it_needs() -> None:
    job = a_kube_job(workers=None, launcher={"containers": [container({"cpu": "2"}, command=["mpirun", "a"])]})
    assert gang.min_resources(job, 1, {}) == {"cpu": Decimal(2)}


@pytest.mark.parametrize(
    ("classes", "priorities", "members", "cpus"),
    [
        pytest.param({"launcher": "x", "worker": "y"}, {}, 2, 11, id="P16: unknown classes are equal"),
        pytest.param({"launcher": "x", "worker": "y"}, {"x": 9, "y": 1}, 2, 11, id="P17: the launcher first"),
        pytest.param({"launcher": "x", "worker": "y"}, {"x": 1, "y": 9}, 2, 20, id="P24: workers first"),
        pytest.param({}, {}, 2, 11, id="P25: the order stays among equals"),
        pytest.param({"worker": "y"}, {"y": 9}, 3, 21, id="all of them"),
        pytest.param({}, {}, 9, 21, id="no more than there are"),
    ],
)
def test_members_of_higher_priority_are_counted_first(
    classes: dict[str, str], priorities: dict[str, int], members: int, cpus: int
) -> None:
    found = gang.min_resources(sized(classes=classes), members, priorities)
    assert found is not None
    assert found["cpu"] == cpus


@pytest.mark.parametrize(
    ("amounts", "name", "needed"),
    [
        pytest.param(Resources(), "cpu", 0, id="P18: nothing"),
        pytest.param(Resources(requests={"cpu": Decimal(1)}), "cpu", 1, id="P19: a request"),
        pytest.param(Resources(requests={"cpu": Decimal(1)}, limits={"cpu": Decimal(3)}), "cpu", 1, id="P21: request"),
        pytest.param(Resources(requests={"cpu": Decimal(1)}, limits={"gpu": Decimal(3)}), "gpu", 3, id="P21: limit"),
    ],
)
def test_requests_win_over_limits(amounts: Resources, name: str, needed: int) -> None:
    assert amounts.effective(name) == needed


# -- how many -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "members"),
    [
        pytest.param({"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}, 2, id="P22: given"),
        pytest.param({}, 3, id="P23: workers and launcher"),
        pytest.param({"launcherCreationPolicy": "WaitForWorkersReady"}, 2, id="a launcher that comes later"),
        pytest.param(
            {"launcherCreationPolicy": "WaitForWorkersReady", "runPolicy": {"schedulingPolicy": {"minAvailable": 3}}},
            2,
            id="never more than can be there",
        ),
        pytest.param(
            {"launcherCreationPolicy": "WaitForWorkersReady", "workers": None}, 1, id="no workers to wait for"
        ),
    ],
)
def test_a_group_never_waits_for_a_member_that_waits_for_the_group(given: dict[str, Any], members: int) -> None:
    for options in (VOLCANO, PLUGINS):
        assert group(a_kube_job(**given), options)["minMember"] == members


def test_a_launcher_that_comes_later_needs_no_room_in_the_group() -> None:
    assert group(sized(launcherCreationPolicy="WaitForWorkersReady"), VOLCANO)["minResources"]["cpu"] == "20"


# -- who schedules -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("told", "said", "chosen"),
    [
        ("", "", ""),
        ("volcano", "", "volcano"),
        ("volcano", "none", ""),
        ("volcano", "coscheduler", "coscheduler"),
        ("", "volcano", "volcano"),
    ],
)
def test_a_job_may_choose_its_own_scheduler(told: str, said: str, chosen: str) -> None:
    job = a_kube_job(annotations={"oarsman.dev/gang-scheduler": said} if said else {})
    assert gang.scheduler(job, KubeOptions(gang_scheduler=told)) == chosen


def test_without_a_gang_scheduler_pods_are_left_as_they_are() -> None:
    made = worker(a_kube_job(), 0, KubeOptions())
    assert "schedulerName" not in made["spec"]


def test_only_volcano_has_volcanos_groups() -> None:
    assert gang.resource("volcano") is resources.VOLCANO_POD_GROUPS
    assert gang.resource("scheduler-plugins-scheduler") is resources.PLUGINS_POD_GROUPS


# -- differences ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("found", "differs"),
    [
        pytest.param({"minMember": 3}, False, id="the same"),
        pytest.param({"minMember": 3, "queue": "default", "minTaskMember": {}}, False, id="what a webhook filled in"),
        pytest.param({"minMember": 2}, True, id="another number"),
        pytest.param({}, True, id="nothing"),
    ],
)
def test_only_fields_of_ours_make_a_difference(found: dict[str, Any], differs: bool) -> None:
    assert gang.differs({"spec": {"minMember": 3}}, {"spec": found}) is differs


def test_amounts_that_the_server_spells_otherwise_make_no_difference() -> None:
    wanted = {"spec": {"minMember": 3, "minResources": {"cpu": "1500m", "memory": "1073741824"}}}
    found = {"spec": {"minMember": 3, "minResources": {"cpu": "1.5", "memory": "1Gi"}}}
    assert not gang.differs(wanted, found)
