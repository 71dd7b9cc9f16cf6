"""What fields mean that are more than one value at one place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oarsman.errors import UsageError
from oarsman.manifest import form, load, to_yaml


def _job(launcher: dict[str, Any], worker: dict[str, Any] | None = None, **spec: Any) -> str:
    """A manifest whose main containers say this; the pods may say more under `pod`."""
    roles = {"Launcher": launcher, "Worker": worker}
    specs: dict[str, Any] = {}
    for role, container in roles.items():
        if container is not None:
            pod = container.pop("pod", {})
            specs[role] = {"template": {"spec": {"containers": [{"name": "mpi", **container}], **pod}}}
    if worker is not None:
        specs["Worker"]["replicas"] = spec.pop("workers", 2)
    document = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "pi"},
        "spec": {**spec, "mpiReplicaSpecs": specs},
    }
    return to_yaml([document])


def _container(text: str, role: str) -> dict[str, Any]:
    found: dict[str, Any] = form.document(text)["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"][0]
    return found


def _set(text: str, field: str, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    changed = form.with_value(text, field, value)
    return _container(changed, "Launcher"), _container(changed, "Worker")


# -- both roles ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("launcher", "worker", "expected"),
    [
        ({"image": "a"}, {"image": "a"}, ("c", "c")),
        ({"image": "a"}, {}, ("c", "c")),
        ({}, {}, ("c", "c")),
        ({"image": "a"}, {"image": "b"}, ("c", "b")),
    ],
)
def test_a_worker_follows_the_launcher_unless_it_said_otherwise(
    launcher: dict[str, Any], worker: dict[str, Any], expected: tuple[str, str]
) -> None:
    one, other = _set(_job(launcher, worker), "image", "c")
    assert (one["image"], other["image"]) == expected


def test_a_job_without_workers_gets_none_by_naming_an_image() -> None:
    assert "Worker" not in form.document(form.with_value(_job({}), "image", "a"))["spec"]["mpiReplicaSpecs"]


def test_the_container_that_v1_names_is_the_one_that_is_changed() -> None:
    text = """\
spec:
  mainContainer: mpi
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - {name: proxy, image: a}
          - {name: mpi, image: b}
