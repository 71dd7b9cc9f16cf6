"""`oarsman hosts` as it is typed, with real hosts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ssh_hosts import Host, Rack

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]
COMMAND = [sys.executable, "-m", "oarsman.cli", "hosts"]


@pytest.fixture
def environment(rack: Rack, tmp_path: Path) -> Iterator[dict[str, str]]:
    (tmp_path / "hostfile").write_text("".join(f"{host.name} slots=2\n" for host in rack))
    mine = {"OARSMAN_HOSTS": str(tmp_path / "hostfile"), "OARSMAN_STATE": str(tmp_path / "state"), "OARSMAN_LANG": "en"}
    yield rack.environment | mine
    # A trial job starts one, which otherwise stays for a while: perhaps longer than the tests.
    subprocess.run([*COMMAND[:-1], "supervisor", "stop"], env=rack.environment | mine, capture_output=True, check=True)


def call(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], env=environment, capture_output=True, text=True, check=False)


def test_sound_hosts_pass_and_are_listed(environment: dict[str, str]) -> None:
    checked = call(environment, "check")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "4 hosts, 12 ways between them; failed: 0, warnings: 12\n" in checked.stdout
    listed = json.loads(call(environment, "list", "-o", "json").stdout)
    assert [(host["name"], host["state"], host["free"]) for host in listed] == [
        (f"node{number}", "ready", 2) for number in range(1, 5)
    ]


def test_the_network_is_measured_between_all_hosts_that_trust_each_other(
    rack: Rack,
    environment: dict[str, str],
) -> None:
    rack.trust()
    found = json.loads(call(environment, "check", "--network", "-o", "json").stdout)
    ways = found["network"]["ways"]
    assert {frozenset((way["host"], way["other"])) for way in ways} == {
        frozenset((f"node{a}", f"node{b}")) for a in range(1, 5) for b in range(1, a)
    }
    assert [way["why"] for way in ways if way["why"]] == []
    assert all(0 < way["latency"] < 10 and way["bandwidth"] > 0 for way in ways)


def test_a_host_behind_a_firewall_is_left_out_and_taken_in_again(
    rack: Rack,
    environment: dict[str, str],
) -> None:
    fault = rack.host("node1").faults.drop_connections_from(rack.host("node4"))
    checked = call(environment, "check", "--leave-out")
    assert checked.returncode == 1
    assert "node4 is left out: node4 cannot connect to node1" in checked.stderr
    assert "node4  left-out" in call(environment, "list").stdout
    fault.undo()
    assert call(environment, "check").returncode == 0
    assert "node4  ready" in call(environment, "list").stdout


def test_a_check_that_is_interrupted_leaves_nothing_running(
    rack: Rack,
    environment: dict[str, str],
) -> None:
    def listening(host: Host) -> bool:
        return any("mpirun" in command for command in host.commands())

    for host in rack:  # so that there is something to wait for
        host.faults.drop_connections_from(rack.host("node2"))
    with subprocess.Popen([*COMMAND, "check"], env=environment, stdout=subprocess.DEVNULL) as process:
        until(lambda: all(rack.each(listening)))
        process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    until(lambda: rack.each(lambda host: host.commands()) == [[], [], [], []])


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
