"""The job agent's loop, with sockets in place of hosts and ranks."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from oarsman.engines.hosts.core import job_agent, messages, process
from oarsman.engines.hosts.core.cgroups import Group
from oarsman.engines.hosts.core.host import HostNetwork, RunningHost
from oarsman.engines.hosts.core.job_agent import JobAgent
from oarsman.engines.hosts.core.journal import (
    Fact,
    HostDown,
    HostTrouble,
    Journal,
    JournalReader,
    LauncherEnded,
    LogTrouble,
    OutputBegan,
    RankEnd,
    RankException,
    RankSilence,
)
from oarsman.engines.hosts.core.launcher import Launcher, RankLogs
from oarsman.engines.hosts.core.log_lines import Recorder
from oarsman.engines.hosts.core.messages import (
    CALLS,
    RESULTS,
    Exited,
    RankEnded,
    RankRaised,
    RankSilent,
    RankStarted,
    WorldStarted,
)
from oarsman.engines.hosts.core.process import ProcessId

from .specs import a_spec, an_ssh_host


class Stage:
    """A job agent that has a launcher and one rank."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.left: list[int] = []  # processes of a lost host that cannot be ended
        self.agent = JobAgent(
            str(folder),
            a_spec(),
            cast(HostNetwork, SimpleNamespace(remove=lambda _host: None, end_orphans=lambda _hosts: self.left)),
            Journal(str(folder)),
        )
        ours, self.launcher = socket.socketpair()
        self.agent.launcher = Launcher(1, ours, {})
        self.agent._watch(ours, self.agent._launcher_says)
        ours, self.rank = socket.socketpair()
        self.agent._watch(ours, self.agent._serve)
        CALLS.send(self.rank, RankStarted(0, 1, 0, "a-worker-0", 1, "1"))
        self.turn()

    def turn(self) -> None:
        ready = self.agent.selector.select(0)
        for key, _ in sorted(ready, key=lambda event: event[0].fd):  # the launcher's word comes first
            key.data(key.fileobj)
        self.agent._reap()
        self.agent._tick()

    def facts(self) -> list[Fact]:
        return [noted.fact for noted in JournalReader(str(self.folder)).news()]

    def kinds(self) -> list[type]:
        return [type(fact) for fact in self.facts()]

    def close(self) -> None:
        watched = [key.fileobj for key in self.agent.selector.get_map().values()]
        self.agent.selector.close()
        for sock in (self.launcher, self.rank, *self.agent.listeners, *watched):
            if isinstance(sock, socket.socket):
                sock.close()
        self.agent.journal.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def test_a_rank_that_ends_together_with_its_launcher_is_heard_once(stage: Stage) -> None:
    RESULTS.send(stage.launcher, Exited(1))
    CALLS.send(stage.rank, RankEnded(1))
    stage.rank.close()
    stage.turn()
    stage.turn()
    assert stage.kinds() == [RankStarted, RankEnd, LauncherEnded]


def test_exceptions_that_a_rank_tells_of_are_short_and_few(stage: Stage) -> None:
    for number in range(100):
        CALLS.send(stage.rank, RankRaised(f"{number}" * 1000))
        stage.turn()
    told = [fact.line for fact in stage.facts() if isinstance(fact, RankException)]
    assert (len(told), max(map(len, told))) == (20, 300)


def test_that_a_rank_writes_nothing_is_noted_a_few_times(stage: Stage) -> None:
    for number in range(100):
        CALLS.send(stage.rank, RankSilent(None if number % 2 else 0))
        stage.turn()
    told = [fact.cpu for fact in stage.facts() if isinstance(fact, RankSilence)]
    assert told == [0, None] * 20


def test_ranks_whose_words_are_still_on_their_way_when_the_launcher_ends_have_run(stage: Stage) -> None:
    """On a starved machine all of that is there at once: a rank that nobody has let in yet is none that never ran."""
    server = messages.listen(str(stage.folder / "k"))
    stage.agent._watch(server, stage.agent._accept)
    for number in (1, 2, 3):
        with messages.connect(str(stage.folder / "k")) as rank:
            CALLS.send(rank, RankStarted(number, 4, number, "a-worker-0", 1, "1"))
            CALLS.send(rank, RankEnded(0))
    CALLS.send(stage.rank, RankEnded(0))
    RESULTS.send(stage.launcher, Exited(0))
    while LauncherEnded not in stage.kinds():
        stage.turn()
    kinds = stage.kinds()
    assert kinds.count(RankStarted) == kinds.count(RankEnd) == 4
    assert kinds[-1] is LauncherEnded


