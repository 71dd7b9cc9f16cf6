"""What goes wrong with hosts over ssh is named, and nothing of a job stays on any of them."""

from __future__ import annotations

import json
import os
import signal

import psutil
import pytest
import yaml
from ssh_hosts import Host, Rack

from oarsman import names
from oarsman.errors import UsageError
from oarsman.job.state import Status
from oarsman.status import words as words_of

from ..machine import mpijob
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]
NO_CODE = {"oarsman.dev/code": "none"}
WAITS = ["sh", "-c", "echo begun; sleep 600"]


def waiting(machine: SshMachine, name: str, hosts: int = 2, **policy: int) -> str:
    """A job with two ranks on each of so many hosts, all of which have begun."""
    words = ["mpirun", "-n", str(2 * hosts), *WAITS]
    key = machine.submit(mpijob(name, words, workers=hosts, slots=2, annotations=NO_CODE, run_policy=policy))
    machine.until_ranks(key, 2 * hosts)
    return key


def cause(status: Status) -> str:
    assert status.cause is not None
    return status.cause.summary


def test_a_rank_that_fails_ends_the_world_on_every_host_and_is_named_with_its_last_words(machine: SshMachine) -> None:
    program = 'echo begun; [ "$RANK" = 5 ] || exec sleep 600; sleep 1; echo no such dataset >&2; exit 3'
    key = machine.submit(
        mpijob("bad", ["mpirun", "-n", "6", "sh", "-c", program], workers=3, slots=2, annotations=NO_CODE)
    )
    status = machine.until_finished(key).status
    assert cause(status) == "rank 5 on bad-worker-2 (node3) exited with code 3: no such dataset"
    machine.nothing_left()


@pytest.mark.parametrize("fault", ["cut", "power_off", "frozen"])
def test_a_host_that_vanishes_is_named_the_others_are_cleared_and_it_is_used_again(
    machine: SshMachine, rack: Rack, fault: str
) -> None:
    key = waiting(machine, "struck", hosts=3)
    node3: Host = rack.host("node3")
    planted = getattr(node3.faults, fault)()
    status = machine.until_finished(key).status
    assert "struck-worker-2" in cause(status)
    assert "node3" in cause(status)
    others = [host for host in rack if host is not node3]
    machine.nothing_left_on(others)
    planted.undo()
    machine.nothing_left()
    again = machine.submit(mpijob("again", ["mpirun", "-n", "8", "hostname"], workers=4, slots=2, annotations=NO_CODE))
    assert machine.until_finished(again).status.is_true("Succeeded")
    assert sorted(machine.rank_lines(again)) == sorted(2 * [host.name for host in rack])


def test_a_job_outlives_its_supervisor(machine: SshMachine) -> None:
    key = waiting(machine, "steady")
    machine.supervisor().kill()
    assert not machine.until_journal(key, lambda seen: seen.agent is not None).ended
    machine.jobs.stop(key)
    machine.until_finished(key)
    machine.nothing_left()


def test_a_job_agent_that_is_killed_takes_its_job_from_every_host(machine: SshMachine) -> None:
    key = waiting(machine, "orphan")
    agent = machine.seen(key).agent
    assert agent is not None
    os.kill(agent.pid, signal.SIGKILL)
    machine.until_finished(key)
    machine.nothing_left()


def test_a_job_whose_agent_was_killed_is_tried_again(machine: SshMachine) -> None:
    key = waiting(machine, "retried", backoffLimit=2)
    agent = machine.seen(key).agent
    assert agent is not None
    os.kill(agent.pid, signal.SIGKILL)
    machine.until(key, lambda status: len(status.attempts) > 1 and status.is_true("Running"))
    machine.jobs.stop(key)
    machine.until_finished(key)
    machine.nothing_left()


def test_a_machine_that_loses_its_power_leaves_nothing_on_the_hosts(machine: SshMachine) -> None:
    """The one that submitted: supervisor, job agent, connections, all at once."""
    key = waiting(machine, "gone")
    agent = psutil.Process(machine.seen(key).agent.pid)  # type: ignore[union-attr]
    family = [machine.supervisor(), agent, *agent.children(recursive=True)]
    for process in family:
        process.suspend()
    for process in family:
        process.kill()
    machine.nothing_left()
    assert machine.until_finished(key).status.is_true("Failed")


def test_a_host_agent_that_is_killed_takes_the_ranks_of_its_host_along(machine: SshMachine, rack: Rack) -> None:
    key = waiting(machine, "unminded")
    rack.host("node2").sh("pkill -KILL -u rower -o -f 'IFS= read -r s'")
    status = machine.until_finished(key).status
    assert "unminded-worker-1" in cause(status)
    assert "node2" in cause(status)
    machine.nothing_left()


