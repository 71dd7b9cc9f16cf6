"""One host's part in checking the ways between hosts: what another host says of itself is never more than words."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from oarsman.engines.hosts.ssh import diagnose
from oarsman.engines.hosts.ssh.client import Ssh
from oarsman.engines.hosts.ssh.diagnose import questions
from oarsman.engines.hosts.ssh.diagnose.judge import HostSeen
from oarsman.engines.hosts.ssh.diagnose.questions import try_ways
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost

from .test_diagnose import FACTS

pytestmark = pytest.mark.timeout(120)
SCRIPT = resources.files(diagnose) / "ways.sh"


@pytest.mark.parametrize("tool", ["ssh", "bash"])
def test_an_address_and_a_port_are_words_to_whoever_calls_them(tmp_path: Path, tool: str) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("date", "tr", "timeout", tool, "sh"):
        (tools / name).symlink_to(shutil.which(name) or "")
    witness = tmp_path / "witness"
    said = subprocess.run(
        ["/bin/sh", str(SCRIPT)],
        input=f"calls node2 127.0.0.1 1;>{witness} node3 $(>{witness}) 1\nfinish\n",
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    assert [line.split("\t")[:2] for line in said.splitlines()] == [
        ["ready"],
        ["call", "node2"],
        ["call", "node3"],
        ["finished", "silent"],
    ]
    assert not witness.exists()


def a_rack(folder: Path, shell: str, hosts: int = 2) -> tuple[Ssh, list[HostSeen]]:
    """Hosts on which, in place of a shell, something else answers."""
    program = folder / "ssh"
    program.write_text(f"#!/bin/sh\n{shell}\n")
    program.chmod(0o700)
    all_hosts = tuple(SshHost(name=f"node{number + 1}") for number in range(hosts))
    ssh = Ssh(Inventory(file=folder / "hosts", hosts=all_hosts), program=str(program))
    return ssh, [HostSeen(host=host, facts=FACTS) for host in all_hosts]


@pytest.mark.parametrize(
    "said",
    [
        "printf 'ready\\nclock\\t5\\nlistening\\t1;reboot\\n'",
        "printf 'ready\\nclock\\nlistening\\n'",
        "printf 'ready\\nclock\\tlate\\nlistening\\t\\n'",
        "head -c 300000 /dev/zero | tr '\\000' x; echo",
    ],
)
def test_a_host_that_says_what_makes_no_sense_is_as_one_that_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(questions, "_PATIENCE", 0.1)
    ssh, seen = a_rack(tmp_path, f"{said}; printf 'finished\\nfinished\\tsilent\\n'; exec cat >>{tmp_path}/told")
    _, ways = asyncio.run(try_ways(ssh, seen, {"node1": "10.0.0.1", "node2": "10.0.0.2"}))
    assert [(way.host, way.other.name, way.call) for way in ways] == [("node1", "node2", ""), ("node2", "node1", "")]
    assert "reboot" not in (tmp_path / "told").read_text()
    assert os.path.getsize(tmp_path / "told")


DOOR = """mkdir {door}/$$
[ "$(ls {door} | wc -l)" -le 10 ] || {{ rmdir {door}/$$; exit 255; }}
sleep 0.3
rmdir {door}/$$
exec /bin/sh"""


def test_no_more_hosts_are_gone_to_at_once_than_one_door_lets_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All may be behind the same jump host, whose sshd turns away who comes when ten are not logged in yet."""
    (tmp_path / "door").mkdir()
    ssh, seen = a_rack(tmp_path, DOOR.format(door=tmp_path / "door"), hosts=16)
    monkeypatch.setenv("PATH", f"{tmp_path}/none:{os.environ['PATH']}")
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "ssh").symlink_to("/bin/false")
    found, _ = asyncio.run(try_ways(ssh, seen, {}))
    assert [name for name, each in found.items() if not each.within] == [], "whose clock was not read"


def test_whoever_is_gone_before_the_mpirun_listens_leaves_none_behind(tmp_path: Path) -> None:
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(f'#!/bin/sh\necho $$ >{tmp_path}/started\nshift 2\nexec "$@"\n')
    mpirun.chmod(0o755)
    host = subprocess.Popen(["/bin/sh", str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert host.stdin is not None
    assert host.stdout is not None
    try:
        assert host.stdout.readline() == "ready\n"
        host.stdin.write(f"listen {mpirun} tcp\n")
        host.stdin.close()
        host.stdout.close()  # as when the ssh is killed
        host.wait(100)
    finally:
        host.kill()
        host.wait()
    assert not Path("/proc", (tmp_path / "started").read_text().strip()).exists()
