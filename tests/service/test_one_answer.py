"""One job, asked for everywhere: command, REST API, SDK and console say the same state, duration and reason."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cli.fakes import CAUSE, FakeJobs, a_status
from click.testing import CliRunner

from oarsman import names
from oarsman.backends.base import JobRecord
from oarsman.cli.main import cli
from oarsman.cli.session import Session
from oarsman.cli.text import t
from oarsman.client.job_view import Seen, SeenJob, happening, reached, settled
from oarsman.console.parts import job_rows, widgets, words
from oarsman.console.parts.words import Words
from oarsman.job.state import QueuePlace, Status
from oarsman.service import views
from oarsman.service.models import JobSummary
from oarsman.service.sweeps import point_state
from oarsman.status.words import STATES, state

# What has not ended is asked for at several moments: far from the next minute, they all say the same.
RUNS = timedelta(hours=2, minutes=5, seconds=20)
BEGAN = datetime.now(UTC) - RUNS
SHORT, LONG = BEGAN + timedelta(seconds=3.46), BEGAN + timedelta(minutes=61, seconds=7)
FAILED = a_status(names.FAILED, cause=CAUSE, start_time=BEGAN, completion_time=SHORT)
STOPPED = replace(
    FAILED,
    cause=None,
    conditions=tuple(
        replace(c, reason=names.REASON_STOPPED) if c.type == names.FAILED else c for c in FAILED.conditions
    ),
)
QUEUE = QueuePlace(position=2, reason="needs 4 CPUs")


@dataclass(frozen=True)
class Case:
    status: Status
    state: str
    duration: str
    reason: str
    why: str
    asked: tuple[str, ...] = ()


CASES = {
    "nobody has looked at it": Case(Status(), "Pending", "", "", ""),
    "created": Case(a_status(start_time=None), "Pending", "", "MPIJobCreated", "it is created"),
    "queued": Case(a_status(names.QUEUED, start_time=None, queue=QUEUE), "Queued", "", "MPIJobQueued", "needs 4 CPUs"),
    "running": Case(a_status(names.RUNNING, start_time=BEGAN), "Running", "2h5m", "MPIJobRunning", "it is running"),
    "restarting": Case(
        a_status(names.RESTARTING, start_time=BEGAN), "Restarting", "2h5m", "MPIJobRestarting", "it is restarting"
    ),
    "succeeded": Case(
        a_status(names.SUCCEEDED, start_time=BEGAN, completion_time=LONG),
        "Succeeded",
        "1h1m",
        "MPIJobSucceeded",
        "it is succeeded",
    ),
    "failed": Case(FAILED, "Failed", "3.5s", "MPIJobFailed", CAUSE.summary),
    "stopped": Case(STOPPED, "Stopped", "3.5s", "StoppedByUser", "it is failed"),
    "suspended": Case(
        a_status(names.SUSPENDED, start_time=None), "Suspended", "", "MPIJobSuspended", "it is suspended"
    ),
    "asked to stop": Case(
        a_status(names.RUNNING, start_time=BEGAN),
        "Stopping",
        "2h5m",
        "MPIJobRunning",
        "it is running",
        asked=("stop_requested",),
    ),
    "asked to go": Case(FAILED, "Deleting", "3.5s", "MPIJobFailed", CAUSE.summary, asked=("deleting",)),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """As if it had begun just now: between reading this file and running it, much time may pass."""
    found = CASES[request.param]
    later = datetime.now(UTC) - RUNS - BEGAN
    status = found.status
    began, ended = (None if at is None else at + later for at in (status.start_time, status.completion_time))
    return replace(found, status=replace(status, start_time=began, completion_time=ended))


@pytest.fixture
def jobs() -> FakeJobs:
    return FakeJobs()


@pytest.fixture
def record(case: Case, jobs: FakeJobs) -> JobRecord:
    return jobs.add("pi", case.status, **dict.fromkeys(case.asked, True))


@pytest.fixture
def summary(record: JobRecord) -> JobSummary:
    return views.summary(record)


def lines_of(jobs: FakeJobs, *command: str) -> list[str]:
    session = Session(factory=lambda engine: jobs, now=lambda: datetime.now(UTC))
    done = CliRunner().invoke(cli, command, obj=session, env={"OARSMAN_ON": ""}, catch_exceptions=False)
    return done.stdout.splitlines()


def test_the_command_lists_it(case: Case, record: JobRecord, jobs: FakeJobs) -> None:
    _, state, _, _, duration, reason, *_, message = re.split(r" {2,}", lines_of(jobs, "list", "-o", "wide")[1])
    assert (state, duration, reason) == (case.state, case.duration or "-", case.reason or "-")
    assert message.endswith(case.why or "-")


def test_the_command_describes_it(case: Case, record: JobRecord, jobs: FakeJobs) -> None:
    facts = dict(re.split(r": +", line, maxsplit=1) for line in lines_of(jobs, "describe", "pi") if ": " in line)
    assert facts[t("State")] == case.state
    assert facts.get(t("Duration"), "") == case.duration
    assert (facts.get(t("Says")) or facts.get("cause", "")).endswith(case.why)


def test_a_list_can_be_narrowed_to_the_word_it_shows(case: Case, record: JobRecord, jobs: FakeJobs) -> None:
    assert lines_of(jobs, "list", "--state", case.state, "-o", "name") == ["mpijob/pi"]
    assert lines_of(jobs, "list", "--state", "Created", "-o", "name") == []


def test_the_command_waits_for_it(case: Case, record: JobRecord, jobs: FakeJobs) -> None:
    goals = {names.SUCCEEDED: "finished", names.FAILED: "finished", names.RUNNING: "running"}
    goal = goals.get(case.status.phase, "suspended")
    jobs.story = [case.status]
    said = lines_of(jobs, "wait", "pi", "--for", goal)
    met = goal != "suspended" or case.status.is_true(names.SUSPENDED)
    assert said == ([f"pi is {case.state}"] if met else [])


def test_the_command_says_as_what_it_ended_instead(case: Case, record: JobRecord, jobs: FakeJobs) -> None:
    jobs.story = [case.status]
    session = Session(factory=lambda engine: jobs, now=lambda: datetime.now(UTC))
    done = CliRunner().invoke(cli, ["wait", "pi", "--for", "suspended"], obj=session, env={"OARSMAN_ON": ""})
    if case.status.finished:
        assert done.exit_code == 1
        assert f"pi cannot become suspended: it is {case.state}" in done.stderr


def test_the_rest_api_tells_programs(case: Case, summary: JobSummary) -> None:
    told: dict[str, Any] = summary.model_dump(by_alias=True)
    assert (told["state"], told["reason"], told["cause"] or told["message"]) == (case.state, case.reason, case.why)
    assert (told["started"], told["ended"]) == (case.status.start_time, case.status.completion_time)


def test_a_handle_shows_it_as_text_and_in_a_notebook(case: Case, record: JobRecord) -> None:
    job = views.whole_job(record)
    handle = SeenJob(Seen(record.job.key, job, job.summary))
    assert (handle.state, handle.summary.reason) == (case.state, case.reason)
    text, html = repr(handle), handle._repr_html_()
    assert text.startswith(f"<job default/pi {case.state}, ")
    assert f">{case.state}</b>" in html
    assert not case.duration or (f", {case.duration}" in text and f", {case.duration}</p>" in html)
    assert case.why in html
    if case.status.finished:
        assert happening(job).startswith(f"pi: {case.state.lower()}")
        assert handle.finished
        assert settled(job, "failed", check=False)
        assert reached(job, "failed") is case.status.is_true(names.FAILED)


def test_the_console_has_a_row_of_it(case: Case, record: JobRecord, summary: JobSummary) -> None:
    row = job_rows.row(Words("en"), summary)
    assert row["state"] == case.state
    nothing_new = case.state in ("Running", "Succeeded")  # the message of these is their name once more
    assert sorted(row["why"].split(" · ")) == ([""] if nothing_new else sorted(case.why.split(": ", 1)))
    assert words.duration(words.Words("en"), summary.started, summary.ended) == case.duration
    if summary.ended is not None:
        assert (row["since"], row["duration"]) == (None, case.duration)
    elif summary.started is not None:  # the browser counts up from there
        assert (row["since"], row["duration"]) == (int(summary.started.timestamp() * 1000), "")


def test_a_sweep_says_the_same_of_its_point(case: Case, record: JobRecord, summary: JobSummary) -> None:
    assert point_state(summary) == case.state
    if not case.asked:
        assert state(record.status) == case.state


def test_the_console_has_a_sign_for_every_state_and_for_no_other() -> None:
    assert tuple(widgets.STATES) == STATES
