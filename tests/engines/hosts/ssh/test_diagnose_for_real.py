"""Checking real hosts: each planted fault is found and named, and sound hosts have none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from ssh_hosts import Host, Rack

from oarsman.engines.hosts.ssh.client import Ssh
from oarsman.engines.hosts.ssh.diagnose import FAIL, OK, SKIPPED, WARN, Diagnosis, Finding, unfit
from oarsman.engines.hosts.ssh.diagnose.diagnosis import plain_mpirun
from oarsman.engines.hosts.ssh.inventory_file import read

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]
NAMES = ["node1", "node2", "node3", "node4"]


def check(rack: Rack, names: Sequence[str] = NAMES, *, extra: str = "") -> list[Finding]:
    hosts = "".join(f"- name: {name}\n  slots: 2\n" for name in names)
    inventory = read(f"sshConfig: {rack.ssh_config}\n{extra}hosts:\n{hosts}", Path("hosts.yaml").absolute())
    return asyncio.run(Diagnosis(Ssh(inventory), inventory.hosts, real_run=plain_mpirun).run())


def of_level(findings: Sequence[Finding], level: str) -> list[str]:
    return [finding.message for finding in findings if finding.level == level]


@dataclass(frozen=True)
class Case:
    plant: Callable[[Host, Host], object]  # on the first of two hosts
    step: str
    level: str
    says: tuple[str, ...]
    other: str = ""
    host: str = "node3"
    hints: str = ""


CASES = {
    "wrong host key": Case(
        lambda host, _: host.faults.other_host_key(),
        "host key",
        FAIL,
        ("node3", "its host key is not the one in known_hosts"),
    ),
    "closed port": Case(
        lambda host, _: host.faults.closed_port(), "port", FAIL, ("node3: nothing listens on port 22",)
    ),
    "other MPI version": Case(
        lambda host, _: host.faults.other_mpi("openmpi5"),
        "MPI",
        FAIL,
        ("node3 has Open MPI 5.", "the other hosts Open MPI 4."),
    ),
    "other MPI": Case(
        lambda host, _: host.faults.other_mpi("mpich"),
        "MPI",
        FAIL,
        ("node3 has MPICH", "the other hosts Open MPI 4."),
    ),
    "clock ahead by an hour": Case(
        lambda host, _: host.faults.clock_off(3600),
        "clock",
        FAIL,
        ("node3: its clock is 3600 s ahead",),
    ),
    "clock behind by ten seconds": Case(
        lambda host, _: host.faults.clock_off(-10),
        "clock",
        WARN,
        ("node3: its clock is 10 s behind",),
    ),
    "unwritable folder": Case(
        lambda host, _: host.faults.unwritable(),
        "folder",
        FAIL,
        ("node3: jobs cannot keep their files in /home/rower/.oarsman:", "Permission denied"),
    ),
    "unresolvable name": Case(
        lambda host, other: host.faults.unknown_name(other),
        "name",
        WARN,
        ("node3 cannot log in to node1: the name node1 is not known",),
        other="node1",
    ),
    "one-way firewall that drops": Case(
        lambda host, other: other.faults.drop_connections_from(host),
        "call-back",
        FAIL,
        ("node3 cannot connect to node1 (10.", "no answer"),
        other="node1",
    ),
    "one-way firewall that refuses": Case(
        lambda host, other: other.faults.refuse_connections_from(host),
        "call-back",
        FAIL,
        ("node3 cannot connect to node1 (10.", "refused"),
        other="node1",
    ),
    "PATH missing in non-interactive shells": Case(
        lambda host, _: host.faults.path_only_in_profile(),
        "PATH",
        WARN,
        ("node3: mpirun is only found in a login shell", "~/.profile", "/.mpi/openmpi5/bin"),
    ),
    "full disk": Case(
        lambda host, _: host.faults.full_disk(),
        "disk",
        FAIL,
        ("node3: the disk is full: 0 MiB are free for /home",),
    ),
    "wrong user": Case(
        lambda host, _: host.faults.no_user(), "login", FAIL, ("node3: it does not let us log in as rower",)
    ),
    "other user id": Case(
        lambda host, _: host.faults.other_uid(6001),
        "user",
        WARN,
        ("node3: rower has the user id 6001 there, and 5001 on the other hosts",),
    ),
    "key not admitted": Case(
        lambda host, _: host.faults.key_not_admitted(), "login", FAIL, ("node3: it does not let us log in",)
    ),
    # Whether the network still waits or already knows that nobody is there decides between two messages.
    "no power": Case(
        lambda host, _: host.faults.power_off(), "port", FAIL, ("node3: ",), hints="it is switched off, or"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_planted_fault_is_found_and_named(rack: Rack, name: str) -> None:
    case = CASES[name]
    case.plant(rack.host(case.host), rack.host("node1"))
    findings = check(rack, ["node1", "node2", "node3"])
    found = [
        f for f in findings if (f.host, f.other, f.step, f.level) == (case.host, case.other, case.step, case.level)
    ]
    assert len(found) == 1, [f for f in findings if f.level not in (OK, SKIPPED)]
    assert all(words in found[0].message for words in case.says), found[0].message
    assert found[0].hint
    assert found[0].hint.startswith(case.hints)
    others = [f for f in findings if f.level == FAIL and case.host not in (f.host, f.other)]
    assert others == []
    if case.level == FAIL:
        assert list(unfit(["node1", "node2", "node3"], findings)) == [case.host]


def test_four_sound_hosts_have_no_failure_and_are_told_that_they_do_not_trust_each_other(rack: Rack) -> None:
    findings = check(rack)
    assert of_level(findings, FAIL) == []
    assert {(f.step, f.other != "") for f in findings if f.level == WARN} == {("host key", True)}
    calls = [f for f in findings if f.step == "call-back"]
    assert {(f.host, f.other) for f in calls} == {(a, b) for a in NAMES for b in NAMES if a != b}
    assert {f.level for f in calls} == {OK}
    assert of_level(findings, SKIPPED) == ["mpirun was not tried: node1 cannot log in to node2"]


def test_four_hosts_that_trust_each_other_pass_run_a_real_mpirun_and_nothing_is_left_on_them(rack: Rack) -> None:
    def files(host: Host) -> str:
        return host.sh("find /home /tmp /var/tmp /dev/shm -newermt @0 ! -type d 2>/dev/null | sort")

    rack.trust()
    before = rack.each(files)
    findings = check(rack)
    assert of_level(findings, FAIL) + of_level(findings, WARN) + of_level(findings, SKIPPED) == []
    assert findings[-1].message == "mpirun started a process on each of 4 hosts"
    assert rack.each(files) == before
    assert rack.each(lambda host: host.commands()) == [[], [], [], []]


@pytest.mark.parametrize("mpi", ["openmpi4", "openmpi5", "mpich", "intel"])
def test_every_mpi_is_listened_with_and_run(rack: Rack, mpi: str) -> None:
    rack.trust()
    root = Path(__file__).resolve().parents[4] / ".mpi" / mpi
    rack.host("node2").faults.drop_connections_from(rack.host("node1"))
    findings = check(rack, ["node1", "node2", "node3"], extra=f"defaults: {{mpi: {root}}}\n")
    assert of_level(findings, FAIL) == [
        f"node1 cannot connect to node2 ({rack.host('node2').address}): no answer, as if a firewall dropped it"
    ]
    assert {f.level for f in findings if f.step == "call-back" and (f.host, f.other) != ("node1", "node2")} == {OK}
    assert findings[-1].message == "mpirun started a process on each of 2 hosts", "node2 has to go"


def test_a_host_of_busybox_is_checked_like_any_other(rack: Rack) -> None:
    rack.trust()
    rack.host("node2").faults.busybox()
    findings = check(rack, ["node1", "node2"])
    assert of_level(findings, FAIL) + of_level(findings, SKIPPED) == []
    assert {f.level for f in findings if f.step == "call-back"} == {OK}


def test_a_host_without_an_ssh_of_its_own_connects_by_bash(rack: Rack) -> None:
    rack.host("node2").faults.without("ssh")
    rack.host("node3").faults.drop_connections_from(rack.host("node2"))
    findings = check(rack, ["node1", "node2", "node3"])
    assert "node2 has no ssh to go to node1" in of_level(findings, WARN)
    assert [(f.host, f.other) for f in findings if f.level == FAIL] == [("node2", "node3")]
    assert {f.level for f in findings if f.step == "call-back" and f.other == "node1"} == {OK}


def test_a_host_with_nothing_to_connect_with_says_so(rack: Rack) -> None:
    rack.host("node2").faults.without("ssh", "bash")
    findings = check(rack, ["node1", "node2"])
    assert of_level(findings, FAIL) == []
    why = "not tested whether node2 can connect to node1: node2 has neither ssh nor bash to try it with"
    assert why in of_level(findings, SKIPPED)


def test_two_hosts_that_are_one_machine_are_said_to_be(rack: Rack) -> None:
    address = rack.host("node1").address
    text = f"sshConfig: {rack.ssh_config}\nhosts: [{{name: node1}}, {{name: twin, address: {address}}}]\n"
    inventory = read(text, Path("hosts.yaml").absolute())
    findings = asyncio.run(Diagnosis(Ssh(inventory), inventory.hosts).run())
    assert of_level(findings, FAIL) == ["node1 and twin have the same addresses, as if they were one machine"]


def test_hosts_that_share_a_home_do_not_get_in_each_others_way(rack: Rack) -> None:
    findings = check(rack, extra=f"defaults: {{folder: {rack.shared}/deep/in/there}}\n")
    assert {f.level for f in findings if f.step == "folder"} == {OK}
