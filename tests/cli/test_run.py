"""`oarsman run`: lines, outcome, exit code, signals."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from oarsman import names
from oarsman.backends.base import JobRecord, LogLine, LogQuery
from oarsman.cli import logview
from oarsman.job.state import Cause, QueuePlace

from .fakes import FAILED, MANIFEST, RUNNING, SUCCEEDED, FakeJobs, a_line, a_status, oarsman


def test_lines_carry_rank_and_host_and_each_stream_goes_to_its_own(jobs: FakeJobs, manifest: str) -> None:
    jobs.lines = {1: [a_line("hello"), a_line("from launcher", None), a_line("oops", 3, "err")]}
    jobs.story = (RUNNING, SUCCEEDED)
    result = oarsman(jobs, "run", manifest)
    assert result.stdout == "[rank 0 pi-worker-0] hello\n[pi-launcher] from launcher\n"
    assert result.stderr == "[rank 3 pi-worker-1] oops\npi succeeded after 3.5s\n"
    assert result.exit_code == 0


def test_lines_name_the_machine_of_a_host_that_is_on_one(jobs: FakeJobs, manifest: str) -> None:
    jobs.lines = {1: [a_line("hello"), a_line("from launcher", None)], 2: [a_line("again")]}
    first = replace(RUNNING, machines={"pi-worker-0": "node7", "pi-launcher": "node7"})
    then = replace(a_status(names.SUCCEEDED, attempts=2), machines={"pi-worker-0": "node8"})
    jobs.story = (first, then)
    where = "[rank 0 pi-worker-0 node{}]"
    lines = f"{where.format(7)} hello\n[pi-launcher node7] from launcher\n{where.format(8)} again\n"
    assert oarsman(jobs, "run", manifest).stdout == lines
    assert oarsman(jobs, "logs", "pi", "--attempt", "2").stdout == f"{where.format(8)} again\n"
    assert oarsman(jobs, "logs", "pi", "--attempt", "1").stdout.startswith("[rank 0 pi-worker-0] hello\n")


def test_without_tags_only_the_ranks_words_remain(jobs: FakeJobs, manifest: str) -> None:
    jobs.lines = {1: [a_line("hello\x1b[31m")]}
    assert oarsman(jobs, "run", "--no-tags", manifest).stdout == "hello\x1b[31m\n"


def test_quiet_says_nothing_of_success(jobs: FakeJobs, manifest: str) -> None:
    assert oarsman(jobs, "run", "-q", manifest).output == ""


def test_a_failure_shows_its_cause_and_gives_the_ranks_exit_code(jobs: FakeJobs, manifest: str) -> None:
    jobs.story = (RUNNING, FAILED)
    result = oarsman(jobs, "run", manifest)
    assert result.exit_code == 3
    assert result.stderr == (
        "pi failed after 3.5s\n"
        "cause: rank 1 on pi-worker-0 exited with code 3\n"
        "  rank 1, host pi-worker-0, exit code 3\n"
        "  last lines:\n"
        "    | Traceback\n"
        "    | ValueError: no\n"
        "  hint: look at rank 1\n"
    )


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (None, 1),
        (Cause(summary="x"), 1),
        (Cause(summary="x", exit_code=0), 1),
        (Cause(summary="x", exit_code=300), 1),
        (Cause(summary="x", signal=9), 137),
        (Cause(summary="x", exit_code=139, signal=11), 139),
    ],
)
def test_the_exit_code_of_a_failed_job_is_never_zero(
    jobs: FakeJobs, manifest: str, cause: Cause | None, code: int
) -> None:
    jobs.story = (a_status(names.FAILED, cause=cause),)
    assert oarsman(jobs, "run", manifest).exit_code == code


def test_each_attempt_is_followed_once_and_in_order(jobs: FakeJobs, manifest: str) -> None:
    jobs.lines = {1: [a_line("first")], 2: [a_line("second")]}
    jobs.story = (RUNNING, RUNNING, a_status(names.RESTARTING, attempts=2), a_status(names.SUCCEEDED, attempts=2))
    result = oarsman(jobs, "run", "--no-tags", manifest)
    assert result.stdout == "first\nsecond\n"
    assert "pi: attempt 2\n" in result.stderr
    assert [call[1].attempt for call in jobs.calls if call[0] == "logs"] == [1, 2]


def test_a_job_that_must_wait_says_so_once_where_no_progress_is_shown(jobs: FakeJobs, manifest: str) -> None:
    queued = a_status(names.QUEUED, attempts=0, queue=QueuePlace(position=2, reason="4 CPUs"))
    jobs.story = (queued, queued, RUNNING, SUCCEEDED)
    result = oarsman(jobs, "run", manifest)
    assert result.stderr == "pi: waiting for room, place 2: 4 CPUs\npi succeeded after 3.5s\n"
    assert oarsman(jobs, "run", "-q", "--replace", manifest).stderr == ""


def test_a_suspended_job_says_how_it_goes_on(jobs: FakeJobs, manifest: str) -> None:
    jobs.story = (RUNNING, a_status(names.SUSPENDED), a_status(names.SUSPENDED), SUCCEEDED)
    assert oarsman(jobs, "run", manifest).stderr.count("`oarsman resume pi` starts it again") == 1


def test_a_reader_that_goes_away_stops_the_job(manifest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(printer: logview.Printer, line: LogLine) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(logview.Printer, "write", broken)
    jobs = Interrupted(number=0)  # signal 0 reaches nobody
    result = oarsman(jobs, "run", manifest)
    assert (result.output, result.exit_code) == ("", 141)
    assert ("stop", "default/pi") in jobs.calls


def test_rm_deletes_the_job_after_its_end_and_run_alone_does_not(jobs: FakeJobs, manifest: str) -> None:
    assert oarsman(jobs, "run", manifest).exit_code == 0
    assert "default/pi" in jobs.records
    assert oarsman(jobs, "run", "--rm", "--replace", manifest).exit_code == 0
    assert jobs.calls[-1] == ("delete", "default/pi")


def test_a_second_run_of_the_same_manifest_is_a_conflict_unless_replaced(jobs: FakeJobs, manifest: str) -> None:
    oarsman(jobs, "run", manifest)
    again = oarsman(jobs, "run", manifest)
    assert again.exit_code == 5
    assert "hint: --replace takes the place of a job that has ended" in again.stderr
    assert oarsman(jobs, "run", "--replace", manifest).exit_code == 0


def test_a_job_deleted_meanwhile_ends_with_one(jobs: FakeJobs, manifest: str) -> None:
    jobs.story = (RUNNING,)
    result = oarsman(jobs, "run", manifest)
    assert (result.exit_code, result.stderr) == (1, "pi was deleted\n")


def test_an_error_while_watching_is_shown_as_itself(
    manifest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # for the file with the traceback

    class Broken(FakeJobs):
        async def watch(self, key: str, *, timeout: float | None = None) -> AsyncGenerator[JobRecord, None]:  # noqa: ASYNC109
            raise OSError("gone fishing")
            yield

    result = oarsman(Broken(), "run", manifest)
    assert result.exit_code == 70
    assert "error: OSError: gone fishing" in result.stderr


@dataclass
class Interrupted(FakeJobs):
    """A job that never ends by itself; its first line comes with a signal."""

    number: int = signal.SIGINT
    again: bool = False
    stopped: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    async def logs(self, key: str, query: LogQuery = LogQuery()) -> AsyncGenerator[Sequence[LogLine], None]:  # noqa: B008
        yield [a_line("working")]
        os.kill(os.getpid(), self.number)
        assert await asyncio.to_thread(self.over.wait, 120)
        yield [a_line("cleaned up")]

    async def stop(self, key: str, uid: str = "") -> JobRecord:
        record = await super().stop(key)
        self.stopped.set()
        if self.again:
            os.kill(os.getpid(), self.number)
        return record

    async def watch(self, key: str, *, timeout: float | None = None) -> AsyncGenerator[JobRecord, None]:  # noqa: ASYNC109
        yield replace(await self.get(key), status=RUNNING)
        assert await asyncio.to_thread(self.stopped.wait, 120)
        if self.again:
            assert await asyncio.to_thread(self.over.wait, 120)
        else:  # as a store has it: the wish is on record before it is heeded
            yield replace(await self.get(key), status=RUNNING, stop_requested=True)
        self.over.set()
        yield replace(await self.get(key), status=a_status(names.FAILED))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_first_signal_stops_the_job_and_waits_for_its_last_line(manifest: str, number: int, code: int) -> None:
    jobs = Interrupted(number=number)
    before = signal.getsignal(number)
    result = oarsman(jobs, "run", "--no-tags", manifest)
    assert result.exit_code == code
    assert result.stdout == "working\ncleaned up\n"
    assert ("stop", "default/pi") in jobs.calls
    assert "stopping pi and cleaning up" in result.stderr
    assert "pi was stopped after 3.5s; none of its processes is left\n" in result.stderr
    assert signal.getsignal(number) is before


def test_the_second_signal_leaves_the_job_to_the_supervisor(manifest: str) -> None:
    jobs = Interrupted(again=True)
    try:
        result = oarsman(jobs, "run", "--rm", manifest)
    finally:
        jobs.over.set()
    assert result.exit_code == 130
    assert "the supervisor continues to stop pi" in result.stderr
    assert not any(call[0] == "delete" for call in jobs.calls)


@dataclass
class Unanswered(Interrupted):
    """Whoever is asked to stop it takes time: a second signal, or a third, comes before that is on record."""

    signals: int = 2
    answers: bool = True

    async def stop(self, key: str, uid: str = "") -> JobRecord:
        for _ in range(self.signals - 1):
            os.kill(os.getpid(), self.number)
            await asyncio.sleep(1)  # longer than whoever left would stay
        if not self.answers:
            await asyncio.sleep(120)
        return await FakeJobs.stop(self, key)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nobody_leaves_before_the_stop_is_on_record(manifest: str, number: int) -> None:
    jobs = Unanswered(number=number)
    try:
        result = oarsman(jobs, "run", manifest)
    finally:
        jobs.over.set()
        jobs.stopped.set()
    assert result.exit_code == 128 + number
    assert ("stop", "default/pi") in jobs.calls
    assert "the supervisor continues to stop pi" in result.stderr


def test_who_leaves_before_the_stop_is_on_record_is_told_that_the_job_goes_on(manifest: str) -> None:
    jobs = Unanswered(signals=3, answers=False)
    try:
        result = oarsman(jobs, "run", manifest)
    finally:
        jobs.over.set()
        jobs.stopped.set()
    assert result.exit_code == 130
    assert "continues to stop" not in result.stderr
    assert "no answer, so pi may still be running; `oarsman stop pi` tries again" in result.stderr


def test_an_ignored_signal_stays_ignored(jobs: FakeJobs, manifest: str) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        jobs.lines = {1: [a_line("x")]}
        seen: list[Any] = []
        original = jobs.submit
        jobs.submit = lambda *a, **k: (seen.append(signal.getsignal(signal.SIGHUP)), original(*a, **k))[1]  # type: ignore[method-assign]
        assert oarsman(jobs, "run", manifest).exit_code == 0
        assert seen == [signal.SIG_IGN]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_run_takes_one_job_and_says_what_takes_more(jobs: FakeJobs) -> None:
    two = MANIFEST + "---\n" + MANIFEST.replace("name: pi}", "name: tau}", 1)
    result = oarsman(jobs, "run", "-", stdin=two)
    assert result.exit_code == 2
    assert "holds 2 jobs" in result.stderr
    assert "`oarsman submit` takes several" in result.stderr


def test_a_command_needs_no_manifest_and_no_dashes(jobs: FakeJobs) -> None:
    for words in (["-n", "3", "--", "python", "train.py", "--rm"], ["-n3", "python", "train.py", "--rm"]):
        assert oarsman(jobs, "run", *words).exit_code == 0
    for record in jobs.records.values():
        assert record.job.name.startswith("train-")
        assert record.job.launcher.container.argv == ("mpirun", "-n", "3", "python", "train.py", "--rm")
        assert (record.job.workers, record.job.slots_per_worker) == (2, 2)
    assert len(jobs.records) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "a manifest is missing"),
        (["-n", "4"], "-n was given but no program"),
        (["-n", "0", "--", "x"], "--processes takes a whole number, 1 or more"),
        (["--workers", "3", "job.yaml"], "--workers needs -n: a manifest says this itself"),
        (["--env", "A=1", "job.yaml"], "--env needs -n: a manifest says this itself"),
        (["python", "train.py"], "`run` takes one manifest, or -n and a command"),
        (["-n", "2", "--env", "=1", "--", "x"], "--env =1: write NAME=VALUE"),
        (["no-such-file.yaml"], "cannot read no-such-file.yaml: No such file or directory"),
        (["--timeout", "soon", "x.yaml"], "--timeout: 'soon' is not a duration"),
    ],
)
def test_a_call_that_makes_no_sense_says_so(jobs: FakeJobs, words: list[str], message: str) -> None:
    result = oarsman(jobs, "run", *words)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {message}")
    assert jobs.calls == []


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--name", "Bad_Name"], "--name"),
        (["--cpus", "x"], "--cpus"),
        (["--memory", "much"], "--memory"),
        (["--workers", "9999999999"], "--workers"),
        (["--mpi", "nope"], "--mpi"),
        (["--environment", "Bad_Name"], "--environment"),
        (["--namespace", "Bad_Name"], "--namespace"),
    ],
)
def test_a_mistake_in_an_option_names_the_option(jobs: FakeJobs, words: list[str], option: str) -> None:
    for verb in ("run", "submit"):
        result = oarsman(jobs, verb, "-n", "2", *words, "--", "true")
        assert (result.exit_code, result.stderr.partition(": error: ")[0]) == (2, option), result.stderr
        assert "problems: 1" in result.stderr
    assert jobs.records == {}


@pytest.mark.parametrize("verb", ["run", "submit", "plan"])
def test_more_ranks_than_slots_names_what_can_be_typed(jobs: FakeJobs, verb: str) -> None:
    for more in ([], ["--oversubscribe"]):
        result = oarsman(jobs, verb, "-n", "5", "--workers", "2", "--slots", "2", *more, "--", "hostname")
        assert result.exit_code == 2
        assert result.stderr.startswith("-n: error: mpirun asks for 5 processes but there are 4 slots")
        assert "    hint: --slots 3 or --workers 3\n" in result.stderr
        assert "oversubscribe" not in result.stderr
    for mended in (["--workers", "2", "--slots", "3"], ["--workers", "3", "--slots", "2"]):
        assert oarsman(jobs, "submit", "-n", "5", *mended, "--name", f"j{mended[1]}", "--", "hostname").exit_code == 0


@pytest.mark.parametrize("verb", ["run", "submit", "plan"])
def test_an_amount_of_memory_in_which_no_process_starts_is_refused(jobs: FakeJobs, verb: str) -> None:
    result = oarsman(jobs, verb, "-n", "1", "--memory", "4", "--", "hostname")
    assert result.exit_code == 2
    assert result.stderr.startswith("--memory: error: '4' is less than 1 MiB: too little memory for any process\n")
    assert "did you mean '4Gi'?" in result.stderr
    assert jobs.records == {}


def test_on_a_cluster_little_memory_is_a_warning(jobs: FakeJobs) -> None:
    result = oarsman(jobs, "submit", "--on", "kube", "-n", "1", "--image", "i", "--memory", "4", "--", "hostname")
    assert result.exit_code == 0
    assert result.stderr.startswith("--memory: warning: '4' is less than 1 MiB")


def test_of_a_program_in_the_place_of_a_manifest_it_says_that_n_is_missing(jobs: FakeJobs) -> None:
    for words in (["--", "hostname"], ["hostname"]):
        result = oarsman(jobs, "run", *words)
        assert result.exit_code == 2
        assert "hint: to run it in four ranks: oarsman run -n 4 -- hostname" in result.stderr
    assert "hint" not in oarsman(jobs, "run", "no-such-file.yaml").stderr


@pytest.mark.parametrize(
    ("command", "launcher", "hint"),
    [
        (
            ["mpirun", "-np", "8", "--hostfile", "hosts", "./pi", "-x", "a b"],
            "mpirun",
            "oarsman run -n 8 -- ./pi -x 'a b'",
        ),
        (["/opt/mpi/bin/mpiexec", "./pi"], "mpiexec", "oarsman run -n 4 -- ./pi"),
        (["sh", "-c", "mpirun -n 2 ./pi"], "mpirun", "a launch line of your own goes into the launcher's command"),
    ],
)
def test_whoever_pastes_a_launch_line_after_n_is_told_to_leave_it_out(
    jobs: FakeJobs, command: list[str], launcher: str, hint: str
) -> None:
    for verb in ("run", "submit", "plan"):
        result = oarsman(jobs, verb, "-n", "4", "--", *command)
        assert result.exit_code == 2
        said = f"error: the ranks are started for you: leave {launcher} out\n  hint: {hint}"
        assert result.stderr.startswith(said), result.stderr
    assert jobs.calls == []


def test_settings_change_a_manifests_job_too(jobs: FakeJobs, manifest: str) -> None:
    result = oarsman(
        jobs,
        "run",
        manifest,
        "--name",
        "tau",
        "--oversubscribe",
        "--mpi",
        "mpich",
        "--timeout",
        "2m",
        "--priority",
        "5",
        "--network",
        "host",
    )
    assert result.exit_code == 0
    job = jobs.records["default/tau"].job
    assert job.annotations == {
        names.ANNOTATION_MPI: "mpich",
        names.ANNOTATION_NETWORK: "host",
        names.ANNOTATION_OVERSUBSCRIBE: "true",
        names.ANNOTATION_PRIORITY: "5",
    }
    assert job.implementation.value == "MPICH"
    assert job.run_policy.active_deadline_seconds == 120
