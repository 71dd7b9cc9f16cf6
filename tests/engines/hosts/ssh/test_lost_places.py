"""A host that goes away while it still counts as well: its jobs run elsewhere, or wait and say why."""

from __future__ import annotations

import pytest
from ssh_hosts import Rack

from oarsman import names
from oarsman.job.state import Status

from ..machine import mpijob
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(400)]
NO_CODE = {names.ANNOTATION_CODE: "none"}
CODE = [pytest.param({}, id="copied"), pytest.param(NO_CODE, id="not-copied")]


@pytest.fixture
def machine(machine: SshMachine) -> SshMachine:
    """All hosts answered a moment ago."""
    (machine.folder / "data").write_text("some code\n")
    first = machine.submit(mpijob("first", ["true"], annotations=NO_CODE))
    machine.until_finished(first)
    machine.clear()  # its room is free again
    return machine


def waits_for_node1(status: Status) -> bool:
    queued = status.condition(names.QUEUED)
    said = queued is not None and queued.status and queued.reason == names.REASON_NO_HOSTS
    return said and "node1: nothing listens on port 22" in queued.message and status.queue is not None


def test_run_fails_at_once_where_somebody_has_to_let_us_in_and_waits_if_told_to(
    machine: SshMachine, rack: Rack
) -> None:
    denied = rack.host("node1").faults.key_not_admitted()
    words = ("--name", "denied", "--code", "none", "--workers", "4", "-n", "8", "--", "hostname")
    done = machine.run("run", *words)
    assert done.returncode == 2, done.stderr
    assert "node1: it does not let us log in as rower" in done.stderr
    assert f"set up the login with `oarsman hosts trust --hosts {machine.inventory}`" in done.stderr
    assert machine.ok("list", "-o", "name") == ""
    waits = machine.start("run", "--wait-for-hosts", *words)
    assert waits.stdout is not None
    assert any("node1: it does not let us log in as rower" in line for line in waits.stdout)
    denied.undo()
    said, _ = waits.communicate(timeout=200)
    assert waits.returncode == 0, said


def lost(machine: SshMachine, key: str) -> None:
    """It had been given the host that is away."""
    told = [event.message for event in machine.jobs.events(key) if event.reason == names.REASON_NO_HOSTS]
    assert "placed anew: node1: nothing listens on port 22" in told, machine.log_of(key)
    assert "node1: nothing listens on port 22" not in told  # it is told once


@pytest.mark.parametrize("annotations", CODE)
def test_a_job_whose_host_is_away_starts_on_another(
    machine: SshMachine, rack: Rack, annotations: dict[str, str]
) -> None:
    rack.host("node1").faults.closed_port()
    key = machine.submit(mpijob("moved", ["mpirun", "hostname"], workers=1, slots=2, annotations=annotations))
    record = machine.until_finished(key)
    assert record.status.is_true(names.SUCCEEDED), (record.status, machine.log_of(key))
    assert machine.rank_lines(key) == ["node2", "node2"]
    assert set(record.status.machines.values()) == {"node2"}
    assert [attempt.outcome for attempt in record.status.attempts] == ["Succeeded"]
    lost(machine, key)


@pytest.mark.parametrize("annotations", CODE)
def test_a_job_that_needs_a_host_that_is_away_says_so_and_keeps_nobody_out(
    machine: SshMachine, rack: Rack, annotations: dict[str, str]
) -> None:
    gone = rack.host("node1").faults.closed_port()
    large = machine.submit(mpijob("large", ["mpirun", "hostname"], workers=4, slots=2, annotations=annotations))
    machine.until(large, waits_for_node1)
    lost(machine, large)
    small = machine.submit(mpijob("small", ["mpirun", "hostname"], workers=3, slots=2, annotations=annotations))
    assert machine.until_finished(small).status.is_true(names.SUCCEEDED)
    gone.undo()
    assert machine.until_finished(large).status.is_true(names.SUCCEEDED)
    assert len(machine.rank_lines(large)) == 8


def test_a_host_whose_disk_is_full_gets_no_job_until_there_is_room(machine: SshMachine, rack: Rack) -> None:
    full = rack.host("node1").faults.full_disk("/tmp")
    machine.write_inventory("hosts.yaml")  # hosts are asked again
    key = machine.submit(mpijob("moved", ["mpirun", "hostname"], workers=1, slots=2, annotations=NO_CODE))
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert machine.rank_lines(key) == ["node2", "node2"]
    large = machine.submit(mpijob("large", ["mpirun", "hostname"], workers=4, slots=2, annotations=NO_CODE))
    told = "node1: the disk is full: less than 1 MiB is free for /tmp"
    machine.until(large, lambda status: any(told in condition.message for condition in status.conditions))
    full.undo()
    assert machine.until_finished(large).status.is_true(names.SUCCEEDED), machine.log_of(large)
