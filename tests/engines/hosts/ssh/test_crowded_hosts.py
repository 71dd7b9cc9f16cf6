"""An sshd takes few who are not logged in yet (MaxStartups) and turns others away: those come again, one by one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_hosts import Rack

from oarsman.backoff import Backoff
from oarsman.engines.hosts.ssh import client
from oarsman.engines.hosts.ssh.client import Answer, Ssh, on_all
from oarsman.engines.hosts.ssh.code import copy
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.errors import RetryableError

pytestmark = pytest.mark.timeout(300)
TURNED_AWAY = "kex_exchange_identification: read: Connection reset by peer"
CROWD = 24


@pytest.fixture(autouse=True)
def _impatient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "rack" not in request.fixturenames:
        monkeypatch.setattr(client, "_BACKOFF", Backoff(0.001, 0.001))


def an_ssh(folder: Path, says: str, *, times: int, code: int = 255) -> Ssh:
    """One that says so for some times, and then lets everybody in."""
    program = folder / "ssh"
    program.write_text(
        f"#!/bin/sh\necho >>{folder}/calls\n"
        f'if [ "$(wc -l <{folder}/calls)" -le {times} ]; then echo "{says}" >&2; exit {code}; fi\n'
        'while [ "$1" != -- ]; do shift; done; shift 2\neval "$*"\n'
    )
    program.chmod(0o700)
    return Ssh(Inventory(file=folder / "hosts", hosts=()), program=str(program))


def calls(folder: Path) -> int:
    return len((folder / "calls").read_text().splitlines())


@pytest.mark.parametrize(
    ("says", "times", "code", "good", "called"),
    [
        (TURNED_AWAY, 0, 255, True, 1),
        (TURNED_AWAY, 3, 255, True, 4),
        (TURNED_AWAY, 9, 255, False, 5),
        ("ssh_exchange_identification: Connection closed by remote host", 1, 255, True, 2),  # 7.x
        (f"me@gate: Permission denied (publickey).\n{TURNED_AWAY}", 1, 255, False, 1),  # it was not the crowd
        ("Connection to node1 closed by remote host.", 1, 255, False, 1),  # something may have run
        (TURNED_AWAY, 1, 3, False, 1),  # the words of a command, not of ssh
    ],
)
def test_only_who_was_turned_away_at_the_door_knocks_again(
    tmp_path: Path, says: str, times: int, code: int, good: bool, called: int
) -> None:
    ssh = an_ssh(tmp_path, says, times=times, code=code)
    answer = asyncio.run(ssh.run(SshHost(name="node1"), "echo hello\n", timeout=60))
    assert (answer.code == 0, answer.out, calls(tmp_path)) == (good, "hello\n" if good else "", called)


@pytest.mark.parametrize(("times", "called"), [(3, 4), (9, 5)])
def test_who_brings_code_knocks_again_too(tmp_path: Path, times: int, called: int) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "main.py").write_text("print(1)\n")
    ssh = an_ssh(tmp_path, TURNED_AWAY, times=times)
    bringing = copy.copy(
        ssh, SshHost(name="node1"), copy.plan_copy(tmp_path / "code"), str(tmp_path / "copy" / "it"), timeout=60
    )
    if called > times:
        assert asyncio.run(bringing).files == 1
    else:
        with pytest.raises(RetryableError, match="the connection was closed"):
            asyncio.run(bringing)
    assert calls(tmp_path) == called


@pytest.fixture
def crowded(rack: Rack) -> Iterator[Rack]:
    """As Debian's sshd comes."""
    gate = rack[0]
    gate.sh("sed -i 's/^MaxStartups.*/MaxStartups 10:30:100/' /etc/ssh/sshd_config")
    gate.stop_sshd()
    gate.start_sshd()
    yield rack
    gate.restart_sshd()


@pytest.mark.parametrize("jump", [True, False])
def test_many_hosts_behind_one_door_all_answer(crowded: Rack, jump: bool) -> None:
    gate, *others = (host.name for host in crowded)
    hosts = [
        SshHost(name=f"n{number}", address=others[number % 3] if jump else gate, jump=gate if jump else "")
        for number in range(CROWD)
    ]
    ssh = Ssh(Inventory(file=Path(os.devnull), hosts=tuple(hosts), ssh_config=str(crowded.ssh_config)))

    async def greet(host: SshHost) -> Answer:
        return await ssh.run(host, "echo hello\n", timeout=60)

    answers = asyncio.run(on_all(hosts, greet))
    assert {name: str(answer.trouble) for name, answer in answers.items() if answer.code} == {}