"""
    assert form.values(form.document(text))["image"] == "b"
    assert form.with_value(text, "image", "c") == text.replace("image: b", "image: c")


# -- ranks ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "spec", "field", "value", "expected"),
    [
        (["mpirun", "-np", "4"], {"slotsPerWorker": 2}, "workers", 3, "6"),
        (["mpirun", "-np", "4"], {"slotsPerWorker": 2}, "slots", 1, "2"),
        (["mpirun", "-np", "2"], {}, "slots", 8, "16"),
        (["mpirun", "-np", "3"], {"slotsPerWorker": 2}, "workers", 3, "3"),
        (["mpirun", "-np", "6"], {"slotsPerWorker": 2, "runLauncherAsWorker": True}, "workers", 3, "8"),
        (["mpirun", "-np", "6"], {"slotsPerWorker": 3}, "slots", None, "2"),
    ],
)
def test_a_launch_line_that_filled_every_slot_goes_on_to_do_so(
    words: list[str], spec: dict[str, Any], field: str, value: int | None, expected: str
) -> None:
    changed = form.with_value(_job({"command": words}, {}, **spec), field, value)
    assert _container(changed, "Launcher")["command"][2] == expected


def test_the_first_workers_of_a_job_run_what_the_launcher_runs() -> None:
    changed = form.with_value(_job({"image": "a", "command": ["mpirun", "-np", "1", "x"]}), "workers", 3)
    (job,) = load(changed)
    assert (job.workers, job.slots) == (3, 3)
    assert _container(changed, "Worker") == {"name": "worker", "image": "a"}
    assert _container(changed, "Launcher")["command"][2] == "3"


# -- elastic ------------------------------------------------------------------------------------------------------
SCRIPT = ["--host-discovery-script", "/etc/mpi/discover_hosts.sh"]


@pytest.mark.parametrize(
    ("words", "field", "value", "expected"),
    [
        (
            ["-np", "2", "--min-np", "1", "--max-np", "3", *SCRIPT, "x"],
            "elastic_max",
            5,
            ["-np", "2", "--min-np", "1", "--max-np", "5", *SCRIPT, "x"],
        ),
        (["-np", "2", "--min-np=1", *SCRIPT, "x"], "elastic_min", 2, ["-np", "2", "--min-np=2", *SCRIPT, "x"]),
        (
            ["-np", "2", "--min-num-proc", "1", *SCRIPT, "x"],
            "elastic_max",
            3,
            ["-np", "2", "--min-num-proc", "1", "--max-np", "3", *SCRIPT, "x"],
        ),
        (
            ["-np", "2", *SCRIPT, "x", "--min-np", "7"],
            "elastic_min",
            1,
            ["-np", "2", "--min-np", "1", *SCRIPT, "x", "--min-np", "7"],
        ),
        ([*SCRIPT, "x"], "elastic_min", 1, ["--min-np", "1", *SCRIPT, "x"]),
        (["--min-np", "1", "--max-np", "3", *SCRIPT, "x"], "elastic_min", None, ["--max-np", "3", *SCRIPT, "x"]),
    ],
)
@pytest.mark.parametrize("split", [0, 1])
def test_the_bounds_of_an_elastic_job_are_words_of_its_launch_line(
    words: list[str], field: str, value: int | None, expected: list[str], split: int
) -> None:
    every = ["horovodrun", *words]
    launcher = {"command": every[:1], "args": every[1:]} if split else {"command": every}
    text = _job(launcher, {})
    changed = form.with_value(text, field, value)
    after = _container(changed, "Launcher")
    assert [*after["command"], *after.get("args", [])] == ["horovodrun", *expected]
    assert len(after["command"]) == 1 or not split
    assert form.values(form.document(changed))[field] == value


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["mpirun", "-np", "2", "x"], "horovodrun"),
        ([], "horovodrun"),
        (["sh", "-c", "horovodrun --min-np 1 --host-discovery-script /x y"], "inside a shell"),
    ],
)
def test_a_job_that_is_not_elastic_has_no_bounds_to_set(command: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says) as raised:
        form.with_value(_job({"command": command}, {}), "elastic_min", 3)
    assert raised.value.hint


# -- amounts ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("before", "field", "value", "after"),
    [
        ({"limits": {"cpu": "2"}}, "worker_cpu", "3", {"limits": {"cpu": "3"}}),
        ({"limits": {"cpu": 2}}, "worker_cpu", "3", {"limits": {"cpu": 3}}),
        ({"limits": {"cpu": 2}}, "worker_cpu", "1.5", {"limits": {"cpu": 1.5}}),
        ({"limits": {"cpu": 2}}, "worker_cpu", "500m", {"limits": {"cpu": "500m"}}),
        ({"limits": {"cpu": 2}}, "worker_gpu", "1", {"limits": {"cpu": 2, "nvidia.com/gpu": 1}}),
        ({"limits": {"memory": "1Gi"}}, "worker_cpu", "1", {"limits": {"memory": "1Gi", "cpu": "1"}}),
        (
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "1Gi"}},
            "worker_cpu",
            "3",
            {"limits": {"cpu": "3"}, "requests": {"cpu": "3", "memory": "1Gi"}},
        ),
        (
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "1Gi"}},
            "worker_cpu",
            None,
            {"requests": {"memory": "1Gi"}},
        ),
        ({"requests": {"cpu": 1}}, "worker_cpu", "2", {"requests": {"cpu": 2}, "limits": {"cpu": 2}}),
        ({"limits": {"amd.com/gpu": 1}}, "worker_gpu", "2", {"limits": {"amd.com/gpu": 2}}),
        (
            {"limits": {"nvidia.com/gpumem": "1k", "nvidia.com/gpumem-percentage": 50}},
            "worker_gpu_memory",
            "2k",
            {"limits": {"nvidia.com/gpumem": "2k", "nvidia.com/gpumem-percentage": 50}},
        ),
        ({"limits": {"nvidia.com/vgpu": "1"}}, "worker_vgpu", "2", {"limits": {"nvidia.com/vgpu": "2"}}),
        ({"limits": {"cpu": "2"}}, "worker_cpu", "", None),
    ],
)
def test_an_amount_is_a_limit_and_what_is_requested(
    before: dict[str, Any], field: str, value: str | None, after: dict[str, Any] | None
) -> None:
    _, worker = _set(_job({}, {"resources": before}), field, value)
    assert json.dumps(worker.get("resources")) == json.dumps(after)


# -- variables ------------------------------------------------------------------------------------------------------
FROM = {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
A, B, OTHER_A = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "9"}


@pytest.mark.parametrize(
    ("launcher", "worker", "value", "expected"),
    [
        ([A, FROM], [FROM], {"A": "3"}, ([{"name": "A", "value": "3"}, FROM], [FROM])),
        ([A], [OTHER_A], {"A": "3"}, ([{"name": "A", "value": "3"}], [OTHER_A])),
        ([A], [A], {"A": "1", "B": "2"}, ([A, B], [A, B])),
        ([A, FROM], [OTHER_A, B], {}, ([FROM], None)),
        (None, [FROM], {"SECRET": "x"}, ([{"name": "SECRET", "value": "x"}], [FROM])),
        ([{"name": "A", "value": 1}], None, {"A": "1", "B": "2"}, ([{"name": "A", "value": 1}, B], [B])),
    ],
)
def test_variables_change_where_they_were_as_shown(
    launcher: Any, worker: Any, value: dict[str, str], expected: tuple[Any, Any]
) -> None:
    text = _job({"env": launcher} if launcher else {}, {"env": worker} if worker else {})
    one, other = _set(text, "env", value)
    assert (one.get("env"), other.get("env")) == expected


def test_a_variable_that_comes_from_elsewhere_is_not_shown_and_not_replaced() -> None:
    text = _job({"env": [FROM]}, {"env": [FROM]})
    assert form.values(form.document(text))["env"] == {}
    with pytest.raises(UsageError, match="from elsewhere"):
        form.with_value(text, "env", {"SECRET": "x"})


def test_our_own_annotations_have_fields_of_their_own() -> None:
    text = form.with_value(_job({}), "priority", 3)
    assert form.values(form.document(text))["annotations"] == {}
    with pytest.raises(UsageError, match="a place of its own"):
        form.with_value(text, "annotations", {"oarsman.dev/priority": "4"})
    assert form.with_value(form.with_value(text, "annotations", {"a": "b"}), "annotations", {}) == text


def test_a_label_of_ours_is_a_label_like_any_other() -> None:
    text = form.with_value(_job({}), "labels", {"oarsman.dev/sweep": "lr", "team": "a"})
    assert form.values(form.document(text))["labels"] == {"oarsman.dev/sweep": "lr", "team": "a"}
    assert form.document(form.with_value(text, "labels", {"team": "a"}))["metadata"]["labels"] == {"team": "a"}


# -- volumes ----------------------------------------------------------------------------------------------------------
def _volume(path: str, source: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"path": path, "source": source, "read_only": read_only}


FOLDER = {"name": "d", "hostPath": {"path": "/data", "type": "Directory"}}
MOUNTS = {
    "volumeMounts": [{"name": "d", "mountPath": "/d"}, {"name": "t", "mountPath": "/t"}],
    "pod": {"volumes": [FOLDER, {"name": "t", "emptyDir": {}}]},
}


def _with_volumes() -> str:
    return _job(json.loads(json.dumps(MOUNTS)), json.loads(json.dumps(MOUNTS)))


def test_folders_and_claims_are_shown_and_other_kinds_are_kept() -> None:
    text = _with_volumes()
    assert form.values(form.document(text))["volumes"] == [_volume("/d", "/data")]
    without = form.document(form.with_value(text, "volumes", []))
    pod = without["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert pod["volumes"] == [{"name": "t", "emptyDir": {}}]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "t", "mountPath": "/t"}]


def test_a_mount_that_says_more_than_the_form_can_show_is_not_shown_and_kept() -> None:
    part = {"name": "d", "mountPath": "/part", "subPath": "x"}
    text = _job({"volumeMounts": [{"name": "d", "mountPath": "/d"}, part], "pod": {"volumes": [FOLDER]}})
    assert form.values(form.document(text))["volumes"] == [_volume("/d", "/data")]
    assert _container(form.with_value(text, "volumes", []), "Launcher")["volumeMounts"] == [part]


@pytest.mark.parametrize(
    ("wanted", "volumes", "mounts"),
    [
        ([_volume("/d", "/data", read_only=True)], [FOLDER], [{"name": "d", "mountPath": "/d", "readOnly": True}]),
        (
            [_volume("/d", "claim")],
            [{"name": "d", "persistentVolumeClaim": {"claimName": "claim"}}],
            [{"name": "d", "mountPath": "/d"}],
        ),
        (
            [_volume("/d", "/data"), _volume("/e", "/data", read_only=True)],
            [FOLDER],
            [{"name": "d", "mountPath": "/d"}, {"name": "d", "mountPath": "/e", "readOnly": True}],
        ),
        (
            [_volume("/e", "c")],
            [{"name": "vol-e", "persistentVolumeClaim": {"claimName": "c"}}],
            [{"name": "vol-e", "mountPath": "/e"}],
        ),
    ],
)
def test_a_volume_is_for_both_roles(
    wanted: list[dict[str, Any]], volumes: list[dict[str, Any]], mounts: list[dict[str, Any]]
) -> None:
    changed = form.with_value(_with_volumes(), "volumes", wanted)
    assert form.values(form.document(changed))["volumes"] == wanted
    for role in ("Launcher", "Worker"):
        pod = form.document(changed)["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
        assert [v for v in pod["volumes"] if v["name"] != "t"] == volumes
        assert [m for m in pod["containers"][0]["volumeMounts"] if m["name"] != "t"] == mounts


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ([_volume("d", "/data")], "a whole path"),
        ([_volume("/d", "")], "what is to be seen at /d"),
        ([_volume("/d", "/a"), _volume("/d", "/b")], "the same path"),
        ([_volume("/t", "/a")], "already at /t"),
    ],
)
def test_a_volume_that_cannot_be_says_why(wanted: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        form.with_value(_with_volumes(), "volumes", wanted)


# -- values ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workers", 0),
        ("workers", "two"),
        ("workers", 2.5),
        ("workers", True),
        ("slots", -1),
        ("retries", -1),
        ("suspend", "yes"),
        ("worker_cpu", "lots"),
        ("command", "mpirun x"),
        ("labels", ["a"]),
        ("name", 5),
        ("nothing", "x"),
    ],
)
def test_a_value_that_a_field_cannot_have_is_refused(field: str, value: Any) -> None:
    with pytest.raises(UsageError) as raised:
        form.with_value(_job({}, {}), field, value)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [("workers", 3.0, 3), ("worker_cpu", 2, "2"), ("worker_cpu", 0.5, "0.5"), ("retries", 0, 0)],
)
def test_numbers_may_come_as_a_browser_sends_them(field: str, value: Any, shown: Any) -> None:
    assert form.values(form.document(form.with_value(_job({}, {}), field, value)))[field] == shown


def test_mpi_is_a_field_of_v2beta1_and_an_annotation_of_v1() -> None:
    text = form.with_value(_job({}), "mpi", "MPICH")
    assert form.document(text)["spec"]["mpiImplementation"] == "MPICH"
    older = form.with_value(text, "api_version", "kubeflow.org/v1")
    assert form.document(older)["metadata"]["annotations"] == {"oarsman.dev/mpi": "mpich"}
    assert form.values(form.document(older))["mpi"] == "MPICH"
    assert form.with_value(older, "api_version", "kubeflow.org/v2beta1") == text


def test_the_older_place_of_the_clean_policy_is_used_where_it_is_used() -> None:
    text = _job({}, cleanPodPolicy="Running", runPolicy={"cleanPodPolicy": "None"})
    assert form.values(form.document(text))["clean_policy"] == "Running"
    assert form.with_value(text, "clean_policy", "All") == text.replace("Running", "All")
    assert "cleanPodPolicy" not in form.with_value(text, "clean_policy", None)
