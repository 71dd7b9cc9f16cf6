"""Documents made from Python: valid, readable, changed without surprises, and what is refused is refused by name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oarsman.client.mpijob import MPIJob
from oarsman.errors import ManifestError, UsageError
from oarsman.manifest import builder, load

ROOT = Path(__file__).parents[2]
SEEDS = sorted((ROOT / "examples").glob("**/*.yaml"))
LIMIT = 3


def job(**fields: Any) -> MPIJob:
    return MPIJob("train", command=["python", "train.py"], **fields)


def container(made: MPIJob, role: str = "Launcher") -> Any:
    return made.to_dict()["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"][0]


EVERYTHING: dict[str, Any] = {
    "image": "registry/train:1",
    "workers": 4,
    "slots": 2,
    "env": {"SEED": 7},
    "cpus": 2,
    "memory": "4Gi",
    "gpus": 1,
    "gpu_resource": "amd.com/gpu",
    "clean_pod_policy": "All",
    "backoff_limit": 2,
    "deadline": 90.5,
    "ttl": 60,
    "labels": {"team": "a"},
    "annotations": {"note": "x"},
    "volumes": {"/data": "/srv:ro", "/out": "claim"},
    "priority": 5,
    "queue": "night",
    "implementation": "MPICH",
    "namespace": "lab",
}


def test_the_document_is_the_one_the_command_would_make() -> None:
    shape = builder.Shape(processes=4, workers=2, slots=2)
    same = builder.document(["python", "train.py"], shape, builder.JobSettings(name="train"))
    assert job(slots=2).to_dict() == same


@pytest.mark.parametrize("version", ["v2beta1", "v1", "kubeflow.org/v1"])
def test_a_job_with_everything_is_valid_in_both_versions(version: str) -> None:
    made = job(**EVERYTHING, api_version=version)
    assert made.validate() == []
    (read,) = load(made.to_yaml())
    assert (read.name, read.namespace, read.workers, read.slots) == ("train", "lab", 4, 8)
    limits = container(made, "Worker")["resources"]["limits"]
    assert limits == {"cpu": "2", "memory": "4Gi", "amd.com/gpu": "1"}
    policy = made.to_dict()["spec"]["runPolicy"]
    assert (policy["cleanPodPolicy"], policy["backoffLimit"], policy["activeDeadlineSeconds"]) == ("All", 2, 91)
    assert (policy["ttlSecondsAfterFinished"], policy["schedulingPolicy"]["queue"]) == (60, "night")


def test_volumes_are_folders_claims_or_sources() -> None:
    made = job(volumes={"/data": "/srv:ro", "/out": "claim", "/tmp/x": {"emptyDir": {}}})
    for role in ("Launcher", "Worker"):
        pod = made.to_dict()["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
        assert pod["volumes"] == [
            {"name": "vol-data", "hostPath": {"path": "/srv"}},
            {"name": "vol-out", "persistentVolumeClaim": {"claimName": "claim"}},
            {"name": "vol-tmp-x", "emptyDir": {}},
        ]
        mounts = pod["containers"][0]["volumeMounts"]
        assert [(m["mountPath"], m.get("readOnly")) for m in mounts] == [
            ("/data", True),
            ("/out", None),
            ("/tmp/x", None),
        ]
    assert made.validate() == []


def test_two_paths_that_differ_in_case_alone_have_volumes_of_their_own() -> None:
    pod = job(volumes={"/data": "/a", "/DATA": "/b"}).to_dict()["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    folders = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
    mounts = pod["containers"][0]["volumeMounts"]
    assert {mount["mountPath"]: folders[mount["name"]] for mount in mounts} == {"/data": "/a", "/DATA": "/b"}


def test_an_elastic_job_asks_the_discovery_script() -> None:
    made = job(workers=2, slots=2, min_workers=1, max_workers=3)
    words = " ".join(container(made)["command"])
    assert words == (
        "horovodrun -np 4 --min-np 2 --max-np 6 --host-discovery-script /etc/mpi/discover_hosts.sh python train.py"
    )
    assert made.validate() == []
    with pytest.raises(UsageError, match="not between"):
        job(workers=5, max_workers=3)


def test_problems_come_with_their_field() -> None:
    problems = job(clean_pod_policy="Some", labels={"a b": "c"}).validate()
    assert "spec.runPolicy.cleanPodPolicy" in {problem.field for problem in problems}
    assert all(problem.line for problem in problems)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"command": []}, "command"),
        ({"command": "python train.py"}, "command"),
        ({"workers": 0}, "workers"),
        ({"slots": 1.5}, "slots"),
        ({"api_version": "v3"}, "api_version"),
        ({"volumes": {"data": "x"}}, "volumes"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError) as caught:
        MPIJob("train", **{"command": ["true"], **fields})
    assert caught.value.field == field


def test_a_job_without_a_name_gets_one_from_its_program() -> None:
    first, second = (MPIJob(command=["python", "train.py"]) for _ in range(2))
    assert first.name.startswith("train-")
    assert first.name != second.name


# -- reading and changing ---------------------------------------------------------------------------
@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_reading_and_writing_keeps_every_example_as_it_is(path: Path) -> None:
    read = MPIJob.from_yaml(path)
    assert MPIJob.from_yaml(read.to_yaml()) == read
    assert MPIJob.from_yaml(str(path)) == read
    assert read.patch_from(read) == {}


def test_a_text_with_problems_is_not_read() -> None:
    with pytest.raises(ManifestError):
        MPIJob.from_yaml("kind: MPIJob\n")
    with pytest.raises(UsageError, match="2 jobs"):
        MPIJob.from_yaml(f"{job()}---\n{job().changed(name='other')}")


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_a_changed_example_is_still_valid(path: Path) -> None:
    before = MPIJob.from_yaml(path)
    after = before.changed(
        name="another",
        workers=3,
        env={"SEED": 1},
        cpus=1,
        memory="1Gi",
        deadline=60,
        labels={"a": "b"},
        priority=3,
        clean_pod_policy="All",
    )
    assert after.validate() == []
    assert before == MPIJob.from_yaml(path)
    assert load(after.to_yaml())[0].workers == 3


def test_more_workers_mean_more_ranks_where_the_launch_line_filled_every_slot() -> None:
    assert container(job(slots=2).changed(workers=4))["command"][:3] == ["mpirun", "-n", "8"]
    assert container(job().changed(slots=3))["command"][:3] == ["mpirun", "-n", "6"]
    fewer = MPIJob.from_yaml(job(slots=2).to_yaml().replace('- "4"', '- "3"'))
    assert container(fewer.changed(workers=4))["command"][:3] == ["mpirun", "-n", "3"]


def test_a_changed_command_keeps_the_launch_line() -> None:
    assert container(job(slots=2).changed(command=["./b", "-x"]))["command"] == ["mpirun", "-n", "4", "./b", "-x"]


def test_none_takes_away() -> None:
    made = job(env={"A": 1, "B": 2}, labels={"x": "1", "y": "2"}, memory="1Gi", gpus=1, ttl=5)
    made = made.changed(env={"A": None}, labels={"x": None}, memory=None, gpus=0, ttl=None)
    assert container(made)["env"] == [{"name": "B", "value": "2"}]
    assert made.to_dict()["metadata"]["labels"] == {"y": "2"}
    assert "resources" not in container(made, "Worker")
    assert "ttlSecondsAfterFinished" not in made.to_dict()["spec"]["runPolicy"]
    assert made.validate() == []


def test_a_changed_variable_stays_before_those_that_refer_to_it() -> None:
    made = job(env={"A": 1, "B": "$(A)"}).changed(env={"A": 2, "C": 3})
    assert [(item["name"], item["value"]) for item in container(made)["env"]] == [("A", "2"), ("B", "$(A)"), ("C", "3")]


def test_a_part_that_both_roles_share_by_an_alias_is_changed_where_it_was_meant() -> None:
    shared = job().to_dict()
    roles = shared["spec"]["mpiReplicaSpecs"]
    roles["Worker"]["template"] = roles["Launcher"]["template"]
    made = MPIJob.from_dict(shared).changed(memory="1Gi")
    assert "resources" not in container(made)
    assert container(made, "Worker")["resources"] == {"limits": {"memory": "1Gi"}}


def test_a_change_nobody_knows_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="'wokers'") as caught:
        job().changed(wokers=3)
    assert "workers" in (caught.value.hint or "")


def test_jobs_are_values() -> None:
    made = job()
    made.to_dict()["metadata"]["name"] = "x"
    assert made.name == "train"
    assert made == job()
    assert repr(made) == "<MPIJob train>"
    assert "&lt;" in MPIJob("x", command=["<b>"])._repr_html_()


# -- functions --------------------------------------------------------------------------------------
def add(first: int, second: int = 2, *, word: str = "sum") -> None:
    """Stands alone."""
    import os

    numbers = [number for number in (first, second)]  # noqa: C416
    print(word, sum(numbers), os.environ.get("NOWHERE", "nowhere"))


def uses_a_global() -> int:
    return LIMIT


def uses_a_global_deep_inside() -> object:
    return [lambda: load for _ in range(2)]


def has_a_default_from_outside(limit: int = LIMIT) -> int:
    return limit


class Thing:
    def method(self) -> None: ...


def decorated(function: Callable[[], None]) -> Callable[[], None]:
    return function


@decorated
def with_decorator() -> None: ...


async def coroutine() -> None: ...


def counter() -> Any:
    yield 1


def closing_over() -> Callable[[], int]:
    value = 3

    def inner() -> int:
        return value

    return inner


def test_a_function_becomes_a_program_that_runs_anywhere() -> None:
    made = MPIJob.from_function(add, args=[3], kwargs={"word": "it's"}, workers=2)
    assert made.name.startswith("add-")
    assert made.validate() == []
    command = container(made)["command"]
    assert command[:4] == ["mpirun", "-n", "2", sys.executable]
    done = subprocess.run(command[3:], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "it's 5 nowhere\n"


def test_a_function_in_an_image_runs_with_the_images_python() -> None:
    made = MPIJob.from_function(add, "sum", "registry/x", args=[1])
    assert (made.name, container(made)["command"][3], container(made)["image"]) == ("sum", "python3", "registry/x")
    assert container(MPIJob.from_function(add, args=[1], python="/opt/py"))["command"][3] == "/opt/py"


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda: None, "lambda"),
        (uses_a_global, "LIMIT"),
        (uses_a_global_deep_inside, "load"),
        (has_a_default_from_outside, "LIMIT"),
        (Thing().method, "not a function defined"),
        (Thing.method, "method"),
        (with_decorator, "decorators"),
        (coroutine, "coroutine"),
        (counter, "generator"),
        (closing_over(), "value"),
        (print, "not a function defined"),
        (Thing, "not a function defined"),
    ],
)
def test_a_function_that_does_not_stand_alone_is_refused_with_the_reason(function: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        MPIJob.from_function(function)
    assert caught.value.field == "function"


@pytest.mark.parametrize(
    ("args", "why"), [([object()], "type object"), ([float("nan")], "type float"), ([], "missing"), ([1, 2, 3], "many")]
)
def test_arguments_that_do_not_fit_or_cannot_be_written_are_refused(args: list[Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        MPIJob.from_function(add, args=args)


def test_a_function_without_source_is_refused() -> None:
    space: dict[str, Any] = {}
    exec("def nowhere(): pass", space)
    with pytest.raises(UsageError, match="source text is not known"):
        MPIJob.from_function(space["nowhere"])
