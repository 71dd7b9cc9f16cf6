"""What a newcomer to a cluster is told: what a job waits for, who is missing, and what is left."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from oarsman import names
from oarsman.backends.base import EventRecord, JobRecord, LogQuery
from oarsman.cli import foreground
from oarsman.cli.main import cli
from oarsman.cli.session import Session
from oarsman.errors import NotFoundError
from oarsman.job.job import CleanPodPolicy, Job
from oarsman.job.state import Attempt, Cause, Condition, Status

from .fakes import FAILED, NOW, RUNNING, SUCCEEDED, FakeJobs, a_status, at, oarsman


@dataclass
class ClusterFake(FakeJobs):
    """`answer`: what the cluster says when it is asked about anything but a job."""

    home: str = "default"
    place: str = "kube"
    answer: Any = None

    async def silence(self, key: str) -> str | None:
        return None

    async def served(self, namespace: str) -> bool | None:
        return self.answer  # type: ignore[no-any-return]

    async def workers_left(self, job: Job) -> int:
        return self.answer  # type: ignore[no-any-return]

    async def lacks_namespace(self, namespace: str) -> bool:
        return bool(self.answer)


def on_kube(jobs: FakeJobs, *words: str) -> Result:
    session = Session(factory=lambda engine: jobs, now=lambda: NOW)
    return CliRunner().invoke(cli, words, obj=session, env={"TZ": "UTC", "OARSMAN_ON": "kube"}, catch_exceptions=False)


def waiting(message: str, *, attempts: tuple[Attempt, ...] = ()) -> Status:
    queued = Condition(
        type=names.QUEUED,
        status=True,
        reason=names.REASON_BARRIER,
        message=message,
        last_update_time=at(1),
        since=at(1),
    )
    return Status(conditions=(queued,), attempts=attempts, timeline={"submitted": at(0)})


PULL, BACK_OFF = "pi-worker-0: ErrImagePull: no such image", "pi-worker-0: ImagePullBackOff: no such image"


@dataclass
class Unattended(ClusterFake):
    """Nobody acts on a stop; the first look at the job comes with a signal."""

    again: bool = False
    answers: bool = True
    released: threading.Event = field(default_factory=threading.Event)

    async def watch(self, key: str, *, timeout: float | None = None) -> AsyncGenerator[JobRecord, None]:  # noqa: ASYNC109
        yield await self.get(key)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.to_thread(self.released.wait, 120)

    async def stop(self, key: str, uid: str = "") -> JobRecord:
        record = await super().stop(key)
        if self.again:
            os.kill(os.getpid(), signal.SIGTERM)
        if not self.answers:
            await asyncio.to_thread(self.released.wait, 120)
        return record


# -- a stop that nobody acts on ------------------------------------------------------------------------
@pytest.mark.parametrize("answer", [False, None])
def test_a_stop_without_an_operator_ends_and_says_what_removes_the_job(
    manifest: str, monkeypatch: pytest.MonkeyPatch, answer: bool | None
) -> None:
    monkeypatch.setattr(foreground, "_UNATTENDED_SECONDS", 0.01)
    jobs = Unattended(answer=answer)
    result = on_kube(jobs, "run", manifest)
    jobs.released.set()
    assert result.exit_code == 143
    assert ("stop", "default/pi") in jobs.calls
    assert result.stderr.endswith("no operator is running, so nobody stops pi; `oarsman delete pi` removes it\n")


def test_a_second_signal_leaves_although_the_server_does_not_answer_and_promises_nothing(
    manifest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreground, "_RECORD_SECONDS", 0.01)
    jobs = Unattended(answer=True, again=True, answers=False)
    result = on_kube(jobs, "run", manifest)
    assert not jobs.released.is_set()
    jobs.released.set()
    assert result.exit_code == 143
    assert result.stderr.endswith("no answer, so pi may still be running; `oarsman stop pi` tries again\n")


# -- what a job waits for ------------------------------------------------------------------------------
def test_run_says_what_a_job_waits_for_whenever_that_changes(manifest: str) -> None:
    jobs = ClusterFake(story=(waiting(PULL), waiting(PULL), waiting(BACK_OFF), waiting(PULL), RUNNING, SUCCEEDED))
    told = f"pi: {PULL}\npi: {BACK_OFF}\npi succeeded after 3.5s\n"
    assert on_kube(jobs, "run", manifest).stderr == told
    assert on_kube(jobs, "run", "-q", "--replace", manifest).stderr == ""


def test_a_new_attempt_says_why_the_last_one_ended(manifest: str) -> None:
    lost = Attempt(number=1, outcome="NotStarted", cause=Cause(summary="pi-worker-0 was evicted"))
    jobs = ClusterFake(story=(waiting("x", attempts=(lost, Attempt(number=2))), SUCCEEDED))
    assert (
        "pi: attempt 2, since the one before ended: pi-worker-0 was evicted\n" in on_kube(jobs, "run", manifest).stderr
    )


@pytest.mark.parametrize("reason", [names.REASON_EXCEPTION, names.REASON_OTHER_MPI, names.REASON_IDLE_RANK])
def test_run_says_once_why_a_running_job_may_never_end(manifest: str, reason: str) -> None:
    running = RUNNING.condition(names.RUNNING)
    assert running is not None
    warned = replace(RUNNING, conditions=(replace(running, reason=reason, message="rank 1 is at fault"),))
    jobs = ClusterFake(story=(RUNNING, warned, warned, SUCCEEDED))
    assert on_kube(jobs, "run", manifest).stderr == "pi: rank 1 is at fault\npi succeeded after 3.5s\n"


def test_wait_and_submit_say_what_a_job_waits_for(manifest: str) -> None:
    jobs = ClusterFake(story=(waiting(PULL), waiting(PULL), SUCCEEDED))
    jobs.add("pi")
    for words in (["wait", "pi", "--for", "succeeded"], ["submit", "--replace", "--wait", manifest]):
        assert on_kube(jobs, *words).stderr == f"pi: {PULL}\n"
        assert on_kube(jobs, *words, "-q").stderr == ""


def test_the_log_of_a_job_that_never_started_says_why() -> None:
    jobs = ClusterFake()
    jobs.add("pi", waiting(PULL))
    result = on_kube(jobs, "logs", "pi")
    assert (result.stdout, result.stderr, result.exit_code) == ("", f"pi has not started: it is Queued: {PULL}\n", 0)
    assert on_kube(jobs, "logs", "-q", "pi").output == ""
    jobs.add("pi", RUNNING)
    assert on_kube(jobs, "logs", "pi").output == ""


def test_a_log_that_never_began_is_not_missed() -> None:
    class Gone(ClusterFake):
        async def logs(self, key: str, query: LogQuery = LogQuery()) -> AsyncGenerator[Any, None]:  # noqa: B008
            raise NotFoundError("the launcher pod is gone", hint="h")
            yield

    jobs = Gone()
    jobs.add("pi", waiting(PULL))
    assert on_kube(jobs, "logs", "pi").exit_code == 0
    jobs.add("pi", RUNNING)
    assert on_kube(jobs, "logs", "pi").exit_code == 4


def test_a_retry_comes_with_the_hint_of_its_cause_once(manifest: str) -> None:
    def retried(number: int, hint: str | None) -> Status:
        cause = Cause(summary="rank 1 on pi-worker-1 exited with code 1", hint=hint)
        status = a_status(names.RESTARTING, attempts=number, cause=cause)
        message = f"attempt {number} failed: {cause.summary}"
        return replace(status, conditions=tuple(replace(c, message=message) for c in status.conditions))

    hints = (None, "buy a seat", "buy a seat", "install numpy", "buy a seat")
    story = tuple(retried(number, hint) for number, hint in enumerate(hints, 1))
    said = oarsman(FakeJobs(story=(*story, a_status(names.SUCCEEDED, attempts=6))), "run", manifest).stderr
    told = [line.removesuffix(": rank 1 on pi-worker-1 exited with code 1") for line in said.splitlines()]
    assert [line for line in told if "failed" in line or "hint" in line] == [
        "pi: attempt 1 failed",
        "pi: attempt 2 failed",
        "  hint: buy a seat",
        "pi: attempt 3 failed",
        "pi: attempt 4 failed",
        "  hint: install numpy",
        "pi: attempt 5 failed",
    ]


def test_a_description_of_a_job_stopped_while_it_waited_says_what_for() -> None:
    stopped = a_status(names.FAILED, cause=Cause(summary="stopped"), timeline={"submitted": at(0), "ended": at(4)})
    reasons = [replace(c, reason=names.REASON_STOPPED) if c.type == names.FAILED else c for c in stopped.conditions]
    jobs = ClusterFake()
    jobs.add("pi", replace(stopped, conditions=tuple(reasons)))
    jobs.happened = [
        EventRecord(time=at(2), first_time=at(2), severity="Warning", reason=names.REASON_BARRIER, message=PULL)
    ]
    assert f"cause: stopped\nBefore that it waited: {PULL}\n" in on_kube(jobs, "describe", "pi").stdout


# -- what is left, and what is not there ---------------------------------------------------------------
def test_workers_that_were_kept_are_mentioned_with_what_removes_them(manifest: str) -> None:
    said = "2 worker pods still run, as its cleanPodPolicy None says; `oarsman delete pi` removes them\n"
    jobs = ClusterFake(answer=2)
    assert jobs.add("pi").job.run_policy.clean_pod_policy is not CleanPodPolicy.NONE
    assert said not in on_kube(jobs, "describe", "pi").stdout
    assert on_kube(jobs, "run", "--replace", manifest).stderr.endswith(said)
    assert said in on_kube(jobs, "describe", "pi").stdout
    (kept,) = jobs.records.values()
    stopped = a_status(names.FAILED, cause=Cause(summary="stopped"))
    by_force = [replace(c, reason=names.REASON_STOPPED) for c in stopped.conditions]
    ended = replace(kept, status=replace(stopped, conditions=tuple(by_force)))
    assert said not in on_kube(ClusterFake(answer=2, records={"default/pi": ended}), "describe", "pi").stdout
    assert said not in oarsman(FakeJobs(records=jobs.records), "describe", "pi").stdout


def test_a_namespace_that_is_not_there_is_no_empty_one() -> None:
    missing = on_kube(ClusterFake(answer=True), "list", "-n", "nosuch")
    assert (missing.exit_code, missing.stdout) == (4, "")
    assert missing.stderr.startswith("error: there is no namespace nosuch on this cluster\n")
    assert on_kube(ClusterFake(answer=False), "list", "-n", "empty").stderr == "no jobs\n"
    assert oarsman(FakeJobs(), "list", "--namespace", "nosuch").stderr == "no jobs\n"


def test_a_job_that_takes_its_time_to_go_is_being_deleted() -> None:
    class Slow(ClusterFake):
        async def delete(self, key: str, uid: str = "") -> None:
            self.records[key] = replace(await self.get(key), deleting=True)

        async def watch(self, key: str, *, timeout: float | None = None) -> AsyncGenerator[JobRecord, None]:  # noqa: ASYNC109
            yield self.records.pop(key)

    jobs = Slow()
    jobs.add("pi")
    assert on_kube(jobs, "delete", "pi").stdout == "pi is being deleted\n"
    assert on_kube(jobs, "delete", "--wait", "pi").stdout == "pi deleted\n"
    assert jobs.records == {}


def test_a_job_made_with_another_tool_was_submitted_by_nobody_in_particular() -> None:
    jobs = ClusterFake()
    record = jobs.add("pi")
    jobs.records[record.job.key] = replace(record, owner="")
    assert " (5m ago)\n" in on_kube(jobs, "describe", "pi").stdout


def test_an_option_of_a_verb_in_front_of_it_is_told_its_place() -> None:
    result = oarsman(FakeJobs(), "-n", "team-a", "logs", "x")
    assert result.stderr == "error: there is no option -n\n  hint: write it after the verb: oarsman VERB -n ...\n"
    assert "after the verb" not in oarsman(FakeJobs(), "-z", "logs", "x").stderr


def test_without_a_state_the_end_is_waited_for(jobs: FakeJobs) -> None:
    jobs.add("pi", FAILED)
    assert oarsman(jobs, "wait", "pi").exit_code == 0
    jobs.add("tau", RUNNING)
    assert oarsman(jobs, "wait", "tau", "--timeout", "0").exit_code == 124
