"""The keeper's loop, with sockets in place of hosts and ranks."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from oarsman.engines.bare import wire
from oarsman.engines.bare.journal import Journal, JournalReader
from oarsman.engines.bare.keeper import Keeper
from oarsman.engines.bare.launcher import Launcher
from oarsman.engines.bare.loglines import Recorder
from oarsman.engines.bare.rack import Rack


class Stage:
    """A keeper that has a launcher and one rank."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        spec = {"launcher_host": "a-launcher", "launcher_is_mpirun": True, "grace": 1, "silence": 10}
        self.keeper = Keeper(str(folder), spec, cast(Rack, SimpleNamespace(elsewhere=False)), Journal(str(folder)))
        ours, self.launcher = socket.socketpair()
        self.keeper.launcher = Launcher(1, ours, {})
        self.keeper._watch(ours, self.keeper._launcher_says)
        ours, self.rank = socket.socketpair()
        self.keeper.connections.add(ours)
        self.keeper._watch(ours, self.keeper._serve)
        facts = {"rank": 0, "size": 1, "local": 0, "host": "a-worker-0", "attempt": 1, "world": "1", "survives": False}
        wire.send(self.rank, facts)
        self.turn()

    def turn(self) -> None:
        ready = self.keeper.selector.select(0)
        for key, _ in sorted(ready, key=lambda event: event[0].fd):  # the launcher's word comes first
            key.data(key.fileobj)
        self.keeper._reap()
        self.keeper._tick()

    def facts(self) -> list[str]:
        return [fact["e"] for fact in JournalReader(str(self.folder)).news()]

    def close(self) -> None:
        self.keeper.selector.close()
        launcher = [self.keeper.launcher.channel] if self.keeper.launcher is not None else []
        for sock in (self.launcher, self.rank, *self.keeper.connections, *self.keeper.listeners, *launcher):
            sock.close()
        self.keeper.journal.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def test_a_rank_that_ends_together_with_its_launcher_is_heard_once(stage: Stage) -> None:
    wire.send(stage.launcher, {"exit": 1, "signal": None})
    wire.send(stage.rank, {"exit": 1, "signal": None, "lines": [], "reason": ""})
    stage.rank.close()
    stage.turn()
    stage.turn()
    assert stage.facts() == ["rank-start", "rank-end", "launcher-end"]


def test_a_launcher_that_ended_by_itself_keeps_its_exit_while_its_output_trickles_in(stage: Stage) -> None:
    launcher = stage.keeper.launcher
    assert launcher is not None
    wire.send(stage.rank, {"exit": 3, "signal": None, "lines": [], "reason": ""})
    stage.turn()
    wire.send(stage.launcher, {"exit": 3, "signal": None})
    read, write = os.pipe()
    launcher.streams[read] = Recorder(str(stage.folder), rank="-", host="a-launcher", stream="out", merge=False)
    stage.keeper._watch(read, stage.keeper._pump)
    stage.turn()
    stage.keeper.last_pulse = launcher.end_by = 0.0  # the time for it to notice has passed meanwhile
    stage.turn()
    os.close(write)
    stage.turn()
    (end,) = [fact for fact in JournalReader(str(stage.folder)).news() if fact["e"] == "launcher-end"]
    assert end["code"] == 3


def test_a_supervisor_that_does_not_listen_does_not_halt_the_job(stage: Stage) -> None:
    ours, deaf = socket.socketpair()
    stage.keeper.listeners.add(ours)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(120)
    try:
        for attempt in range(3000):
            stage.keeper._note("first-output", attempt=attempt)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        deaf.close()
