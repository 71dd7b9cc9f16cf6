"""Each fault is there when it is planted, and gone when it is undone."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ssh_hosts import Host, Rack
from ssh_hosts.faults import Fault

SILENCE = "timed out|No route to host"  # the kernel says so after a few seconds in which nobody answered for an address
WRITE = "head -c 9000 /dev/zero >$(mktemp ./XXXXXX) && echo written"
EARLIER = int(time.time()) - 3600


@dataclass(frozen=True)
class Case:
    plant: Callable[[Host, Host], Fault]  # on the first of two hosts
    probe: str  # a command that rower runs on that host
    sound: str  # what it says when all is well
    faulty: str  # and with the fault, on either stream; both are patterns


CASES = {
    "sshd is gone": Case(lambda host, _: host.faults.closed_port(), "hostname", "node1", "Connection refused"),
    "the cable is cut": Case(lambda host, _: host.faults.cut(), "hostname", "node1", SILENCE),
    "the power is off": Case(lambda host, _: host.faults.power_off(), "hostname", "node1", SILENCE),
    "everything is dropped": Case(lambda host, _: host.faults.silence(), "hostname", "node1", SILENCE),
    "another host key": Case(
        lambda host, _: host.faults.other_host_key(), "hostname", "node1", "IDENTIFICATION HAS CHANGED"
    ),
    "the key is not admitted": Case(
        lambda host, _: host.faults.key_not_admitted(), "hostname", "node1", "Permission denied"
    ),
    "a name is unknown": Case(
        lambda host, other: host.faults.unknown_name(other), "getent hosts node2 || echo unknown", "node2", "unknown"
    ),
    "another MPI": Case(lambda host, _: host.faults.other_mpi("mpich"), "mpirun --version", "Open MPI", "HYDRA"),
    "another Open MPI": Case(
        lambda host, _: host.faults.other_mpi("openmpi5"), "mpirun --version", r"Open MPI\) 4", r"Open MPI\) 5"
    ),
    "no MPI": Case(lambda host, _: host.faults.no_mpi(), "mpirun --version", "Open MPI", "not found"),
    "no MPI but for those who log in": Case(
        lambda host, _: host.faults.path_only_in_profile(), "mpirun --version", r"Open MPI\) 4", "not found"
    ),
    "no Python": Case(
        lambda host, _: host.faults.without("python3", "perl"), "command -v perl || echo none", "/perl", "none"
    ),
    "busybox": Case(
        lambda host, _: host.faults.busybox(),
        "ls --help 2>&1; test -x $(which mpirun) && echo mpirun",
        "GNU(.|\n)*mpirun",
        "BusyBox(.|\n)*mpirun",
    ),
    "another port": Case(lambda host, _: host.faults.other_port(), "hostname", "node1", "refused"),
    "nothing moves": Case(lambda host, _: host.faults.frozen(), "hostname", "node1", SILENCE),
    "the clock": Case(
        lambda host, _: host.faults.clock_off(-7200),
        f"test $(date +%s) -gt {EARLIER} && echo right || echo wrong",
        "right",
        "wrong",
    ),
    "a folder is not writable": Case(lambda host, _: host.faults.unwritable(), WRITE, "written", "Permission denied"),
    "the disk is full": Case(lambda host, _: host.faults.full_disk(), WRITE, "written", "No space left"),
    "the user is missing": Case(lambda host, _: host.faults.no_user(), "hostname", "node1", "Permission denied"),
    "the user has another number": Case(lambda host, _: host.faults.other_uid(), "id -u", "5001", "6001"),
    "the user has another shell": Case(
        lambda host, _: host.faults.login_shell("/usr/bin/tcsh"), "ps -o comm= -p $$", "^sh", "^tcsh"
    ),
    "the user has no shell": Case(
        lambda host, _: host.faults.login_shell("/usr/sbin/nologin"), "hostname", "node1", "not available"
    ),
}


def said(rack: Rack, host: Host, words: str, patience: int = 120) -> str:
    command = ["ssh", "-o", f"ConnectTimeout={patience}", "-o", "BatchMode=yes", host.name, words]
    done = subprocess.run(
        command, env=rack.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_fault_is_planted_and_undone(rack: Rack, case: Case) -> None:
    host, other, *_ = rack
    assert re.search(case.sound, said(rack, host, case.probe))
    with case.plant(host, other):
        assert re.search(case.faulty, said(rack, host, case.probe, 1 if case.faulty == SILENCE else 120))
    assert re.search(case.sound, said(rack, host, case.probe))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_repairing_undoes_a_fault_also_after_the_power_was_off(rack: Rack, case: Case) -> None:
    host, other, *_ = rack
    case.plant(host, other)
    if host.is_up:
        host.kill()
    rack.repair()
    assert re.search(case.sound, said(rack, host, case.probe))


@pytest.mark.parametrize(("how", "error"), [("drop", "timed out"), ("refuse", "refused")])
def test_a_firewall_works_one_way(rack: Rack, how: str, error: str) -> None:
    first, second, third, *_ = rack
    rack.trust()
    with getattr(first.faults, f"{how}_connections_from")(second):
        assert said(rack, first, "ssh node2 hostname") == "node2\n"
        assert error in said(rack, second, "ssh -o ConnectTimeout=2 node1 hostname")
        assert said(rack, third, "ssh node1 hostname") == "node1\n"
    assert said(rack, second, "ssh node1 hostname") == "node1\n"


def test_a_session_hears_nothing_of_a_cut_cable_and_goes_on_when_it_is_mended(rack: Rack) -> None:
    host = rack[0]
    with subprocess.Popen(
        ["ssh", host.name, "cat"], env=rack.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as session:
        assert session.stdin
        assert session.stdout
        session.stdin.write("before\n")
        session.stdin.flush()
        assert session.stdout.readline() == "before\n"
        with host.faults.cut():
            session.stdin.write("meanwhile\n")
            session.stdin.flush()
            assert re.search(SILENCE, said(rack, host, "hostname", 1))
            assert session.poll() is None
        assert session.stdout.readline() == "meanwhile\n"


def test_a_host_that_admits_only_another_host_is_reached_through_that_one(rack: Rack) -> None:
    first, second, *_ = rack
    second.faults.refuse_connections_from(rack.address)
    assert "refused" in said(rack, second, "hostname")
    jump = ["ssh", "-J", first.name, second.name, "hostname"]
    done = subprocess.run(jump, env=rack.environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.stdout == b"node2\n"


def test_faults_are_undone_in_whatever_order_they_were_planted(rack: Rack) -> None:
    faults = rack[0].faults
    for planted in (faults.closed_port, faults.other_host_key, faults.frozen, faults.silence, faults.full_disk):
        planted()
    rack.repair()
    assert said(rack, rack[0], "hostname") == "node1\n"


def test_a_slow_host_takes_its_time(rack: Rack) -> None:
    """200 kB at 1600 kilobits take a second, or longer where the machine is busy."""
    rack[0].faults.slow(1600)
    began = time.monotonic()
    assert len(said(rack, rack[0], "head -c 200000 /dev/zero | tr '\\000' x")) == 200_000
    assert time.monotonic() - began > 0.5


def test_an_impatient_host_gives_up_soon_and_is_patient_again(rack: Rack) -> None:
    retries = "cat /proc/sys/net/ipv4/tcp_syn_retries"
    before = rack[0].sh(retries)
    with rack[0].faults.impatient():
        assert rack[0].sh(retries).strip() == "1"
    assert rack[0].sh(retries) == before


def test_who_logs_in_finds_the_mpi_that_is_only_in_the_profile(rack: Rack) -> None:
    rack[0].faults.path_only_in_profile("openmpi5")
    assert "(Open MPI) 5" in said(rack, rack[0], "sh -lc 'mpirun --version'")


def test_a_full_disk_keeps_what_was_on_it(rack: Rack) -> None:
    host = rack[0]
    host.write("/home/rower/file", "x", "rower")
    with host.faults.full_disk(left=8192):
        assert said(rack, host, "cat file") == "x"
        assert said(rack, host, "head -c 8000 /dev/zero >small && echo fits") == "fits\n"
        assert "No space left" in said(rack, host, "head -c 80000 /dev/zero >large")
    assert said(rack, host, "ls") == "file\n"


def test_the_machine_itself_knows_nothing_of_a_fault(rack: Rack) -> None:
    before = {name: Path(name).read_bytes() for name in ("/etc/passwd", "/etc/hosts")}
    rack[0].faults.no_user()
    rack[0].faults.unknown_name(rack[1])
    assert before == {name: Path(name).read_bytes() for name in before}
