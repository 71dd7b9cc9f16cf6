"""Hosts that are set up in odd ways: a job runs all the same, or says what is in its way; it never waits in vain."""

from __future__ import annotations

import resource
import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from ssh_hosts import Rack

from oarsman.job.state import Status

from ..machine import mpijob
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]
NO_CODE = {"oarsman.dev/code": "none"}


@contextmanager
def everywhere(rack: Rack, do: str, undo: str) -> Iterator[None]:
    """Commands of root on all hosts, before and after."""
    rack.each(lambda host: host.sh(do))
    try:
        yield
    finally:
        rack.each(lambda host: host.sh(undo))


def over_all(name: str, argv: list[str], hosts: int = 4) -> dict[str, Any]:
    return mpijob(name, argv, workers=hosts, slots=2, annotations=NO_CODE)


def lines_of(machine: SshMachine, document: dict[str, Any]) -> list[str]:
    """What a job wrote that has to succeed."""
    key = machine.submit(document)
    status: Status = machine.until_finished(key).status
    assert status.is_true("Succeeded"), status.cause
    return machine.lines(key)


@pytest.mark.parametrize("noise", ["echo up 1", "printf 'Welcome aboard'"])
def test_what_a_login_shell_says_at_its_start_is_not_taken_for_the_host(
    machine: SshMachine, rack: Rack, noise: str
) -> None:
    for host in rack:
        host.write("/home/rower/.bashrc", f"{noise}\n", "rower")
    shell = "sed -i '/^rower:/s,:[^:]*$,:/bin/{},' /etc/passwd"
    with everywhere(rack, shell.format("bash"), shell.format("sh")):
        said = lines_of(machine, over_all("noisy", ["mpirun", "-n", "8", "sh", "-c", "echo port $MASTER_PORT"]))
    ports = {line.rpartition("port ")[2] for line in said if "port " in line}
    assert len(ports) == 1
    assert ports != {"1"}


def test_a_temporary_folder_from_which_nothing_may_be_started_is_named(machine: SshMachine, rack: Rack) -> None:
    with everywhere(rack, "mount -o remount,noexec /tmp", "mount -o remount,exec /tmp"):
        key = machine.submit(over_all("unwell", ["mpirun", "-n", "4", "hostname"], hosts=2))
        told = "no program can be started from /tmp (is it mounted noexec?)"
        machine.until(key, lambda status: any(told in condition.message for condition in status.conditions))
        machine.jobs.stop(key)
        machine.until_finished(key)
        machine.nothing_left()


@pytest.mark.parametrize("most", [1, 2])
def test_few_sessions_on_a_connection_are_enough_and_no_matter_for_the_log(
    machine: SshMachine, rack: Rack, most: int
) -> None:
    sessions = "sed -i 's/^MaxSessions.*/MaxSessions {}/' /etc/ssh/sshd_config"
    with everywhere(rack, sessions.format(most), sessions.format(200)):
        rack.each(lambda host: (host.stop_sshd(), host.start_sshd()))
        said = lines_of(machine, over_all("few", ["mpirun", "-n", "8", "hostname"]))
    rack.each(lambda host: host.restart_sshd())
    own = [line for line in said if "plm:rsh: Warning" not in line]  # mpirun's, of a race between its own processes
    assert sorted(own) == sorted(2 * [host.name for host in rack])


def test_ssh_in_a_launch_script_keeps_both_streams_apart_and_every_byte(machine: SshMachine) -> None:
    told = r"seq 1 20000; printf 'a\000 \tb\377\n'"
    script = f"""cd $TMPDIR
        ssh rower@asks-worker-1 {shlex.quote(f"{told}; hostname >&2; exit 7")} >out 2>err; echo $?
        ({told}) | cmp - out && cat err
        ssh asks-worker-2 yes | head -n 1
        ssh elsewhere true 2>&1 || :"""
    document = over_all("asks", ["sh", "-c", script])
    assert lines_of(machine, document) == ["7", "node2", "y", "ssh: elsewhere: elsewhere is not a host of this job"]
    machine.nothing_left()


def test_a_job_has_more_ranks_than_a_process_usually_has_files(tmp_path: Path, rack: Rack) -> None:
    _usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = ("prlimit", f"--nofile=50:{most}")  # those who look after the job are started by this command
    with closing(SshMachine(tmp_path / "state", rack, slots=6)) as machine:
        machine.ok("run", "--name", "many", "-np", "24", "--", "sh", "-c", "echo $RANK; echo $RANK >&2", prefix=few)
        assert sorted(machine.rank_lines("default/many")) == sorted(2 * [str(rank) for rank in range(24)])


def test_an_answer_that_nobody_takes_for_long_does_not_silence_the_host(machine: SshMachine) -> None:
    document = over_all("slow", ["sh", "-c", "ssh slow-worker-1 seq 1 50000 | { sleep 6; wc -l; }"])
    document["metadata"]["annotations"]["oarsman.dev/host-silence-seconds"] = "3"
    assert lines_of(machine, document) == ["50000"]


def test_a_host_needs_no_python_and_gets_names_and_links_of_every_kind(machine: SshMachine, rack: Rack) -> None:
    (machine.folder / "数据 文件").write_text("found\n")
    for name, target in (("inside", "数据 文件"), ("dangling", "nowhere"), ("outside", "/etc/hostname")):
        (machine.folder / name).symlink_to(target)
    program = 'cat inside "数据 文件" outside && readlink dangling'
    with rack.host("node2").faults.without("python3"):
        said = lines_of(machine, mpijob("bare", ["mpirun", "-n", "8", "sh", "-c", program], workers=4, slots=2))
    assert sorted(said) == sorted(2 * [*(host.name for host in rack), *8 * ["found"], *4 * ["nowhere"]])


def test_hosts_with_different_mpis_are_named(machine: SshMachine, rack: Rack) -> None:
    with rack.host("node2").faults.other_mpi("openmpi5"):
        status: Status = machine.until_finished(machine.submit(over_all("mixed", ["mpirun", "hostname"]))).status
    assert status.cause is not None
    assert "node1 has Open MPI 4." in status.cause.summary
    assert "node2 has Open MPI 5." in status.cause.summary
    assert status.cause.summary.endswith("all need the same, at the same place")


def test_two_people_run_jobs_of_one_name_on_the_same_hosts_at_once(
    machine: SshMachine, rack: Rack, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    with closing(SshMachine(tmp_path / "other" / "state", rack)) as other:
        both = machine, other
        for each in both:
            (each.folder / "whose").write_text(f"{each.folder}\n")
        met = f"until [ $(ls {rack.shared} | wc -l) = 8 ]; do sleep 0.1; done"
        meet = f"touch {rack.shared}/$RANK.$(tr / _ <whose); {met}"
        document = mpijob("twins", ["mpirun", "-n", "4", "sh", "-c", f"{meet}; cat whose"], slots=2)
        keys = [each.submit(document) for each in both]
        for each, key in zip(both, keys, strict=True):
            assert each.until_finished(key).status.is_true("Succeeded"), each.log_of(key)
            assert each.rank_lines(key) == 4 * [str(each.folder)]
