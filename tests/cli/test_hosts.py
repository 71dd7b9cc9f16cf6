"""`oarsman hosts list` and `oarsman hosts check`, with an ssh that only pretends to go elsewhere."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import Result
from waiting import waiting

from oarsman.backends.ssh.backend import SshBackend
from oarsman.cli.hosts_check import folded
from oarsman.cli.text import rfc3339, t
from oarsman.control import host_state
from oarsman.engines.hosts.ssh import inventory_file
from oarsman.engines.hosts.ssh.diagnose import FAIL, WARN, Finding, HostSeen
from oarsman.engines.hosts.ssh.inventory import Inventory
from oarsman.engines.hosts.ssh.inventory_file import load
from oarsman.engines.hosts.ssh.probe import HostFacts, HostMpi
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.errors import StoreError, UsageError
from oarsman.job.mpi import Family
from oarsman.text.catalogue import Translator
from oarsman.text.sentence import Text

from .fakes import NOW, FakeJobs, oarsman

# Hosts whose names begin with "dead" refuse; on all others a shell runs, here.
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
echo "$2" >>"$ASKED"
case $2 in dead*) echo "ssh: connect to host $2 port 22: Connection refused" >&2; exit 255 ;; esac
exec /bin/sh
"""
MPIRUN = """#!/bin/sh
case $1 in --version) echo 'mpirun (Open MPI) 4.1.4' ;; *) uname -n ;; esac
"""
MPI = HostMpi(launcher="/usr/bin/mpirun", real="/usr/bin/mpirun", family=Family.OPENMPI4, version="4.1.4", in_path=True)
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
    gpus=("A", "A"),
    path="/usr/bin",
    login_path="/usr/bin",
    mpis=(MPI,),
    folder="/home/rower/.oarsman",
    folder_problem="",
    folder_free=1 << 40,
    temporary_free=1 << 40,
    addresses=(),
    reached="10.0.0.1",
    rdma=(),
    complete=True,
)