def test_a_launcher_that_ended_by_itself_keeps_its_exit_while_its_output_trickles_in(stage: Stage) -> None:
    launcher = stage.agent.launcher
    assert launcher is not None
    CALLS.send(stage.rank, RankEnded(3))
    stage.turn()
    RESULTS.send(stage.launcher, Exited(3))
    read, write = os.pipe()
    launcher.streams[read] = Recorder(str(stage.folder), rank="-", host="a-launcher", stream="out", merge=False)
    stage.agent._watch(read, stage.agent._pump)
    stage.turn()
    stage.agent.last_pulse = launcher.end_by = 0.0  # the time for it to notice has passed meanwhile
    stage.turn()
    os.close(write)
    stage.turn()
    (end,) = [fact for fact in stage.facts() if isinstance(fact, LauncherEnded)]
    assert end.code == 3


def said_by_a_confined_job(stage: Stage, *said: bytes) -> socket.socket:
    """The side of the job, after the agent has heard that."""
    ours, theirs = socket.socketpair()
    stage.agent._watch(ours, stage.agent._serve_job)
    theirs.settimeout(20)
    for each in said:
        theirs.sendall(each)
        stage.turn()
    return theirs


def is_let_go(job: socket.socket) -> bool:
    try:
        return job.recv(1) == b""
    except ConnectionResetError:  # with words that were not heard
        return True


def test_a_job_that_is_confined_gives_no_orders(stage: Stage) -> None:
    with said_by_a_confined_job(stage, CALLS.encode(messages.EndJob())) as job:
        assert isinstance(messages.ANSWERS.receive(job)[0], messages.Failed)
    assert not stage.agent.ending


