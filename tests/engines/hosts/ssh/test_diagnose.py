"""How what was seen of hosts is judged; no host is asked here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from oarsman.engines.hosts.ssh.diagnose.diagnosis import (
    MEBIBYTES,
    ROUND_TRIPS,
    Speed,
    judged,
    parsed,
    rounds,
    script,
    summary,
    why_not,
)
from oarsman.engines.hosts.ssh.diagnose.judge import (
    FAIL,
    OK,
    SKIPPED,
    WARN,
    Finding,
    HostSeen,
    WaySeen,
    alike,
    clock,
    reached,
    surroundings,
    unfit,
    way,
)
from oarsman.engines.hosts.ssh.diagnose.questions import timed
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.probe import HostFacts, HostMpi
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.job.mpi import Family

MIB = 1 << 20


def an_mpi(
    launcher: str = "/usr/bin/mpirun", family: Family | None = Family.OPENMPI4, version: str = "4.1.4"
) -> HostMpi:
    return HostMpi(launcher=launcher, real=launcher, family=family, version=version, in_path=True, in_login_path=True)


FACTS = HostFacts(
    hostname="node1",
    user="rower",
    uid=5001,
    home="/home/rower",
    system="Linux",
    architecture="x86_64",
    processors=8,
    memory=64 << 30,
    memory_available=32 << 30,
    load=0.5,
    clock=1000.0,
    gpus=(),
    path="/usr/bin:/bin",
    login_path="/usr/bin:/bin",
    mpis=(an_mpi(),),
    folder="/home/rower/.oarsman",
    folder_problem="",
    folder_free=1 << 40,
    temporary_free=1 << 40,
    addresses=(),
    reached="10.0.0.1",
    rdma=(),
    complete=True,
)
NODE = SshHost(name="node1")


def seen(name: str = "node1", facts: HostFacts = FACTS, **host: object) -> HostSeen:
    return HostSeen(host=SshHost(name=name, **host), facts=facts)  # type: ignore[arg-type]


def a_failure(host: str, other: str = "") -> Finding:
    return Finding(host=host, other=other, step="call-back" if other else "disk", level=FAIL, message="no")


# -- the way from here ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("unresolvable", [], "name"),
        ("refused", ["name"], "port"),
        ("timeout", ["name"], "port"),
        ("unreachable", ["name"], "port"),
        ("jump", ["name"], "port"),
        ("host-key-unknown", ["name", "port"], "host key"),
        ("host-key-changed", ["name", "port"], "host key"),
        ("denied", ["name", "port", "host key"], "login"),
        ("lost", ["name", "port", "host key"], "login"),
        ("odd", ["name", "port", "host key"], "login"),
    ],
)
def test_ssh_stops_at_the_step_that_its_trouble_is_about(kind: str, good: list[str], bad: str) -> None:
    found = list(reached(HostSeen(host=NODE, trouble=Trouble(kind, "node1: no", "try it"))))
    assert [(f.step, f.level) for f in found] == [*((step, OK) for step in good), (bad, FAIL)]
    assert (found[-1].message, found[-1].hint) == ("node1: no", "try it")


def test_a_host_that_answered_passed_every_step() -> None:
    assert [(f.step, f.level) for f in reached(seen())] == [
        ("name", OK),
        ("port", OK),
        ("host key", OK),
        ("login", OK),
    ]


# -- clocks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("its", "asked", "answered", "level", "says"),
    [
        (1000.0, 1000.0, 1000.1, OK, "right"),
        (1001.9, 1000.0, 1000.0, OK, "right"),
        (1002.5, 1000.0, 1000.2, WARN, "node1: its clock is 2 s ahead"),
        (1030.0, 1000.0, 1000.0, WARN, "30 s ahead"),
        (1031.0, 1000.0, 1000.2, FAIL, "31 s ahead"),
        (-2600.0, 1000.0, 1000.2, FAIL, "3600 s behind"),
        (1004.0, 1000.0, 1006.0, OK, "right"),  # somewhere on the way there and back it was that time
        (1009.0, 1000.0, 1006.0, WARN, "6 s ahead"),
    ],
)
def test_a_clock_is_wrong_by_what_the_way_does_not_explain(
    its: float, asked: float, answered: float, level: str, says: str
) -> None:
    found = clock(timed(seen(), its, asked, answered))
    assert (found.level, says in found.message) == (level, True), found.message


# -- surroundings --------------------------------------------------------------------------------------------------

PROFILE = HostMpi(launcher="/opt/x/bin/mpirun", real="/opt/x/bin/mpirun", family=Family.OPENMPI5, in_login_path=True)
BARE = HostMpi(launcher="/usr/bin/orterun", real="/usr/bin/orterun", family=Family.OPENMPI4, in_path=True)
BOTH = an_mpi()
LOGIN = "/opt/x/bin:/usr/bin:/bin"


@pytest.mark.parametrize(
    ("step", "change", "host", "level", "says"),
    [
        ("PATH", {}, {}, OK, "sees what a login sees"),
        ("PATH", {"mpis": ()}, {}, OK, ""),  # that there is none is said elsewhere
        ("PATH", {"login_path": None}, {}, OK, ""),
        (
            "PATH",
            {"mpis": (PROFILE,), "login_path": LOGIN},
            {},
            WARN,
            "node1: mpirun is only found in a login shell, where files such as ~/.profile add /opt/x/bin",
        ),
        ("PATH", {"mpis": (BARE, PROFILE), "login_path": LOGIN}, {}, WARN, "only found in a login shell"),
        (
            "PATH",
            {"mpis": (BOTH, PROFILE), "login_path": LOGIN},
            {},
            WARN,
            "a command over ssh finds /usr/bin/mpirun, a login shell /opt/x/bin/mpirun",
        ),
        ("PATH", {"mpis": (BOTH, PROFILE), "login_path": LOGIN}, {"mpi": "/usr"}, OK, ""),
        ("PATH", {"mpis": (BOTH, PROFILE), "login_path": "/usr/bin:/opt/x/bin"}, {}, OK, ""),
        ("folder", {}, {}, OK, "/home/rower/.oarsman can be written"),
        (
            "folder",
            {"folder_problem": "mkdir: Read-only file system"},
            {},
            FAIL,
            "node1: jobs cannot keep their files in /home/rower/.oarsman: mkdir: Read-only file system",
        ),
        ("disk", {}, {}, OK, "are free"),
        ("disk", {"folder_free": 100 * MIB}, {}, OK, "100 MiB"),
        ("disk", {"folder_free": 100 * MIB - 1}, {}, FAIL, "99 MiB are free for /home/rower/.oarsman"),
        ("disk", {"temporary_free": 0}, {}, FAIL, "0 MiB are free for /tmp"),
        ("disk", {"folder_free": None, "temporary_free": None}, {}, WARN, "not known"),
        ("GPUs", {"gpus": ("A", "A")}, {}, OK, "2 GPUs"),
        ("GPUs", {"gpus": ("A", "A")}, {"gpus": 2}, OK, "2 GPUs"),
        ("GPUs", {"gpus": ("A",)}, {"gpus": 2}, FAIL, "node1: 1 GPUs were found, the inventory says 2"),
        ("GPUs", {"gpus": ("A",)}, {"gpus": 0}, WARN, "the inventory says 0"),
    ],
)
def test_what_jobs_meet_on_a_host(
    step: str, change: dict[str, object], host: dict[str, object], level: str, says: str
) -> None:
    facts = replace(FACTS, **change)  # type: ignore[arg-type]
    found = next(f for f in surroundings(SshHost(name="node1", **host), facts) if f.step == step)  # type: ignore[arg-type]
    assert (found.level, says in found.message) == (level, True), found.message


# -- what has to be the same ---------------------------------------------------------------------------------------


def odd(*hosts: HostSeen) -> dict[str, tuple[str, str, str]]:
    return {f.host: (f.step, f.level, f.message) for f in alike(hosts) if f.level != OK}


MPICH = an_mpi("/opt/mpich/bin/mpirun", Family.MPICH, "4.2.0")
ELSEWHERE = an_mpi("/opt/openmpi/bin/mpirun")


@pytest.mark.parametrize(
    ("change", "host", "expected"),
    [
        ({}, {}, None),
        ({"uid": 6001}, {}, ("user", WARN, "node2: rower has the user id 6001 there, and 5001 on the other hosts")),
        (
            {"uid": 6001},
            {"shared": ("/home",)},
            ("user", FAIL, "node2: rower has the user id 6001 there, and 5001 on the other hosts"),
        ),
        ({"user": "ada"}, {}, ("user", WARN, "node2: the user is ada there, and rower on the other hosts")),
        ({"user": "ada"}, {"user": "ada"}, None),
        ({"mpis": ()}, {}, ("MPI", FAIL, "node2: no MPI was found")),
        (
            {"mpis": (an_mpi(family=None),)},
            {},
            ("MPI", FAIL, "node2: /usr/bin/mpirun did not say in time which MPI it is"),
        ),
        ({"mpis": (an_mpi(version="4.0.3"),)}, {}, None),
        (
            {"mpis": (an_mpi(version="5.0.6", family=Family.OPENMPI5),)},
            {},
            (
                "MPI",
                FAIL,
                "node2 has Open MPI 5.0.6 (/usr/bin/mpirun), the other hosts Open MPI 4.1.4 (/usr/bin/mpirun)",
            ),
        ),
        (
            {"mpis": (MPICH, an_mpi())},
            {},
            (
                "MPI",
                FAIL,
                "node2 has MPICH 4.2.0 (/opt/mpich/bin/mpirun), the other hosts Open MPI 4.1.4 (/usr/bin/mpirun)",
            ),
        ),
        ({"mpis": (ELSEWHERE,)}, {}, ("MPI", FAIL, "node2 has its MPI in /opt/openmpi, the other hosts in /usr")),
        (
            {"mpis": (ELSEWHERE, an_mpi())},
            {},
            ("MPI", WARN, "node2 has its MPI in /opt/openmpi, the other hosts in /usr"),
        ),
    ],
)
def test_the_odd_one_of_three_is_named(
    change: dict[str, object], host: dict[str, object], expected: tuple[str, str, str] | None
) -> None:
    second = seen("node2", replace(FACTS, **change), **host)  # type: ignore[arg-type]
    assert odd(seen("node1"), second, seen("node3")) == ({"node2": expected} if expected else {})


def test_a_host_that_did_not_answer_is_not_counted() -> None:
    silent = [HostSeen(host=SshHost(name=f"dead{n}"), trouble=Trouble("timeout", "no")) for n in range(3)]
    assert odd(seen("node1"), *silent) == {}
    assert odd(*silent) == {}


def test_the_hint_names_the_right_mpi_where_the_odd_host_has_it_too() -> None:
    second = seen("node2", replace(FACTS, mpis=(MPICH, an_mpi())))
    found = [f for f in alike([seen("node1"), second, seen("node3")]) if f.level == FAIL]
    assert [f.hint for f in found] == ["say mpi: /usr/bin/mpirun for it in the inventory"]


# -- ways between hosts --------------------------------------------------------------------------------------------


def a_way(**given: object) -> WaySeen:
    plain = {"host": "node3", "other": SshHost(name="node1"), "address": "10.0.0.1", "code": 0, "call": "connected"}
    return WaySeen(**{**plain, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "said", "good", "bad", "message"),
    [
        (255, "ssh: Could not resolve hostname node1: Name or service not known", [], "name", "the name node1"),
        (255, "ssh: connect to host node1 port 22: Connection refused", ["name"], "port", "nothing listens"),
        (255, "ssh: connect to host node1 port 22: Connection timed out", ["name"], "port", "no answer on port 22"),
        (255, "Host key verification failed.", ["name", "port"], "host key", "its host key is not known yet"),
        (255, "rower@node1: Permission denied (publickey).", ["name", "port", "host key"], "login", "does not let us"),
        (127, "sh: 1: ssh: not found", [], "port", "node3 has no ssh"),
    ],
)
def test_what_hosts_do_not_let_each_other_do_is_a_warning(
    code: int, said: str, good: list[str], bad: str, message: str
) -> None:
    *steps, call = way(a_way(code=code, said=said))
    assert [(f.step, f.level) for f in steps] == [*((step, OK) for step in good), (bad, WARN)]
    assert message in steps[-1].message
    assert "jobs of oarsman" in steps[-1].hint
    assert (call.step, call.level) == ("call-back", OK)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("ssh: connect to host 10.0.0.1 port 40001: Connection timed out", "no answer, as if a firewall dropped it"),
        ("ssh: connect to host 10.0.0.1 port 40001: No route to host", "No route to host"),
        (
            "ssh: connect to host 10.0.0.1 port 40001: Connection refused",
            "refused although an mpirun listens there; a firewall may reject it",
        ),
        ("bash: connect: Connection refused", "refused although an mpirun listens there; a firewall may reject it"),
        ("", "no answer, as if a firewall dropped it"),
    ],
)
def test_a_host_that_cannot_call_back_fails(said: str, why: str) -> None:
    *_, call = way(a_way(call=said))
    assert (call.level, call.host, call.other) == (FAIL, "node3", "node1")
    assert call.message == f"node3 cannot connect to node1 (10.0.0.1): {why}"


def test_what_was_not_tried_says_why() -> None:
    *_, call = way(a_way(call="", untried="no mpirun listens on node1"))
    assert (call.level, call.message) == (
        SKIPPED,
        "not tested whether node3 can connect to node1: no mpirun listens on node1",
    )


# -- who is left out -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failures", "gone"),
    [
        ([], []),
        ([a_failure("b")], ["b"]),
        ([a_failure("c", "a")], ["c"]),
        ([a_failure("a", "c")], ["c"]),
        ([a_failure("a", "b"), a_failure("a", "c")], ["a"]),
        ([a_failure("a", "b"), a_failure("c", "a"), a_failure("d", "c")], ["c", "b"]),
        ([a_failure("b"), a_failure("a", "b"), a_failure("c", "b")], ["b"]),
        ([a_failure("")], []),
    ],
)
def test_as_few_as_needed_are_left_out_and_rather_the_later(failures: list[Finding], gone: list[str]) -> None:
    assert list(unfit(["a", "b", "c", "d"], failures)) == gone


def test_warnings_leave_nobody_out() -> None:
    assert unfit(["a"], [replace(a_failure("a"), level=WARN)]) == {}


# -- a real mpirun -------------------------------------------------------------------------------------------------

HOSTS = [SshHost(name="a"), SshHost(name="b", address="10.0.0.2")]
TRUST = [Finding(host=x, other=y, step="login", level=OK, message="") for x, y in (("a", "b"), ("b", "a"))]


@pytest.mark.parametrize(
    ("hosts", "findings", "why"),
    [
        (HOSTS, TRUST, ""),
        (HOSTS[:1], [], ""),
        ([], [], "no host passed"),
        (HOSTS, TRUST[:1], "b cannot log in to a"),
        ([HOSTS[0], SshHost(name="b", port=2222)], TRUST, "plain mpirun does not know the port and user of b"),
    ],
)
def test_plain_mpirun_needs_trust_and_knows_no_ports(hosts: list[SshHost], findings: list[Finding], why: str) -> None:
    assert why_not(hosts, findings) == why


@pytest.mark.parametrize(
    ("mpi", "line"),
    [
        (an_mpi(), "exec /usr/bin/mpirun --host a:1,10.0.0.2:1 -n 2 uname -n </dev/null\n"),
        (MPICH, "exec /opt/mpich/bin/mpirun -hosts a,10.0.0.2 -ppn 1 -n 2 uname -n </dev/null\n"),
    ],
)
def test_each_family_is_told_in_its_own_words(mpi: HostMpi, line: str) -> None:
    assert mpi.found is not None
    text = script(mpi.found, HOSTS, {"OMPI_MCA_oob_tcp_if_include": "10.0.0.0/24"})
    assert text.endswith(line)
    assert "export OMPI_MCA_oob_tcp_if_include=10.0.0.0/24\n" in text


@pytest.mark.parametrize(
    ("code", "out", "err", "level", "message"),
    [
        (0, "one\ntwo\n", "", OK, "mpirun started a process on each of 2 hosts"),
        (0, "one\none\n", "", FAIL, "mpirun over all hosts failed (nothing came from b): it ended with code 0"),
        (
            1,
            "",
            "-----\nORTE was unable to start\n",
            FAIL,
            "mpirun over all hosts failed (nothing came from a, b): ORTE was unable to start",
        ),
    ],
)
def test_mpirun_is_believed_when_every_host_spoke(code: int, out: str, err: str, level: str, message: str) -> None:
    found = judged(code, out, err, {"a": "one", "b": "two"})
    assert (found.level, found.message) == (level, message)


# -- the network ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7, 16])
def test_everybody_meets_everybody_once_and_nobody_two_at_a_time(count: int) -> None:
    names = [f"node{n}" for n in range(count)]
    found = rounds(names)
    assert all(len({name for pair in pairs for name in pair}) == 2 * len(pairs) for pairs in found)
    met = [frozenset(pair) for pairs in found for pair in pairs]
    assert len(met) == len(set(met)) == count * (count - 1) // 2


PING = "rtt min/avg/max/mdev = 0.045/0.060/0.080/0.010 ms\n"
BUSYBOX = "round-trip min/avg/max = 0.045/0.060/0.080 ms\n"
TRIPS = f"trip 100.0\ntrip {100 + ROUND_TRIPS / 1000}\n"
SENDS = "send 10.0\nsend 10.5\nsend 13.0\n"


@pytest.mark.parametrize(
    ("text", "trusting", "latency", "by", "bandwidth", "why"),
    [
        (PING, False, 0.000045, "ping", None, "a cannot log in to b"),
        (BUSYBOX + SENDS, True, 0.000045, "ping", MEBIBYTES * MIB / 2, ""),
        (TRIPS + SENDS, True, 0.001, "ssh", MEBIBYTES * MIB / 2, ""),
        (TRIPS + "send 10.0\nsend 10.5\n", True, 0.001, "ssh", None, "sending failed on a"),
        ("", False, None, "", None, "there is no ping on a; a cannot log in to b"),
    ],
)
def test_speeds_are_read_from_what_was_said(
    text: str, trusting: bool, latency: float | None, by: str, bandwidth: float | None, why: str
) -> None:
    found = parsed("a", "b", text, trusting)
    assert found.latency == (None if latency is None else pytest.approx(latency))
    assert found.bandwidth == (None if bandwidth is None else pytest.approx(bandwidth))
    assert (found.latency_by, found.why) == (by, why)


def test_the_slow_pair_is_named() -> None:
    speeds = [
        Speed(host="a", other="b", latency=0.001, bandwidth=100.0),
        Speed(host="a", other="c", latency=0.009, bandwidth=300.0),
        Speed(host="b", other="c", latency=0.002, bandwidth=10.0),
        Speed(host="b", other="d"),
    ]
    latency, bandwidth = summary(speeds, "latency"), summary(speeds, "bandwidth")
    assert latency is not None
    assert bandwidth is not None
    assert (latency.least, latency.middle, latency.slowest.other) == (0.001, 0.002, "c")
    assert (bandwidth.least, bandwidth.middle, bandwidth.slowest.host) == (10.0, 100.0, "b")
    assert summary(speeds[-1:], "latency") is None


def test_the_shell_scripts_are_plain() -> None:
    """Hosts have neither bash nor Python: what they are sent begins with a line that says so."""
    folder = Path(__file__).resolve().parents[4] / "src" / "oarsman" / "engines" / "hosts" / "ssh" / "diagnose"
    text = (folder / "ways.sh").read_text()
    assert text.startswith("#!/bin/sh\n")
    assert text.endswith("\nmain\n"), "the shell must have read all of it before it reads its input"