@pytest.fixture(autouse=True)
def _pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("ssh", SSH), ("mpirun", MPIRUN)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OARSMAN_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    for name in ("OARSMAN_HOSTS", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inventory:
    file = tmp_path / "hostfile"
    file.write_text("node1 slots=4\ndead1\n")
    monkeypatch.setenv("OARSMAN_HOSTS", str(file))
    return load(file)


def call(*words: str) -> Result:
    return oarsman(FakeJobs(), "hosts", *words)


def asked(tmp_path: Path) -> list[str]:
    file = tmp_path / "asked"
    return sorted(set(file.read_text().split())) if file.exists() else []


def know(rack: Inventory, seconds_ago: float = 5) -> None:
    """node1 answered then, and dead1 did not."""
    refused = Trouble("refused", "dead1: nothing listens on port 22", "start sshd there, or correct the port")
    seen = [HostSeen(host=rack.hosts[0], facts=FACTS), HostSeen(host=rack.hosts[1], trouble=refused)]
    host_state.remember(rack, seen, clock=lambda: (NOW - timedelta(seconds=seconds_ago)).timestamp())


# -- list --------------------------------------------------------------------------------------------


def test_a_list_has_a_row_for_each_host_and_says_why_one_cannot_be_used(rack: Inventory, tmp_path: Path) -> None:
    know(rack)
    lines = call("list").stdout.splitlines()
    assert lines[0].split() == [
        "NAME",
        "STATE",
        "SLOTS",
        "FREE",
        "USED",
        "LOAD",
        "MEMORY",
        "GPUS",
        "MPI",
        "CHECKED",
        "REASON",
    ]
    assert " ".join(lines[1].split()) == "node1 ready 4 4 0 0.50 32 GiB/64 GiB 2 Open MPI 4.1.4 5s -"
    assert " ".join(lines[2].split()) == "dead1 refused - - 0 - - - - 0s dead1: nothing listens on port 22"
    assert asked(tmp_path) == ["dead1"], "answers of the last minute are repeated; what was in the way may be gone"


def test_a_wide_list_has_address_user_and_folder(rack: Inventory) -> None:
    know(rack)
    row = call("list", "-o", "wide").stdout.splitlines()[1]
    assert all(word in row for word in ("(/usr/bin/mpirun)", "10.0.0.1", "rower (5001)", "/home/rower/.oarsman"))


def test_names_are_listed_without_asking_anybody(rack: Inventory, tmp_path: Path) -> None:
    assert call("list", "-o", "name").stdout == "node1\ndead1\n"
    assert asked(tmp_path) == []


@pytest.mark.parametrize(("ago", "words"), [(5, ["--refresh"]), (61, [])])
def test_old_answers_are_asked_for_again(rack: Inventory, tmp_path: Path, ago: float, words: list[str]) -> None:
    know(rack, ago)
    found = json.loads(call("list", "-o", "json", *words).stdout)
    assert asked(tmp_path) == ["dead1", "node1"]
    assert [(host["name"], host["state"]) for host in found] == [("node1", "ready"), ("dead1", "refused")]
    assert found[0]["user"] != "rower", "that is what this machine says"
    assert found[0]["lastCheck"] == rfc3339(NOW)
    assert found[1]["trouble"]["message"] == "dead1: nothing listens on port 22"


def test_a_host_that_a_job_has_just_failed_on_is_asked_again_however_fresh_its_answer(
    rack: Inventory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failed_on(_: SshBackend) -> dict[str, float]:
        return {"node1": NOW.timestamp() - 20}

    monkeypatch.setattr(SshBackend, "failed_on", failed_on)
    know(rack, 40)
    call("list")
    assert asked(tmp_path) == ["dead1", "node1"]
    know(rack, 10)
    (tmp_path / "asked").unlink()
    call("list")
    assert asked(tmp_path) == ["dead1"], "node1 has answered since"


def test_what_a_host_said_before_it_vanished_is_still_shown(rack: Inventory) -> None:
    know(rack)
    host_state.remember(rack, [HostSeen(host=rack.hosts[1], facts=FACTS)], clock=lambda: NOW.timestamp() - 70)
    row = " ".join(call("list").stdout.splitlines()[2].split())
    assert row.startswith("dead1 refused 8 - 0 0.50 32 GiB/64 GiB")
    assert row.endswith("dead1: nothing listens on port 22")


def test_a_list_is_chinese_for_chinese_readers(rack: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t, "language", "zh")
    know(rack)
    text = call("list").stdout
    assert text.split()[:4] == ["名称", "状态", "槽位", "空闲"]
    assert "dead1：端口 22 没有程序在监听" in text


# -- check -------------------------------------------------------------------------------------------


def test_a_check_says_what_failed_and_what_to_do(rack: Inventory) -> None:
    result = call("check")
    assert result.exit_code == 1
    assert "fail    dead1: nothing listens on port 22\n  hint: start sshd there, or correct the port\n" in result.stdout
    assert "ok      node1  name, port, host key, login, " in result.stdout
    assert "ok      mpirun started a process on the host\n" in result.stdout
    assert "2 hosts, 2 ways between them; failed: 1, warnings: " in result.stdout
    assert "`oarsman hosts check --leave-out` gives dead1 no jobs" in result.stderr


def test_a_check_of_sound_hosts_succeeds(rack: Inventory, tmp_path: Path) -> None:
    assert call("check", "node1").exit_code == 0
    assert asked(tmp_path) == ["node1"]


def test_every_step_can_be_had(rack: Inventory) -> None:
    wide = call("check", "-o", "wide").stdout
    assert "ok      node1  login: it lets us log in\n" in wide
    assert "ok      node1  disk: " in wide
    found = json.loads(call("check", "-o", "json").stdout)
    assert (found["ok"], found["leftOut"]) == (False, {})
    steps = [(step["host"], step["step"]) for step in found["findings"]]
    assert [step for host, step in steps if host == "node1"] == [
        "name",
        "port",
        "host key",
        "login",
        "PATH",
        "folder",
        "disk",
        "GPUs",
        "user",
        "MPI",
        "clock",
    ]
    assert [step for host, step in steps if host == "dead1"] == ["name", "port"]
    assert {"host", "other", "step", "level", "message", "hint"} == set(found["findings"][0])


def test_a_quiet_check_says_failures_alone(rack: Inventory) -> None:
    assert call("check", "-q").stdout.splitlines() == [
        "fail    dead1: nothing listens on port 22",
        "  hint: start sshd there, or correct the port",
    ]


def test_a_host_that_fails_is_left_out_on_request_until_it_passes(rack: Inventory, tmp_path: Path) -> None:
    assert call("check").exit_code == 1
    assert host_state.left_out(rack) == {}
    result = call("check", "--leave-out")
    assert "dead1 is left out: dead1: nothing listens on port 22\n" in result.stderr
    assert host_state.left_out(rack) == {"dead1": "dead1: nothing listens on port 22"}
    assert "dead1  left-out" in call("list").stdout
    assert call("check", "node1").exit_code == 0
    assert set(host_state.left_out(rack)) == {"dead1"}, "who was not checked stays as it was"
    assert call("check").exit_code == 1
    assert set(host_state.left_out(rack)) == {"dead1"}, "it still fails"
    (tmp_path / "bin" / "ssh").write_text(SSH.replace("dead*", "never*"))
    assert call("check", "dead1").exit_code == 0
    assert host_state.left_out(rack) == {}
    assert "dead1  ready" in call("list").stdout


def test_hosts_that_are_the_same_machine_are_told(rack: Inventory) -> None:
    rack.file.write_text("node1\nnode2\n")
    result = call("check")
    assert result.exit_code == 1
    assert "node1 and node2 have the same addresses, as if they were one machine" in result.stdout


def test_a_check_is_remembered(rack: Inventory) -> None:
    call("check")
    found = host_state.last_check(rack)
    assert found is not None
    assert found[0] == NOW.timestamp()
    assert [f.message for f in found[1] if f.level == FAIL] == ["dead1: nothing listens on port 22"]


def test_a_network_needs_two_hosts(rack: Inventory) -> None:
    assert "no network was measured: it takes two hosts" in call("check", "node1", "--network").stdout


def test_a_mistyped_host_brings_the_right_one(rack: Inventory) -> None:
    result = call("check", "nod1")
    assert result.exit_code == 4
    assert f"there is no host 'nod1' in {rack.file}\n  hint: did you mean node1?" in result.stderr


def test_a_check_is_chinese_for_chinese_readers(rack: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t, "language", "zh")
    text = call("check").stdout
    assert "dead1：端口 22 没有程序在监听" in text
    assert "提示：请在那里启动 sshd，或更正端口" in text
    assert "2 台主机，其间 2 条连接；失败：1" in text


def test_on_a_terminal_there_are_signs(rack: Inventory) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "oarsman.cli", "hosts", "check"]
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "OARSMAN_LANG": "en", "TERM": "xterm"},
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                seen += os.read(ours, 1000)
            except OSError:  # the other side is closed
                break
    os.close(ours)
    text = seen.decode()
    assert process.returncode == 1
    assert "\x1b[31m✗\x1b[0m dead1: nothing listens on port 22" in text
    assert "\x1b[32m✓\x1b[0m node1  name, port" in text


