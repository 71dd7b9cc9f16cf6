"""A command without a manifest becomes a job that does what was typed."""

from __future__ import annotations

import pytest

from oarsman.engines.hosts.core.host_specs import expand
from oarsman.manifest.builder import JobSettings, Shape, document, for_ssh_hosts, name_stem


@pytest.mark.parametrize("word", ["$$", "a $$ b", "$$$$", "$", "$(date)", "$HOME", "$$(x)"])
def test_dollars_of_a_command_are_those_that_were_typed(word: str) -> None:
    made = document(["echo", word], Shape(processes=1), JobSettings())
    launcher = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert [expand(each, {}) for each in launcher["command"]][-1] == word


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


def test_a_name_reminds_of_the_program() -> None:
    names = {
        "python -m pkg.train": "train",
        "./train.py --lr 1": "train",
        "python -m mpi4py train.py": "train",
        "env A=1 bin/My_Prog.exe": "my-prog",
    }
    assert {command: name_stem(command.split()) for command in names} == names


def test_settings_that_are_not_said_are_not_written() -> None:
    assert set(document(["./a"], Shape(processes=2), JobSettings())["metadata"]) == {"name"}
