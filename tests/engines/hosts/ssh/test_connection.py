"""What comes from a machine, line by line, and commands that its launcher wants run elsewhere."""

from __future__ import annotations

import os
import selectors
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarsman.engines.hosts.core import host, messages
from oarsman.engines.hosts.core.messages import COMMANDS, RESULTS, Exited
from oarsman.engines.hosts.ssh.connection import Connection, RemoteCommands

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def selector() -> Iterator[selectors.BaseSelector]:
    with selectors.DefaultSelector() as selector:
        yield selector


def serve(selector: selectors.BaseSelector) -> None:
    host.serve(selector, 0.1)


def test_a_machine_that_talks_without_end_takes_no_memory_and_is_still_heard(selector: selectors.BaseSelector) -> None:
    heard: list[tuple[str, str]] = []
    talk = f"import os; [os.write(1, b'x' * {1 << 20}) for _ in range(64)]; print(); print('up 7', flush=True)"
    connection = Connection([sys.executable, "-c", talk], "", selector, lambda *words: heard.append(words))
    longest = 0
    while connection.ended() is None:
        serve(selector)
        longest = max(longest, len(connection._line))
    assert heard[-1] == ("up", "7")
    assert 0 < longest <= 1 << 16
    assert sum(len(kind) + len(rest) for kind, rest in heard) < 1 << 18


class Elsewhere:
    """A host of the job, and what the one who asks is told."""

    def __init__(self, folder: Path, selector: selectors.BaseSelector) -> None:
        (folder / "h").mkdir()
        self.server = messages.listen(str(folder / "h" / "w-1"))
        self.told: list[tuple[str, ...]] = []
        self.remote_commands = RemoteCommands(
            {"w-1": "w-1"}, str(folder), selector, lambda *words: self.told.append(words)
        )

    def asked(self) -> tuple[socket.socket, list[int]]:
        caller, _ = self.server.accept()
        _, fds = COMMANDS.receive(caller)
        return caller, fds


@pytest.fixture
def elsewhere(tmp_path: Path, selector: selectors.BaseSelector) -> Iterator[Elsewhere]:
    found = Elsewhere(tmp_path, selector)
    yield found
    found.remote_commands.drop_all()
    found.server.close()


def test_a_command_that_ends_while_its_asker_drops_it_takes_nobody_along(
    elsewhere: Elsewhere, selector: selectors.BaseSelector
) -> None:
    """Hydra leaves its stand-ins for ssh the moment a rank aborts."""
    elsewhere.remote_commands.start("5", "w-1", "hostname")
    caller, fds = elsewhere.asked()
    asker, agent = socket.socketpair()
    with caller, asker, agent:
        selector.register(agent, selectors.EVENT_READ, lambda _: elsewhere.remote_commands.drop("5"))
        asker.send(b"drop 5")  # heard first
        RESULTS.send(caller, Exited(7))
        for fd in fds:
            os.close(fd)
        serve(selector)
        selector.unregister(agent)
    assert not elsewhere.told


def test_who_asks_for_more_than_once_is_told_everything_once(
    elsewhere: Elsewhere, selector: selectors.BaseSelector
) -> None:
    elsewhere.remote_commands.start("5", "w-1", "hostname")
    caller, (quiet, out, err) = elsewhere.asked()
    elsewhere.remote_commands.go_on("5")
    elsewhere.remote_commands.go_on("5")
    os.write(out, b"node2\n")
    serve(selector)
    RESULTS.send(caller, Exited(3))
    for fd in (quiet, out, err):
        os.close(fd)
    caller.close()
    elsewhere.remote_commands.go_on("5")
    deadline = time.monotonic() + 30
    while len(elsewhere.told) < 2:
        assert time.monotonic() < deadline
        serve(selector)
    assert elsewhere.told == [("5", "out", "node2\\n"), ("5", "ended", "3")]


def test_a_number_that_is_used_again_ends_the_command_of_the_one_who_had_it(elsewhere: Elsewhere) -> None:
    elsewhere.remote_commands.start("5", "w-1", "sleep 600")
    first, fds = elsewhere.asked()
    elsewhere.remote_commands.start("5", "w-1", "hostname")
    assert COMMANDS.receive(first) == (None, [])
    second, more = elsewhere.asked()
    for fd in (*fds, *more):
        os.close(fd)
    first.close()
    second.close()