def test_the_same_about_many_hosts_is_said_once() -> None:
    def a_warning(other: str, why: str = "no key") -> Finding:
        message = f"node11 cannot log in to {other}: {why}"
        return Finding(host="node11", other=other, step="login", level=WARN, message=message)

    found = folded([a_warning("node1"), a_warning("node2"), a_warning("node3", "no answer")])
    assert [finding.message for finding in found] == [
        "node11 cannot log in to node1, node2: no key",
        "node11 cannot log in to node3: no answer",
    ]


def test_what_is_said_once_of_many_hosts_can_be_said_in_chinese() -> None:
    why = Text("its host key is not known yet")
    found = folded(
        Finding(
            host="node11",
            other=other,
            step="login",
            level=WARN,
            message=Text("{host} cannot log in to {others}: {why}", host="node11", others=other, why=why),
        )
        for other in ("node1", "node2")
    )
    assert [Translator("zh").of(one.message) for one in found] == [
        "node11 无法登录 node1, node2：本机还不认识它的主机密钥"
    ]


# -- clean -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hosts", "unseen"), [("dead1\ndead2\n", "dead1, dead2"), ("node1\ndead1\n", "dead1")])
def test_a_clean_up_names_the_hosts_that_it_could_not_look_at(tmp_path: Path, hosts: str, unseen: str) -> None:
    (tmp_path / "given").write_text(hosts)
    result = call("clean", "--yes", "--hosts", str(tmp_path / "given"))
    assert result.exit_code == 1
    assert "dead1: nothing listens on port 22" in result.stderr
    assert f"not looked at: {unseen}; copies may be left there" in result.stderr
    assert "nothing to do" not in result.output


