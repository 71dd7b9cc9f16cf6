"""The process that speaks for a host, driven step by step, with something else in the place of ssh."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarsman.engines.hosts.core import messages
from oarsman.engines.hosts.core.job_spec import SshWay
from oarsman.engines.hosts.core.messages import COMMANDS, RESULTS, Exited, RunCommand, SignalCommand
from oarsman.engines.hosts.ssh import host as module
from oarsman.engines.hosts.ssh.host import RemoteHost

from ..specs import an_ssh_host

pytestmark = pytest.mark.timeout(60)


class JobAgent:
    """With one host, which is connected to nothing yet."""

    def __init__(self, folder: Path) -> None:
        self.channel, other = socket.socketpair()
        waits = ["sh", "-c", "exec sleep 600"]
        ssh = SshWay(
            control=str(folder / "c"),
            follows=False,
            host_agent=waits,
            command=waits,
            typed="ssh -F ours node1",
            config="ours",
        )
        self.host = RemoteHost(
            name="w-0",
            spec=an_ssh_host(ssh=ssh),
            socket_path=str(folder / "s"),
            run_folder=str(folder),
            job_folder=str(folder),
            agent=other,
        )

    def hears(self) -> messages.HostReport | messages.Unknown | None:
        return messages.HOST_REPORTS.receive(self.channel)[0]

    def hears_of_trouble(self) -> str:
        trouble = self.hears()
        assert isinstance(trouble, messages.InTrouble)
        return trouble.reason

    def close(self) -> None:
        self.channel.close()
        self.host.agent.close()
        self.host.selector.close()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[JobAgent]:
    agent = JobAgent(tmp_path)
    yield agent
    agent.close()


def ask(host: RemoteHost) -> tuple[socket.socket, int]:
    """A command, before the machine is up; and the end of the pipe that its output would come from."""
    caller, other = socket.socketpair()
    output, end = os.pipe()
    COMMANDS.send(caller, RunCommand(["true"]), [end, end, end])
    os.close(end)
    host._watch(other, host._serve)
    host._serve(other)
    assert len(host.waiting) == 1
    return caller, output


def serve(host: RemoteHost) -> None:
    for key, _ in host.selector.select(0):
        key.data(key.fileobj)


def test_a_hint_to_try_ssh_goes_the_way_that_was_gone(agent: JobAgent) -> None:
    agent.host._connection_ended(255, "what nobody has heard of")
    assert "try 'ssh -F ours node1'" in agent.hears_of_trouble()


def test_a_command_whose_caller_left_before_it_began_never_begins(agent: JobAgent) -> None:
    caller, output = ask(agent.host)
    caller.close()
    serve(agent.host)
    assert not agent.host.waiting
    assert os.read(output, 1) == b""  # nobody holds its other end any more
    os.close(output)


def test_a_command_that_is_stopped_before_it_began_has_ended_by_that_signal(agent: JobAgent) -> None:
    caller, output = ask(agent.host)
    COMMANDS.send(caller, SignalCommand(int(signal.SIGTERM)))
    serve(agent.host)
    assert RESULTS.receive(caller)[0] == Exited(143, 15)
    caller.close()
    serve(agent.host)
    os.close(output)


def test_a_host_that_lets_us_in_and_begins_nothing_is_named_and_tried_again(
    agent: JobAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_UP_SECONDS", 0.0)
    host = agent.host
    host._connect()
    host._keep_deadlines()
    deadline = time.monotonic() + 30
    while host.connection is not None:
        assert time.monotonic() < deadline
        host._reap()
    assert agent.hears_of_trouble() == "node1: no process started there within 0 seconds"
    assert host.connect_at is not None


@pytest.mark.parametrize(
    ("line", "up"),
    [("up 1", False), ("up /tmp/oarsman-1/0 1", False), ("rank 0:0:0 0 1 0 1", False), ("up /tmp/oarsman-0/0 7", True)],
)
def test_only_its_host_agents_word_says_that_a_host_is_up(agent: JobAgent, tmp_path: Path, line: str, up: bool) -> None:
    (tmp_path / "etc" / "mpi").mkdir(parents=True)
    kind, _, rest = line.partition(" ")
    agent.host._hear(kind, rest)
    assert agent.host.up is up
    assert agent.host.port == ("7" if up else "")


def test_a_file_that_cannot_be_written_there_ends_the_host_with_the_reason(
    agent: JobAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", end)
    agent.host.up = True
    with pytest.raises(SystemExit):
        agent.host._hear("trouble", "printf: No space left on device")
    assert agent.hears_of_trouble() == "node1: printf: No space left on device"


def test_what_ranks_wrote_is_told_with_rank_and_stream(agent: JobAgent) -> None:
    agent.host.up = True
    agent.host._hear("said", "2-77/1/rank.03/stderr aGVsbG8=")
    assert agent.hears() == messages.Said("aGVsbG8=", 2, "2-77", rank=3, stream="err")
    agent.host._hear("emptied", "5")
    assert agent.hears() == messages.Emptied(5)


@pytest.mark.parametrize(
    "words", ["x", "2-77/1/rank.0/stdout", "2-77/1/rank.0/stdout a", "2/1/rank.0/stdlog aa==", "/ aa"]
)
def test_what_no_host_agent_would_hand_on_is_passed_over(agent: JobAgent, words: str) -> None:
    agent.host.up = True
    agent.host._hear("said", words)
    agent.host._hear("emptied", "1")
    assert agent.hears() == messages.Emptied(1)


@pytest.mark.parametrize(
    "line", ["rank x", "rank 0:0:0 one 1 0 1", "rank 0:0 0 1 0 1", "done", "done 0:0:0 0 x", "hello"]
)
def test_a_line_that_a_program_of_the_job_wrote_where_it_should_not_is_passed_over(agent: JobAgent, line: str) -> None:
    agent.host.up = True
    kind, _, rest = line.partition(" ")
    agent.host._hear(kind, rest)
    assert not agent.host.ranks.tellers


@pytest.mark.parametrize(
    "lines", [["start your day"], ["launch 5"], ["part 5 zz", "launch 5"], ["part 5 00", "start 5"], ["part", "start "]]
)
def test_a_question_that_no_stand_in_asked_is_passed_over(agent: JobAgent, lines: list[str]) -> None:
    agent.host.up = True
    for line in lines:
        kind, _, rest = line.partition(" ")
        agent.host._hear(kind, rest)
    assert not agent.host.parts


def test_questions_without_end_take_no_memory(agent: JobAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_ASKED", 1000)
    agent.host.up = True
    for number in range(1000):
        agent.host._hear("part", f"{number % 7} {'0' * 100}")
    assert sum(map(len, agent.host.parts.values())) <= 1100
