"""`oarsman hosts` as it is typed, with real hosts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
from ssh_hosts import Host, Rack

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]
COUNT = 3  # hosts: every one is asked for its way to every other
COMMAND = [sys.executable, "-m", "oarsman.cli", "hosts"]


@pytest.fixture
def environment(rack: Rack, tmp_path: Path, shared_state: Path) -> dict[str, str]:
    (tmp_path / "hostfile").write_text("".join(f"{host.name} slots=2\n" for host in rack[:COUNT]))
    mine = {"OARSMAN_HOSTS": str(tmp_path / "hostfile"), "OARSMAN_STATE": str(shared_state), "OARSMAN_LANG": "en"}
    return rack.environment | mine


def call(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], env=environment, capture_output=True, text=True, check=False)


def test_sound_hosts_pass_and_are_listed(rack: Rack, environment: dict[str, str]) -> None:
    checked = call(environment, "check")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "3 hosts, 6 ways between them; failed: 0, warnings: 6\n" in checked.stdout
    listed = json.loads(call(environment, "list", "-o", "json").stdout)
    assert [(host["name"], host["state"], host["free"]) for host in listed] == [
        (host.name, "ready", 2) for host in rack[:COUNT]
    ]


def test_the_network_is_measured_between_all_hosts_that_trust_each_other(
    rack: Rack,
    environment: dict[str, str],
) -> None:
    rack.trust()
    found = json.loads(call(environment, "check", "--network", "-o", "json").stdout)
    ways = found["network"]["ways"]
    assert {frozenset((way["host"], way["other"])) for way in ways} == {
        frozenset(pair) for pair in combinations([host.name for host in rack[:COUNT]], 2)
    }
    assert [way["why"] for way in ways if way["why"]] == []
    assert all(0 < way["latency"] < 10 and way["bandwidth"] > 0 for way in ways)


def test_a_host_behind_a_firewall_is_left_out_and_taken_in_again(
    rack: Rack,
    environment: dict[str, str],
) -> None:
    fault = rack.host("node1").faults.drop_connections_from(rack.host("node3"))
    checked = call(environment, "check", "--leave-out")
    assert checked.returncode == 1
    assert "node3 is left out: node3 cannot connect to node1" in checked.stderr
    assert "node3  left-out" in call(environment, "list").stdout
    fault.undo()
    assert call(environment, "check").returncode == 0
    assert "node3  ready" in call(environment, "list").stdout


def test_a_check_that_is_interrupted_leaves_nothing_running(
    rack: Rack,
    environment: dict[str, str],
) -> None:
    def listening(host: Host) -> bool:
        return any("mpirun" in command for command in host.commands())

    hosts = rack[:COUNT]
    for host in hosts:  # so that there is something to wait for
        host.faults.drop_connections_from(rack.host("node2"))
    with subprocess.Popen([*COMMAND, "check"], env=environment, stdout=subprocess.DEVNULL) as process:
        until(lambda: all(map(listening, hosts)))
        process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    until(lambda: rack.each(lambda host: host.commands()) == [[], [], [], []])


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
