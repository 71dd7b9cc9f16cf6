"""The process that speaks for a host, driven step by step, with something else in the place of ssh."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oarsman.engines.hosts.core import framing
from oarsman.engines.hosts.ssh import host as module
from oarsman.engines.hosts.ssh.host import RemoteHost

pytestmark = pytest.mark.timeout(60)
ASKED = {"argv": ["true"]}


class Keeper:
    """With one host, which is connected to nothing yet."""

    def __init__(self, folder: Path, ssh: list[str]) -> None:
        self.channel, other = socket.socketpair()
        way = {"name": "node1", "address": "", "user": "", "port": None, "jump": ""}
        spec: dict[str, Any] = {
            "run": "/tmp/oarsman-0/0", "folder": "/", "machine": "node1", "way": way, "minder": "", "aliases": {},
            "ssh": {"control": str(folder / "c"), "follows": False, "minder": ssh, "command": ssh},
            "members": [("w-0", 1)],
        }  # fmt: skip
        self.host = RemoteHost("w-0", spec, str(folder / "s"), str(folder), other)

    def hears(self) -> framing.Message:
        message, _ = framing.receive(self.channel)
        assert message is not None
        return message

    def close(self) -> None:
        self.channel.close()
        self.host.keeper.close()
        self.host.selector.close()


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    keeper = Keeper(tmp_path, ["sleep", "600"])
    keeper.host.spec["ssh"]["minder"] = ["sh", "-c", "exec sleep 600"]
    yield keeper
    keeper.close()


def ask(host: RemoteHost) -> tuple[socket.socket, int]:
    """A command, before the machine is up; and the end of the pipe that its output would come from."""
    caller, other = socket.socketpair()
    output, end = os.pipe()
    framing.send(caller, ASKED, [end, end, end])
    os.close(end)
    host._watch(other, host._serve)
    host._serve(other)
    assert len(host.waiting) == 1
    return caller, output


def serve(host: RemoteHost) -> None:
    for key, _ in host.selector.select(0):
        key.data(key.fileobj)


def test_a_hint_to_try_ssh_goes_the_way_that_was_gone(keeper: Keeper) -> None:
    keeper.host.spec["ssh"] |= {"typed": "ssh -F ours node1", "config": "ours"}
    keeper.host._connection_ended(255, "what nobody has heard of")
    assert "try 'ssh -F ours node1'" in keeper.hears()["failed"]


def test_a_command_whose_caller_left_before_it_began_never_begins(keeper: Keeper) -> None:
    caller, output = ask(keeper.host)
    caller.close()
    serve(keeper.host)
    assert not keeper.host.waiting
    assert os.read(output, 1) == b""  # nobody holds its other end any more
    os.close(output)


def test_a_command_that_is_stopped_before_it_began_has_ended_by_that_signal(keeper: Keeper) -> None:
    caller, output = ask(keeper.host)
    framing.send(caller, {"signal": int(signal.SIGTERM)})
    serve(keeper.host)
    assert framing.receive(caller)[0] == {"exit": 143, "signal": 15}
    caller.close()
    serve(keeper.host)
    os.close(output)


def test_a_host_that_lets_us_in_and_begins_nothing_is_named_and_tried_again(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_UP_SECONDS", 0.0)
    host = keeper.host
    host._connect()
    host._keep_deadlines()
    deadline = time.monotonic() + 30
    while host.connection is not None:
        assert time.monotonic() < deadline
        host._reap()
    assert keeper.hears() == {"failed": "node1: nothing began there within 0 seconds"}
    assert host.connect_at is not None


@pytest.mark.parametrize(
    ("line", "up"),
    [("up 1", False), ("up /tmp/oarsman-1/0 1", False), ("rank 0:0:0 0 1 0 1", False), ("up /tmp/oarsman-0/0 7", True)],
)
def test_only_the_minders_own_word_says_that_a_host_is_up(keeper: Keeper, tmp_path: Path, line: str, up: bool) -> None:
    (tmp_path / "etc" / "mpi").mkdir(parents=True)
    kind, _, rest = line.partition(" ")
    keeper.host._hear(kind, rest)
    assert keeper.host.up is up
    assert keeper.host.port == ("7" if up else "")


def test_a_file_that_cannot_be_written_there_ends_the_host_with_the_reason(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", end)
    keeper.host.up = True
    with pytest.raises(SystemExit):
        keeper.host._hear("trouble", "printf: No space left on device")
    assert keeper.hears() == {"failed": "node1: printf: No space left on device"}


def test_what_ranks_wrote_is_told_with_rank_and_stream(keeper: Keeper) -> None:
    keeper.host.up = True
    keeper.host._hear("said", "2-77/1/rank.03/stderr aGVsbG8=")
    assert keeper.hears() == {"said": "aGVsbG8=", "attempt": 2, "world": "2-77", "by": 3, "stream": "err"}
    keeper.host._hear("emptied", "5")
    assert keeper.hears() == {"emptied": 5}


@pytest.mark.parametrize(
    "words", ["x", "2-77/1/rank.0/stdout", "2-77/1/rank.0/stdout a", "2/1/rank.0/stdlog aa==", "/ aa"]
)
def test_what_no_minder_would_hand_on_is_passed_over(keeper: Keeper, words: str) -> None:
    keeper.host.up = True
    keeper.host._hear("said", words)
    keeper.host._hear("emptied", "1")
    assert keeper.hears() == {"emptied": 1}


@pytest.mark.parametrize(
    "line", ["rank x", "rank 0:0:0 one 1 0 1", "rank 0:0 0 1 0 1", "done", "done 0:0:0 0 x", "hello"]
)
def test_a_line_that_a_program_of_the_job_wrote_where_it_should_not_is_passed_over(keeper: Keeper, line: str) -> None:
    keeper.host.up = True
    kind, _, rest = line.partition(" ")
    keeper.host._hear(kind, rest)
    assert not keeper.host.ranks.tellers


@pytest.mark.parametrize(
    "lines", [["start your day"], ["launch 5"], ["part 5 zz", "launch 5"], ["part 5 00", "start 5"], ["part", "start "]]
)
def test_a_question_that_no_stand_in_asked_is_passed_over(keeper: Keeper, lines: list[str]) -> None:
    keeper.host.up = True
    for line in lines:
        kind, _, rest = line.partition(" ")
        keeper.host._hear(kind, rest)
    assert not keeper.host.parts


def test_questions_without_end_take_no_memory(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_ASKED", 1000)
    keeper.host.up = True
    for number in range(1000):
        keeper.host._hear("part", f"{number % 7} {'0' * 100}")
    assert sum(map(len, keeper.host.parts.values())) <= 1100
