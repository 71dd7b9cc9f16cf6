"""Hosts and tools that say nothing, or nonsense, when trust is set up: they are named, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from oarsman.engines.hosts.ssh.client import Answer
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.engines.hosts.ssh.trust import login
from oarsman.engines.hosts.ssh.trust.folders import SshFolder
from oarsman.engines.hosts.ssh.trust.login import Way, opening_key

pytestmark = pytest.mark.timeout(120)
TROUBLE = Trouble("other", "node1: its shell did not do what it was told")
SEEN = "user\trower\nnode\tnode1\nhome\t5 .\nfile\tconfig\tnone\t\nreached\t10.0.0.9\t5\t10.0.0.1\t22\n"


def a_place(said: str) -> SshFolder:
    async def run(_script: str, _timeout: float) -> Answer:
        return Answer(0, f"\noarsman-trust\n{said}end\n", "")

    return SshFolder("node1", run)


@pytest.mark.parametrize(
    ("said", "senseless"),
    [
        (SEEN, False),
        (SEEN.replace("user\trower\n", ""), True),
        (SEEN.replace("\t22", "\tport"), True),
        (SEEN.replace("none\t", "7 7\todd"), True),
        ("", True),
    ],
)
def test_a_host_that_describes_itself_in_nonsense_is_named(said: str, senseless: bool) -> None:
    assert (asyncio.run(a_place(said).look()) == TROUBLE) is senseless


@pytest.mark.parametrize(
    ("said", "found"),
    [("visit\tnode2\t0\t\n", {"node2": (0, "")}), ("visit\tnode2\tx\t\n", TROUBLE), ("visit\tnode2\t0\tx\n", TROUBLE)],
)
def test_a_host_that_tells_nonsense_of_its_visits_is_named(said: str, found: object) -> None:
    assert asyncio.run(a_place(said).visit(["node2"])) == found


def test_an_agent_that_does_not_answer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, does in (("ssh-add", f"echo $$ >{tmp_path}/pid; exec sleep 600"), ("ssh-keygen", "exit 1")):
        (tools / name).write_text(f"#!/bin/sh\n{does}\n")
        (tools / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setattr(login, "_PATIENCE", 1.0)
    (tmp_path / "id").write_text("locked")
    (tmp_path / "id.pub").write_text("ssh-ed25519 AAAA me\n")
    way = Way("node1", "me", "node1", (), (tmp_path / "id",), indirect=False)
    assert asyncio.run(opening_key(way, tmp_path, None)).public == ""
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