def test_a_clean_up_of_hosts_without_copies_has_nothing_to_do(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("node1\n")
    result = call("clean", "--yes", "--hosts", str(tmp_path / "given"))
    assert (result.exit_code, result.output) == (0, "nothing to do\n")


# -- which hosts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["list"], ["check"], ["clean", "--yes"]])
def test_an_ssh_config_that_is_not_there_is_refused_at_once(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "given").write_text("sshConfig: no_such_file\nhosts: [node1]\n")
    result = call(*words, "--hosts", str(tmp_path / "given"))
    assert result.exit_code == 2
    assert f"inventory {tmp_path}/given: sshConfig {tmp_path}/no_such_file does not exist" in result.stderr
    assert asked(tmp_path) == []


def test_without_any_hosts_it_says_how_to_write_them_down() -> None:
    result = call("list")
    assert result.exit_code == 2
    assert "no hosts are known" in result.stderr
    assert "write a file with two lines, 'node1 slots=8' and 'node2 slots=8'" in result.stderr


@pytest.mark.parametrize("words", [["--hosts", "given", "list"], ["list", "--hosts", "given"]])
def test_the_file_is_named_before_or_after_the_verb(rack: Inventory, tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "given").write_text("other1\n")
    words = [str(tmp_path / word) if word == "given" else word for word in words]
    assert call(*words, "-o", "name").stdout == "other1\n"


def test_the_file_that_is_given_comes_first_then_the_variable_then_the_configuration(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "oarsman"
    folder.mkdir(parents=True)
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    with pytest.raises(UsageError):
        inventory_file.find(None, environment)
    for name in ("hostfile", "hosts", "hosts.yaml"):  # each is preferred to those before it
        (folder / name).touch()
        assert inventory_file.find(None, environment) == folder / name
    assert inventory_file.find(None, {**environment, "OARSMAN_HOSTS": "/x"}) == Path("/x")
    assert inventory_file.find("/y", {**environment, "OARSMAN_HOSTS": "/x"}) == Path("/y")


# -- what is kept ------------------------------------------------------------------------------------


def test_what_is_known_comes_back_as_it_was(rack: Inventory) -> None:
    know(rack)
    known = host_state.known(rack)
    assert known["node1"].facts == FACTS
    assert known["dead1"].trouble == Trouble(
        "refused", "dead1: nothing listens on port 22", "start sshd there, or correct the port"
    )
    assert waiting(SshBackend(str(rack.file))).held() == {}


def test_inventories_do_not_meet(rack: Inventory, tmp_path: Path) -> None:
    know(rack)
    other = replace(rack, file=tmp_path / "other")
    assert host_state.known(other)["node1"].at is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 99, "hosts": {}}'])
def test_a_file_that_makes_no_sense_is_as_none(rack: Inventory, tmp_path: Path, text: str) -> None:
    know(rack)
    (file,) = (tmp_path / "state" / "inventories").glob("*.json")
    file.write_text(text)
    assert host_state.known(rack)["node1"].facts is None
    know(rack)
    assert host_state.known(rack)["node1"].facts == FACTS


def test_what_was_kept_under_the_earlier_name_is_still_known(rack: Inventory, tmp_path: Path) -> None:
    know(rack)
    (tmp_path / "state" / "inventories").rename(tmp_path / "state" / "racks")
    assert host_state.known(rack)["node1"].facts == FACTS
    assert not (tmp_path / "state" / "racks").exists()


def test_what_others_hear_is_kept_too(rack: Inventory) -> None:
    gone = Trouble("lost", "dead1: gone", "look for it")
    host_state.keep(rack, {"node1": FACTS, "stranger": FACTS}, {"dead1": gone})
    known = host_state.known(rack)
    assert known["dead1"].trouble == gone
    assert (known["node1"].ready, known["dead1"].ready) == (True, False)
    assert "stranger" not in known


def test_a_state_that_cannot_be_written_is_told(
    rack: Inventory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("OARSMAN_STATE", str(tmp_path / "file"))
    with pytest.raises(StoreError, match="cannot be kept"):
        know(rack)
