"""What the engine makes of a journal and of job agents that come to an end."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from oarsman import names
from oarsman.engines.contract import Assignment
from oarsman.engines.hosts.core import engine as module
from oarsman.engines.hosts.core import job_agent, messages, process
from oarsman.engines.hosts.core.engine import HostsEngine, Watched
from oarsman.engines.hosts.core.host_specs import hand_out_gpus
from oarsman.engines.hosts.core.job_spec import Separation
from oarsman.engines.hosts.core.journal import (
    AgentStarted,
    HostDown,
    HostMade,
    HostTrouble,
    HostUp,
    LauncherEnded,
    LauncherGone,
    LauncherStarted,
    add_note,
)
from oarsman.engines.hosts.local import host_spec
from oarsman.engines.hosts.local.transport import LocalTransport
from oarsman.errors import RetryableError
from oarsman.job.confined import Confined
from oarsman.job.observed import Observed, Phase
from oarsman.job.state import Attempt, Status
from oarsman.manifest import job_from_document
from oarsman.plan.actions import CreateLauncher
from oarsman.plan.reconcile import reconcile

from .machine import mpijob

NOTHING_YET = Status()
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def engine_and_assignment(tmp_path: Path, status: Status = NOTHING_YET) -> tuple[HostsEngine, Assignment]:
    job = job_from_document({**mpijob("pi", ["mpirun", "hostname"]), "metadata": {"name": "pi", "uid": "uid-pi"}})
    engine = HostsEngine(job_folder=lambda _uid: tmp_path, run_folder=lambda _uid: tmp_path / "run")
    return engine, Assignment(job=job, status=status, environment={}, folder=tmp_path)


def observe(tmp_path: Path, status: Status = NOTHING_YET) -> Observed:
    engine, assignment = engine_and_assignment(tmp_path, status)
    return asyncio.run(engine.observe(assignment))


def test_hosts_have_all_their_time_although_the_clock_was_put_forward_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that slept wakes up so, too."""
    engine, assignment = engine_and_assignment(tmp_path)

    async def patience(offset: float) -> timedelta:
        monkeypatch.setattr(module.time, "time", lambda: real() + offset)
        return (await engine.observe(assignment)).patience

    real = module.time.time
    usual = asyncio.run(patience(0))
    assert asyncio.run(patience(-7200)) == usual
    assert timedelta(seconds=7100) < asyncio.run(patience(7200)) - usual < timedelta(seconds=7300)


@pytest.mark.parametrize("called", ["agent", "keeper"])  # now, and by a version before, whose job still runs
def test_the_last_words_of_a_job_agent_count_even_if_it_dies_while_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: str
) -> None:
    (tmp_path / "journal.jsonl").write_text(json.dumps({"t": 0.0, "e": called, "pid": 1, "started": "never"}) + "\n")
    add_note(str(tmp_path), LauncherStarted(1))

    def it_just_died(_process: process.ProcessId) -> bool:
        add_note(str(tmp_path), LauncherEnded(1, code=0, signal=None, memory=False, lines=[]))
        return False

    monkeypatch.setattr(process, "alive", it_just_died)
    launcher = observe(tmp_path).launcher
    assert launcher is not None
    assert launcher.phase is Phase.SUCCEEDED


@pytest.fixture
def agent_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "alive", lambda _process: True)
    add_note(str(tmp_path), AgentStarted(1, "once"))


