"""A state folder that two machines have, as homes on NFS are: the other one is a namespace with names and a /tmp of its
own, in which the same files are locked."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from .machine import Machine, mpijob

pytestmark = [pytest.mark.timeout(200)]
BOOT, NAME = "/proc/sys/kernel/random/boot_id", "/etc/machine-id"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with closing(Machine(tmp_path / "state", mpi="none")) as machine:
        yield machine


def elsewhere(machine: Machine, host: str = "other", id: str = "b" * 32, boot: str = "another") -> tuple[str, ...]:
    """What goes before a command that is said on that machine."""
    mounts = [f"mount -t tmpfs none {machine.paths.run.parent}"]
    for place, text in {NAME: id, BOOT: boot}.items():
        file = machine.folder.parent / f"{Path(place).name}-{host}"
        file.write_text(f"{text}\n")
        mounts.append(f"mount --bind {file} {place}")
    return ("unshare", "-um", "sh", "-ec", "\n".join([f"hostname {host}", *mounts, 'exec "$@"']), "sh")


def test_another_machine_is_refused_at_once_while_jobs_are_looked_after_here(machine: Machine) -> None:
    machine.submit(mpijob("one", ["sleep", "1000"], workers=1))
    running = machine.until("default/one", lambda status: status.is_true("Running"))
    for verb in (["list"], ["submit", "-n", "1", "--", "true"], ["supervisor", "take-over"]):
        said = machine.run(*verb, prefix=elsewhere(machine))
        assert said.returncode != 0, verb
        assert f"{socket.gethostname()} manages {machine.paths.state}" in said.stderr
    machine.ok("supervisor", "stop")
    said = machine.run("list", prefix=elsewhere(machine))
    assert " manages " in said.stderr
    assert "supervisor take-over" in said.stderr
    assert machine.processes(running.job.uid)
    assert "one" in machine.ok("list")


def test_the_state_of_a_machine_that_is_gone_can_be_taken_over(machine: Machine) -> None:
    machine.submit(mpijob("one", ["true"], workers=1))
    machine.until_finished("default/one")
    machine.ok("supervisor", "stop")
    assert machine.paths.lock.read_text() == ""  # nothing is left to do: any machine may go on
    machine.paths.lock.write_text("some boot\nsome id\ngone\n")
    assert "gone manages " in machine.run("list").stderr
    machine.ok("supervisor", "take-over")
    assert "one" in machine.ok("list")