def test_a_job_that_is_confined_is_listened_to_within_bounds(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says is written down, and the agent has others to listen to."""
    words = CALLS.encode(WorldStarted(["mpirun"], 1, "1"))
    monkeypatch.setattr(job_agent, "_MOST_SAID", 3 * (job_agent._AROUND + len(words)))
    with said_by_a_confined_job(stage, *[words] * 4) as job:
        assert is_let_go(job)
    assert stage.kinds() == [RankStarted, *[WorldStarted] * 3]
    stage.agent.said = 0
    monkeypatch.setattr(job_agent, "_SAYS_WITHIN", 0.0)
    with said_by_a_confined_job(stage, b"\0\0") as job:
        stage.turn()
        assert is_let_go(job)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("application called MPI_Abort(MPI_COMM_WORLD, 42) - process 0", [(137, 9)]),
        ("application called MPI_Abort(MPI_COMM_WORLD, 42) - process 1", []),
        ("last words", []),
    ],
)
def test_a_rank_elsewhere_that_was_killed_for_its_abort_together_with_who_would_tell_has_ended(
    stage: Stage, said: str, told: list[tuple[int, int]]
) -> None:
    stage.agent.spec = stage.agent.spec._replace(transport="ssh")
    logs = stage.folder / "logs" / "attempt-1"
    logs.mkdir(parents=True)
    (logs / "rank-0.err").write_text(f"{said}\n")
    RESULTS.send(stage.launcher, Exited(42))
    stage.turn()
    assert stage.agent.launcher is not None
    stage.agent.launcher.swept = True
    stage.agent._launcher_done(stage.agent.launcher)
    assert [(fact.code, fact.signal) for fact in stage.facts() if isinstance(fact, RankEnd)] == told


@pytest.mark.parametrize(("told", "number"), [(True, None), (False, 9)])
def test_a_launcher_elsewhere_that_hands_on_the_code_of_a_killed_rank_was_not_killed(
    stage: Stage, told: bool, number: int | None
) -> None:
    """A launcher that is killed takes along whoever would tell the end of a rank."""
    stage.agent.spec = stage.agent.spec._replace(transport="ssh")
    if told:
        CALLS.send(stage.rank, RankEnded(137, 9))
    stage.rank.close()
    stage.turn()
    RESULTS.send(stage.launcher, Exited(137, 9))
    stage.turn()
    (end,) = [fact for fact in stage.facts() if isinstance(fact, LauncherEnded)]
    assert (end.code, end.signal) == (137, number)


@pytest.fixture
def far(stage: Stage) -> Iterator[socket.socket]:
    """The channel of a host elsewhere, which hands on what its ranks write; the launcher and its rank have ended."""
    ours, theirs = socket.socketpair()
    group = cast(Group, SimpleNamespace(out_of_memory_kills=lambda: 0))
    host = RunningHost("a-worker-0", an_ssh_host(hands_on=True), ProcessId(0, ""), ours, group, up=True)
    stage.agent.hosts[host.name] = host
    stage.agent._watch(ours, lambda _: stage.agent._hear(host))
    assert stage.agent.launcher is not None
    stage.agent.launcher.relayed = RankLogs(str(stage.folder), str)
    CALLS.send(stage.rank, RankEnded(0))
    stage.turn()
    RESULTS.send(stage.launcher, Exited(0))
    stage.turn()
    yield theirs
    for sock in (ours, theirs):
        sock.close()


def test_a_launcher_is_not_done_before_its_hosts_have_handed_on_all_output(stage: Stage, far: socket.socket) -> None:
    order, _ = messages.HOST_ORDERS.receive(far)
    assert isinstance(order, messages.EndCommands)
    assert order.number == 1
    messages.HOST_REPORTS.send(far, messages.Said("bGFzdCB3b3Jkcw==", 1, "1-7", 0, "out"))
    stage.turn()
    assert LauncherEnded not in stage.kinds()
    messages.HOST_REPORTS.send(far, messages.Emptied(1))
    stage.turn()
    assert LauncherEnded in stage.kinds()
    assert (stage.folder / "rank-0.out").read_text() == "last words"


def test_a_log_that_cannot_be_written_is_said_once_however_much_comes(
    stage: Stage, far: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(RankLogs, "feed", full)
    for _ in range(50):
        messages.HOST_REPORTS.send(far, messages.Said("eA==", 1, "1-7", 0, "out"))
        stage.turn()
    assert stage.kinds().count(LogTrouble) == 1
    assert stage.agent.hosts.sweeps == 2  # one is that of the launcher's end


def test_what_a_host_says_before_it_is_lost_counts(stage: Stage, far: socket.socket) -> None:
    messages.HOST_REPORTS.send(far, messages.Said("eA==", 1, "1-7", 0, "out"))
    stage.agent._lost(stage.agent.hosts["a-worker-0"], "all its processes were killed")
    stage.turn()
    assert LauncherEnded in stage.kinds()
    assert (stage.folder / "rank-0.out").read_text() == "x"


def test_what_a_lost_host_has_left_running_is_said(stage: Stage, far: socket.socket) -> None:
    stage.left = [17, 18]
    stage.agent._lost(stage.agent.hosts["a-worker-0"], "all its processes were killed")
    (down,) = [fact for fact in stage.facts() if isinstance(fact, HostDown)]
    assert down.reason == "its first process is gone, and these could not be ended: 17, 18"


def test_a_host_that_falls_silent_is_not_waited_for(stage: Stage, far: socket.socket) -> None:
    assert stage.agent.launcher is not None
    stage.agent.launcher.heard_at = stage.agent.launcher.drain_until = 0.0
    stage.turn()
    assert LauncherEnded in stage.kinds()


@pytest.mark.parametrize("answered", [True, False])
def test_an_answer_that_is_here_and_was_not_read_yet_is_no_silence(
    stage: Stage, far: socket.socket, answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a starved machine it is the job agent that comes too late, as often as the host."""
    monkeypatch.setattr(process, "send_signal", lambda *_: None)
    host, agent = stage.agent.hosts["a-worker-0"], stage.agent
    agent.network = cast(HostNetwork, SimpleNamespace(ping=lambda _host: None, heartbeat=None))
    agent.last_pulse = time.monotonic() - 2
    host.last_seen = time.monotonic() - agent.spec.silence - 1
    if answered:
        messages.HOST_REPORTS.send(far, messages.Alive())
    agent._tick()
    assert (HostTrouble in stage.kinds()) == (not answered)


def _once(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 100
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_host_that_a_starved_machine_does_not_let_answer_is_not_silent(
    stage: Stage, far: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """128 ranks on two cores: whoever waits for a processor has something to say, and is not lost."""
    monkeypatch.setattr(process, "send_signal", lambda *_: None)
    host, agent = stage.agent.hosts["a-worker-0"], stage.agent
    agent.network = cast(HostNetwork, SimpleNamespace(ping=lambda _host: None, heartbeat=None))

    def overdue() -> None:
        agent.last_pulse = time.monotonic() - 2
        host.last_seen = time.monotonic() - agent.spec.silence - 1
        agent._tick()

    busy = subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"])
    try:
        host.process = ProcessId(busy.pid, "")
        _once(lambda: process.wants_to_run(busy.pid))
        overdue()
        assert HostTrouble not in stage.kinds()
        busy.send_signal(signal.SIGSTOP)
        _once(lambda: not process.wants_to_run(busy.pid))
        overdue()
        assert HostTrouble in stage.kinds()
    finally:
        busy.kill()
        busy.wait()


@pytest.fixture
def near(stage: Stage) -> Iterator[socket.socket]:
    """The channel of a host on which the launcher and its rank run."""
    ours, theirs = socket.socketpair()
    group = cast(Group, SimpleNamespace(out_of_memory_kills=lambda: 0))
    stage.agent.hosts["a-worker-0"] = RunningHost("a-worker-0", an_ssh_host(), ProcessId(0, ""), ours, group, up=True)
    yield theirs
    for sock in (ours, theirs):
        sock.close()


def test_the_job_agent_keeps_the_deadline_whoever_else_is_asleep(stage: Stage, near: socket.socket) -> None:
    """A launcher that says all went well when it is told to end has not succeeded by that."""
    agent, host = stage.agent, stage.agent.hosts["a-worker-0"]
    agent.last_pulse = time.monotonic()
    agent._obey(near, messages.KeepDeadline(time.time() + 1000))
    stage.turn()
    assert not host.ending
    agent._obey(near, messages.KeepDeadline(time.time()))
    assert agent._patience() == 0.0
    stage.turn()
    assert host.ending
    assert isinstance(messages.HOST_ORDERS.receive(near)[0], messages.EndHost)
    assert messages.COMMANDS.receive(stage.launcher)[0] == messages.SignalCommand(signal.SIGTERM)
    CALLS.send(stage.rank, RankEnded(143, 15))
    RESULTS.send(stage.launcher, Exited(0))
    stage.turn()
    stage.turn()
    assert [fact.code for fact in stage.facts() if isinstance(fact, LauncherEnded)] == [255]


def test_more_ranks_than_files_can_be_opened_end_the_attempt_and_not_the_job_agent(stage: Stage) -> None:
    def full() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    for _ in range(3):
        stage.agent._accept(cast(socket.socket, SimpleNamespace(accept=full)))
    troubles = [fact.reason for fact in stage.facts() if isinstance(fact, LogTrouble)]
    assert troubles == ["the job agent cannot take more ranks: Too many open files"]
    assert stage.agent.hosts.sweeps == 1


def test_a_host_that_fell_silent_did_not_run_out_of_memory_long_before(
    stage: Stage, far: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "send_signal", lambda *_: None)
    host = stage.agent.hosts["a-worker-0"]
    host.group = cast(Group, SimpleNamespace(out_of_memory_kills=lambda: 1))
    stage.agent._silent(host)
    stage.agent._lost(host, "")
    assert [fact.memory for fact in stage.facts() if isinstance(fact, HostDown)] == [False]


def test_a_supervisor_that_does_not_listen_does_not_halt_the_job(stage: Stage) -> None:
    ours, deaf = socket.socketpair()
    stage.agent.listeners.add(ours)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(120)
    try:
        for attempt in range(3000):
            stage.agent._note(OutputBegan(attempt))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        deaf.close()


@pytest.mark.parametrize(
    ("runs", "listens", "ends"),
    [
        (False, False, True),
        (True, False, False),
        (False, True, False),
    ],
)
def test_hosts_on_which_nothing_runs_are_kept_for_a_supervisor_but_not_for_ever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, runs: bool, listens: bool, ends: bool
) -> None:
    seconds = itertools.count(time.monotonic())
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        if listens:
            stage.agent.listeners.add(ours)
        if not runs:
            RESULTS.send(stage.launcher, Exited(0))
            CALLS.send(stage.rank, RankEnded(0))
        for turn in range(200):
            stage.turn()
            assert turn > 3 or not stage.agent.ending
    assert stage.agent.ending is ends


def test_ranks_that_come_and_go_at_once_are_told_of_together(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, supervisor = socket.socketpair()
    supervisor.setblocking(False)
    with ours, supervisor:
        stage.agent._tell()  # of the rank of the stage
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now)
        stage.agent.listeners.add(ours)
        for rank in range(100):
            stage.agent._note(RankStarted(rank, 100, rank, "a-worker-0", 1, "1"))
        stage.turn()
        with pytest.raises(BlockingIOError):
            supervisor.recv(1 << 16)
        now += stage.agent._patience()  # it does not sleep over what it has to tell
        stage.turn()
        once = supervisor.recv(1 << 16)
        assert once == messages.ANSWERS.encode(messages.Changed())
        stage.agent._note(OutputBegan(1))  # anything else is told at once
        assert supervisor.recv(1 << 16) == once


def test_what_a_job_that_is_confined_can_fill_its_journal_with_is_bounded(stage: Stage) -> None:
    """The supervisor and whoever asks for its usage read all of it."""
    words = WorldStarted(["mpirun"] * 10_000, 1, "2")
    for _ in range(2):
        for _ in range(1000):
            ours, theirs = socket.socketpair()
            with theirs:
                CALLS.send(theirs, words)
                stage.agent._watch(ours, stage.agent._serve_job)
                stage.agent._serve_job(ours)
                if ours.fileno() >= 0:
                    stage.agent._hang_up(ours)
    assert 10 << 20 < os.stat(stage.folder / "journal.jsonl").st_size < 80 << 20