def test_a_launcher_whose_host_takes_its_time_is_pending_and_not_lost(tmp_path: Path, agent_runs: None) -> None:
    """It was ordered with its attempt: whether it is missed is not a matter of seconds."""
    since = datetime(2026, 1, 1, tzinfo=UTC)
    second = Status(attempts=(Attempt(number=1, outcome="Failed"), Attempt(number=2, started=since)))
    assert observe(tmp_path, second).launcher is None  # its host was never made
    add_note(str(tmp_path), HostMade("pi-launcher", 0, True, 2, "once", "", [], "node1"))
    assert observe(tmp_path).launcher is None  # no attempt has begun: nobody ordered one
    for fact, because in ((HostTrouble("pi-launcher", "node1 is down"), "node1 is down"), (HostUp("pi-launcher"), "")):
        add_note(str(tmp_path), fact)
        launcher = observe(tmp_path, second).launcher
        assert launcher is not None
        assert (launcher.phase, launcher.attempt, launcher.started_at) == (Phase.PENDING, 2, since)
        assert launcher.not_ready_because == because
    add_note(str(tmp_path), LauncherStarted(2))
    launcher = observe(tmp_path, second).launcher
    assert launcher is not None
    assert launcher.phase is Phase.RUNNING


def test_the_launcher_of_an_attempt_before_is_not_taken_for_the_next(tmp_path: Path, agent_runs: None) -> None:
    add_note(str(tmp_path), HostMade("pi-launcher", 0, True, 2, "once", "", [], ""))
    add_note(str(tmp_path), LauncherStarted(1))
    add_note(str(tmp_path), LauncherEnded(1, code=1, signal=None, memory=False, lines=[]))
    add_note(str(tmp_path), LauncherGone(1))
    second = Status(attempts=(Attempt(number=1, outcome="Failed"), Attempt(number=2)))
    launcher = observe(tmp_path, second).launcher
    assert launcher is not None
    assert (launcher.phase, launcher.attempt, launcher.exit) == (Phase.PENDING, 2, None)
    first = Status(attempts=(Attempt(number=1, outcome="Failed"),))
    assert observe(tmp_path, first).launcher is None


@pytest.mark.parametrize(
    ("words", "phase"), [("PRTE has lost communication with a remote daemon.", Phase.FAILED), ("done", Phase.SUCCEEDED)]
)
def test_open_mpi_5_that_lost_a_daemon_has_not_succeeded_although_it_says_so(
    tmp_path: Path, agent_runs: None, words: str, phase: Phase
) -> None:
    """Before any rank was there that could have failed."""
    add_note(str(tmp_path), LauncherStarted(1))
    add_note(str(tmp_path), LauncherEnded(1, code=0, signal=None, memory=False, lines=[words]))
    launcher = observe(tmp_path).launcher
    assert launcher is not None
    assert launcher.phase is phase


def test_a_launcher_that_died_with_its_job_agent_is_not_there_when_another_agent_is(
    tmp_path: Path, agent_runs: None
) -> None:
    """Nobody will ever note its end: a job that waits for it waits for ever."""
    add_note(str(tmp_path), LauncherStarted(1))
    add_note(str(tmp_path), AgentStarted(2, "later"))
    failed = Status(attempts=(Attempt(number=1, outcome="Failed"),))
    assert observe(tmp_path, failed).launcher is None
    add_note(str(tmp_path), LauncherGone(1))
    assert observe(tmp_path, failed).launcher is None
    add_note(str(tmp_path), LauncherStarted(2))
    launcher = observe(tmp_path, Status(attempts=(*failed.attempts, Attempt(number=2)))).launcher
    assert launcher is not None
    assert (launcher.attempt, launcher.phase) == (2, Phase.RUNNING)


def test_a_launcher_whose_end_was_noted_is_remembered_by_the_agent_after(tmp_path: Path, agent_runs: None) -> None:
    add_note(str(tmp_path), LauncherStarted(1))
    add_note(str(tmp_path), LauncherEnded(1, code=0, signal=None, memory=False, lines=[]))
    add_note(str(tmp_path), AgentStarted(2, "later"))
    launcher = observe(tmp_path, Status(attempts=(Attempt(number=1),))).launcher
    assert launcher is not None
    assert launcher.phase is Phase.SUCCEEDED