def test_a_job_whose_host_was_lost_is_tried_again_when_it_is_back(machine: SshMachine, rack: Rack) -> None:
    key = waiting(machine, "patient", hosts=4, backoffLimit=3)  # there is no other for it
    rack.host("node4").reboot()
    record = machine.until(key, lambda status: len(status.attempts) > 1 and status.attempts[-1].workers is not None)
    assert not record.status.finished
    machine.until(key, lambda status: status.is_true("Running"))


def test_a_folder_that_is_too_large_to_be_copied_is_refused_before_anything_starts(machine: SshMachine) -> None:
    with (machine.folder / "data.bin").open("wb") as file:
        file.truncate(300 << 20)
    status = machine.until_finished(machine.submit(mpijob("large", ["mpirun", "true"]))).status
    assert "data.bin (300.0 MiB)" in cause(status)
    assert ".oarsmanignore" in cause(status)


@pytest.mark.parametrize(("wanted", "launcher"), [("/usr/bin/mpirun-9", "mpirun"), ("", "/usr/openmpi-9/bin/mpirun")])
def test_a_path_without_mpi_is_refused_when_the_job_is_handed_in(
    wanted: str, launcher: str, machine: SshMachine
) -> None:
    annotations = {**NO_CODE, **({names.ANNOTATION_MPI: wanted} if wanted else {})}
    with pytest.raises(UsageError) as refused:
        machine.submit(mpijob("nowhere", [launcher, "true"], annotations=annotations))
    assert str(refused.value).startswith(
        f"there is no MPI at {wanted or launcher}; what was found instead: Open MPI 4."
    )
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(("wanted", "launcher"), [("/bin", "mpirun"), ("", "/bin/mpirun")])
def test_an_mpirun_in_bin_is_that_of_usr(wanted: str, launcher: str, machine: SshMachine) -> None:
    annotations = {**NO_CODE, **({names.ANNOTATION_MPI: wanted} if wanted else {})}
    key = machine.submit(mpijob("in-bin", [launcher, "hostname"], annotations=annotations))
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)


def test_an_mpi_that_the_hosts_do_not_have_is_named_and_nothing_waits_for_it(machine: SshMachine) -> None:
    document = mpijob("other", ["mpirun", "true"], annotations=NO_CODE, mpiImplementation="MPICH")
    status = machine.until_finished(machine.submit(document)).status
    assert cause(status).startswith("node1 has no MPICH (it has Open MPI 4.")


# Long enough to be stopped, and it would end well if nobody did.
FOR_A_WHILE = ["mpirun", "-n", "4", "sh", "-c", "echo begun; sleep 40"]


@pytest.mark.parametrize("begun", [True, False], ids=["while it runs", "before it starts"])
def test_a_stop_that_was_promised_happens_although_a_host_admits_nobody(
    machine: SshMachine, rack: Rack, begun: bool
) -> None:
    """Told to leave in the moment it was told to stop it, the command has left before the job has ended. Of two signals
    of one kind at once a process may see one, so they are of two kinds."""
    closed: Host = rack.host("node2")
    both = yaml.safe_load(machine.inventory.read_text())
    inventory = machine.inventory.with_name("both.yaml")
    inventory.write_text(yaml.safe_dump({**both, "hosts": both["hosts"][:2]}))
    annotations = {**NO_CODE, names.ANNOTATION_INVENTORY: str(inventory)}
    (machine.folder / "job.json").write_text(json.dumps(mpijob("held", FOR_A_WHILE, slots=2, annotations=annotations)))
    fault = None if begun else closed.faults.closed_port()
    command = machine.start("run", "--wait-for-hosts", "job.json")
    assert command.stdout is not None
    awaited = {f"[rank {rank} " for rank in range(4)} if begun else {"node2: "}
    while awaited and (line := command.stdout.readline()):
        awaited = {words for words in awaited if words not in line}
    assert not awaited
    if fault is None:
        assert set(machine.machine_of("default/held").values()) == {"node1", "node2"}
        fault = closed.faults.closed_port()
    for number in (signal.SIGINT, signal.SIGTERM):
        command.send_signal(number)
    said, _ = command.communicate(timeout=machine.patience)
    assert command.returncode == 130, said
    assert "the supervisor continues to stop held" in said
    status = machine.until_finished("default/held").status
    assert words_of.state(status) == words_of.STOPPED
    machine.nothing_left_on([host for host in rack if host is not closed])
    fault.undo()
    machine.nothing_left()
