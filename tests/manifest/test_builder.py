"""A command without a manifest becomes a job that does what was typed."""

from __future__ import annotations

import pytest

from oarsman.job.references import References
from oarsman.manifest import job_from_document
from oarsman.manifest.builder import JobSettings, Shape, document, for_ssh_hosts, name_stem, new_suffix


@pytest.mark.parametrize("word", ["$$", "a $$ b", "$$$$", "$", "$(date)", "$HOME", "$$(x)"])
def test_dollars_of_a_command_are_those_that_were_typed(word: str) -> None:
    made = document(["echo", word], Shape(processes=1), JobSettings())
    launcher = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert [References().replaced(each, {}) for each in launcher["command"]][-1] == word


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        (Shape(processes=8), (8, 1, False)),
        (Shape(processes=8, workers=4), (4, 2, True)),
        (Shape(processes=8, slots=2), (4, 2, False)),
        (Shape(processes=8, workers=2, slots=8), (2, 8, True)),
    ],
)
def test_on_a_rack_ranks_go_wherever_there_is_a_slot_unless_a_number_of_hosts_is_named(
    shape: Shape, wanted: tuple[int, int, bool]
) -> None:
    found = for_ssh_hosts(shape)
    assert (*found.hosts_and_slots, found.spread) == wanted
    annotations = document(["true"], found, JobSettings())["metadata"].get("annotations", {})
    assert annotations.get("oarsman.dev/placement") == ("node" if found.spread else None)


@pytest.mark.parametrize(
    ("command", "stem"),
    [
        (["python", "train.py"], "train"),
        (["/usr/bin/python3.11", "-u", "my_dir/Train_Model.py"], "train-model"),
        (["python", "-m", "pkg.sub.train", "--lr", "3"], "train"),
        (["python", "-c", "print()"], "python"),
        (["python3", "-m", "mpi4py", "train.py"], "train"),
        (["python3", "-m", "mpi4py", "-m", "pkg.train"], "train"),
        (["python3", "-m", "mpi4py", "-c", "print()"], "mpi4py"),
        (["python3", "-m", "mpi4py"], "mpi4py"),
        (["python3", "-m"], "python3"),
        (["./a.out"], "a"),
        (["env", "A=1", "bash", "run.sh"], "run"),
        (["env", "A=1", "bin/My_Prog.exe"], "my-prog"),
        (["bash"], "bash"),
        (["./3d-solver"], "job-3d-solver"),
        (["训练.py"], "job"),
        (["x" * 90], "x" * 40),
        ([], "job"),
    ],
)
def test_a_name_reminds_of_the_program(command: list[str], stem: str) -> None:
    assert name_stem(command) == stem


@pytest.mark.parametrize(
    ("shape", "hosts_and_slots"),
    [
        (Shape(processes=1), (1, 1)),
        (Shape(processes=2), (2, 1)),
        (Shape(processes=5), (2, 3)),
        (Shape(processes=5, workers=5), (5, 1)),
        (Shape(processes=8, slots=2), (4, 2)),
        (Shape(processes=4, workers=2, slots=4), (2, 4)),
    ],
)
def test_ranks_find_room(shape: Shape, hosts_and_slots: tuple[int, int]) -> None:
    assert shape.hosts_and_slots == hosts_and_slots


def test_settings_that_are_not_said_are_not_written() -> None:
    assert set(document(["./a"], Shape(processes=2), JobSettings())["metadata"]) == {"name"}


def test_the_same_command_makes_two_jobs_whose_names_differ_in_the_end() -> None:
    made = [document(["./train.py"], Shape(processes=2), JobSettings(), suffix=new_suffix()) for _ in range(2)]
    first, second = (job_from_document(one).name for one in made)
    assert first != second
    assert (first[:-5], second[:-5]) == ("train-", "train-")