def test_a_launcher_that_began_and_went_before_that_was_on_record_does_not_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor was killed right after the start, and the job agent before the next supervisor came."""
    monkeypatch.setattr(process, "alive", lambda _process: False)
    for fact in (AgentStarted(1, "once"), HostMade("pi-worker-0", 0, False, 2, "once", "", [], ""), LauncherStarted(1)):
        add_note(str(tmp_path), fact)
    engine, assignment = engine_and_assignment(tmp_path, Status(start_time=NOW))
    monkeypatch.setattr(engine._transport, "clear_up", lambda *_: [])
    plan = reconcile(assignment.job, asyncio.run(engine.observe(assignment)), NOW)
    assert CreateLauncher(1) not in plan.actions
    (attempt,) = plan.status.attempts
    assert (attempt.number, attempt.outcome) == (1, "Failed")
    assert attempt.cause is not None
    assert attempt.cause.summary == "pi-worker-0 was lost: its job agent was killed"
    add_note(str(tmp_path), LauncherGone(1))  # it was to go: whoever wanted that has written down why
    assert observe(tmp_path).launcher is None


def test_a_clean_up_that_failed_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_note(str(tmp_path), AgentStarted(1, "never"))
    tries: list[str] = []

    def fails_first(_transport: LocalTransport, uid: str, *_given: object) -> list[str]:
        tries.append(uid)
        if len(tries) == 1:
            raise OSError("the disk does not answer")
        return []

    monkeypatch.setattr(LocalTransport, "clear_up", fails_first)
    job = job_from_document({**mpijob("pi", ["mpirun", "hostname"]), "metadata": {"name": "pi", "uid": "uid-pi"}})
    engine = HostsEngine(job_folder=lambda _uid: tmp_path, run_folder=lambda _uid: tmp_path / "run")
    assignment = Assignment(job=job, status=NOTHING_YET, environment={}, folder=tmp_path)

    async def story() -> None:
        with pytest.raises(OSError, match="does not answer"):
            await engine.observe(assignment)
        for _ in range(2):
            await engine.observe(assignment)

    asyncio.run(story())
    assert len(tries) == 2


def test_machines_that_could_not_be_reached_are_named_and_cleared_up_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    add_note(str(tmp_path), AgentStarted(1, "never"))
    away = [["node3"], []]
    monkeypatch.setattr(LocalTransport, "clear_up", lambda *_: away.pop(0))
    monkeypatch.setattr("oarsman.engines.hosts.core.engine._CLEAR_AGAIN", 0.01)
    job = job_from_document({**mpijob("pi", ["mpirun", "hostname"]), "metadata": {"name": "pi", "uid": "uid-pi"}})
    engine = HostsEngine(job_folder=lambda _uid: tmp_path, run_folder=lambda _uid: tmp_path / "run")
    assignment = Assignment(job=job, status=NOTHING_YET, environment={}, folder=tmp_path)

    async def story() -> None:
        told = asyncio.Event()
        await engine.start(lambda _uid: told.set())
        await engine.observe(assignment)
        async with asyncio.timeout(60):
            await told.wait()
        for _ in range(2):
            await engine.observe(assignment)

    asyncio.run(story())
    assert away == []
    assert "node3 cannot be reached" in caplog.text


def test_a_launcher_whose_host_went_down_before_it_began_tells_why(tmp_path: Path, agent_runs: None) -> None:
    for fact in (
        HostMade("pi-launcher", 0, True, 2, "once", "", [], "node1"),
        HostUp("pi-launcher"),
        HostTrouble("pi-launcher", "node1: the connection was closed"),
        HostDown("pi-launcher", "", False),
    ):
        add_note(str(tmp_path), fact)
    launcher = observe(tmp_path, Status(attempts=(Attempt(number=1),))).launcher
    assert launcher is not None
    assert (launcher.phase, launcher.reason) == (Phase.FAILED, names.REASON_HOST_LOST)
    assert launcher.message == "node1: the connection was closed"


def test_gpus_that_others_got_while_a_job_rested_are_not_handed_out_twice() -> None:
    job = job_from_document(
        mpijob("gpus", ["hostname"], workers=1, worker={"resources": {"limits": {"nvidia.com/gpu": 1}}})
    )
    [member] = [name for name in hand_out_gpus(job, lambda _: ["0", "1"], kept={}, taken=()) if "worker" in name]
    kept = {member: ("0",)}
    assert hand_out_gpus(job, lambda _: ["0", "1"], kept=kept, taken={"1"})[member] == ("0",)
    assert hand_out_gpus(job, lambda _: ["0", "1"], kept=kept, taken={"0"})[member] == ("1",)


def test_a_job_agent_that_says_nonsense_is_logged_and_its_job_looked_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = HostsEngine(job_folder=lambda _uid: tmp_path, run_folder=lambda _uid: tmp_path)
    looked_at: list[str] = []
    engine._notify = looked_at.append

    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(messages.LENGTH.pack(8) + b"nonsense")
        writer.close()

    async def listen() -> None:
        os.chdir(tmp_path)  # its whole name may be too long
        async with await asyncio.start_unix_server(babble, job_agent.CONTROL):
            watched = Watched(tmp_path)
            engine._run_folder = lambda _uid: Path(".")
            engine._listen("uid", watched)
            assert watched.listener is not None
            await asyncio.wait({watched.listener})
            await asyncio.sleep(0)

    here = os.getcwd()
    try:
        asyncio.run(listen())
    finally:
        os.chdir(here)
    assert looked_at == ["uid"]
    assert "listening to the job agent of uid failed" in caplog.text


def test_nobody_waits_for_a_program_that_the_job_of_somebody_else_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns are few: ten jobs whose MPI does not say who it is were the only ones that had any, for minutes."""
    engine, assignment = engine_and_assignment(tmp_path)
    theirs = replace(assignment, environment=Confined(str(tmp_path), []).kept({}, {}))
    answers = threading.Event()

    def refusal(_transport: LocalTransport, _assignment: Assignment) -> str:
        answers.wait()
        return "it is none"

    async def looked_at() -> None:
        told = asyncio.Event()
        await engine.start(lambda _uid: told.set())
        for _ in range(2):
            with pytest.raises(RetryableError):
                await asyncio.wait_for(engine.observe(theirs), 30)
        assert (await engine.observe(replace(theirs, stop_requested=True))).unsupported is None
        answers.set()
        await told.wait()
        assert (await engine.observe(theirs)).unsupported == "it is none"

    monkeypatch.setattr(LocalTransport, "refusal", refusal)
    asyncio.run(looked_at())


