"""Hosts and tools that say nothing, or nonsense, when trust is set up: they are named, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from oarsman.engines.hosts.ssh.client import Answer
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.engines.hosts.ssh.trust import login
from oarsman.engines.hosts.ssh.trust.changes import Peer, contested, on_host
from oarsman.engines.hosts.ssh.trust.files import PublicKey
from oarsman.engines.hosts.ssh.trust.folders import File, FolderSeen, SshFolder
from oarsman.engines.hosts.ssh.trust.login import Way, opening_key

pytestmark = pytest.mark.timeout(120)
TROUBLE = Trouble("other", "node1: its shell did not run the command")
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ"
FILES = "".join(f"file\t{name}\tnone\t\n" for name in ("authorized_keys", "known_hosts", "config"))
SEEN = f"user\trower\nnode\tnode1\nhome\t5 .\n{FILES}reached\t10.0.0.9\t5\t10.0.0.1\t22\naddress\teth0\t10.0.0.1\n"


def a_place(said: str) -> SshFolder:
    async def run(_script: str, _timeout: float) -> Answer:
        return Answer(0, f"\noarsman-trust\n{said}end\n", "")

    return SshFolder("node1", run)


@pytest.mark.parametrize(
    ("said", "senseless"),
    [
        (SEEN, False),
        (SEEN.replace("user\trower\n", ""), True),
        (SEEN.replace("none\t", "7 7\todd"), True),
        (SEEN.replace("file\tknown_hosts", "file\tothers"), True),
        (f"{SEEN}address\n", False),
        ("", True),
    ],
)
def test_a_host_that_describes_itself_in_nonsense_is_named(said: str, senseless: bool) -> None:
    assert (asyncio.run(a_place(said).look()) == TROUBLE) is senseless


@pytest.mark.parametrize(
    ("said", "odd"),
    [
        (SEEN.replace("\t10.0.0.1\t22", "\t10.6.6.6,*\t22"), "10.6.6.6,*"),
        (SEEN.replace("\t10.0.0.1\t22", "\tgithub.com\t22"), "github.com"),
        (SEEN.replace("\t10.0.0.1\t22", "\t0.0.0.0\t22"), "0.0.0.0"),
        (SEEN.replace("\t22", "\tport"), "port"),
        (SEEN.replace("\t22", "\t22\u0661"), "22\u0661"),
        (SEEN.replace("node1", "node1,*"), "node1,*"),
        (SEEN.replace("node1", "* !x"), "* !x"),
        (SEEN.replace("node1", "-oProxyCommand=x"), "-oProxyCommand=x"),
        (SEEN.replace("node1", "#node1"), "#node1"),
        (SEEN.replace("rower", "rower x"), "rower x"),
        (SEEN.replace("rower", "-rower"), "-rower"),
        (SEEN.replace("rower", "%h"), "%h"),
        (SEEN.replace("address\teth0\t10.0.0.1", 'address\teth0\t10.0.0.1",command="x'), '10.0.0.1",command="x'),
        (SEEN.replace("address\teth0\t10.0.0.1", "address\teth0\t*"), "*"),
        (f"{SEEN}address\teth0\t2001:db8::1%x,*\n", "2001:db8::1%x,*"),
        (f"{SEEN}key\t@cert-authority * {KEY}\n", "@cert-authority"),
        (f'{SEEN}key\tenvironment="x AAAA",cert-authority {KEY}\n', "cert-authority"),
        (f"{SEEN}key\tssh-rsa {KEY.split()[1]}\n", "ssh-rsa"),
    ],
)
def test_a_host_that_calls_itself_what_would_mean_more_elsewhere_is_named_with_it(said: str, odd: str) -> None:
    found = asyncio.run(a_place(said).look())
    assert isinstance(found, Trouble)
    assert found.message.startswith("node1: ")
    assert odd in found.message


@pytest.mark.parametrize("user", ["rower", "jane@corp.example", "CORP\\jane", "_svc", "a.b-c+d"])
def test_users_of_every_directory_are_users(user: str) -> None:
    assert not isinstance(asyncio.run(a_place(SEEN.replace("rower", user)).look()), Trouble)


def test_what_a_host_says_beyond_its_questions_is_nothing_to_show() -> None:
    said = f"{SEEN}missing\t\x1b[2Jod\nmode\t\x1b]0;title\trwxrwxrwx\nunreadable\t\x1b[2J\n"
    seen = asyncio.run(a_place(said).look())
    assert isinstance(seen, FolderSeen)
    assert (seen.missing, seen.open_to_others) == ((), ())


def peer(name: str, claims: str, key: PublicKey, *, pair: str = "", addresses: tuple[str, ...] = ()) -> Peer:
    none = dict.fromkeys(("authorized_keys", "known_hosts", "config"), File(None, "none"))
    seen = FolderSeen(
        user="rower", node=name, address=claims, addresses=addresses, port=22, key=pair, number="", files=none
    )
    return Peer(SshHost(name=name), seen, key)


FIRST, SECOND = PublicKey("ssh-ed25519", KEY.split()[1]), PublicKey("ssh-ed25519", KEY.split()[1][:-4] + "IeZK")


def test_the_address_of_another_host_is_refused_and_stays_with_whom_the_inventory_gives_it() -> None:
    node1, liar = peer("10.0.0.1", "10.0.0.1", FIRST), peer("node2", "10.0.0.1", SECOND)
    assert contested([node1, liar]) == {"node2": ("10.0.0.1", "10.0.0.1")}
    assert contested([peer("node1", "10.0.0.1", FIRST), liar]).keys() == {"node1", "node2"}
    elsewhere = replace(liar, seen=replace(liar.seen, port=2222))
    assert contested([node1, elsewhere]).keys() == {"node2"}
    assert contested([node1, replace(elsewhere, host=SshHost(name="node2", port=2222))]) == {}
    assert contested([node1, peer("node2", "10.0.0.1", FIRST)]) == {}  # copies of one disk, or one machine


def test_of_a_key_only_the_key_gets_into_the_files_of_others_for_commands_alone_and_from_its_own_addresses() -> None:
    pair = f"{KEY} a comment oarsman-trust:id,cert-authority"
    me = peer("node1", "10.0.0.1", FIRST)
    other = peer("node2", "10.0.0.2", SECOND, pair=pair, addresses=("10.9.0.2", "10.0.0.2"))
    done = next(edit for edit in on_host(me, [me, other], [], "id").edits if edit.label == "authorized_keys")
    assert done.after == f'restrict,from="10.0.0.2,10.9.0.2" {KEY} node2 oarsman-trust:id:created\n'.encode()


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("visit\tnode2\t0\t\nvisit\n", {"node2": (0, "")}),
        ("visit\tnode2\tx\t\n", TROUBLE),
        ("visit\tnode2\t0\tx\n", TROUBLE),
    ],
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
    (tmp_path / "id.pub").write_text(f"{KEY} me\n")
    way = Way("node1", "me", "node1", (), (tmp_path / "id",), indirect=False)
    assert asyncio.run(opening_key(way, tmp_path, None)).public == ""
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