def test_nobody_fills_the_memory_of_the_supervisor_with_variables_for_many_hosts(tmp_path: Path) -> None:
    document = mpijob("pi", ["mpirun", "hostname"])
    document["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 20_000
    many, confines = job_from_document(document), Separation(confines=True)
    for variables, given in (({}, False), ({"X": "y" * 1_000_000}, True)):
        theirs = Confined(str(tmp_path), []).kept({}, variables)
        said = host_spec.all_refusals(many, folder=tmp_path, separation=confines, environment=theirs)
        assert any("too long for 20001 hosts" in why for why in said) == given


def test_of_an_earlier_run_only_what_it_wrote_and_used_is_kept(tmp_path: Path) -> None:
    engine, _ = engine_and_assignment(tmp_path)
    for path in ("logs/attempt-1/merged.log", "usage.jsonl", "volumes/pi-worker-0/scratch/large", "agent.lock"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    add_note(str(tmp_path), AgentStarted(1, "not the one that has this number now"))
    (tmp_path / "link").symlink_to("/")
    for _ in range(2):  # whoever was killed half way does it again
        asyncio.run(engine.forget("uid-pi", keeps_log=True))
        assert {path.name for path in tmp_path.iterdir()} == {"logs", "usage.jsonl"}
    assert (tmp_path / "logs/attempt-1/merged.log").read_text() == "x"


def test_an_earlier_run_that_never_began_has_nothing_to_clear_away(tmp_path: Path) -> None:
    engine = HostsEngine(job_folder=lambda uid: tmp_path / uid, run_folder=lambda uid: tmp_path / "run" / uid)
    asyncio.run(engine.forget("never-begun", keeps_log=True))
    assert list(tmp_path.iterdir()) == []
