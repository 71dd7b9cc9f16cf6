"""What the page of a job makes of its data, before any browser sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from oarsman.console.pages.create import draft
from oarsman.console.pages.job import tabs
from oarsman.console.pages.overview import keeps_failing
from oarsman.console.parts import words
from oarsman.console.parts.charts import condition, curve, marks
from oarsman.console.parts.words import Words
from oarsman.service import JobService
from oarsman.service.models import (
    AttemptView,
    Identity,
    JobSummary,
    JobView,
    MetricPoint,
    MetricSeries,
    RankProgress,
    Role,
    Step,
    UsagePoint,
)
from oarsman.text.sentence import Text

from .api.memory import SUCCEEDED, MemoryJobs

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SAY = Words("en")


def test_a_step_that_was_passed_over_takes_no_time_and_the_next_counts_from_the_one_before() -> None:
    steps = [Step(name=name, time=NOON + timedelta(seconds=at)) for name, at in (("submitted", 0), ("admitted", 2))]
    told = {mark.name: (mark.time is not None, mark.took) for mark in marks(Words("en"), steps)}
    assert told["submitted"] == (True, "")
    assert told["queued"] == (False, "")
    assert told["admitted"] == (True, "2s")
    assert told["ended"] == (False, "")


def test_an_attempt_that_somebody_stopped_is_not_called_failed() -> None:
    attempts = [AttemptView(number=1, outcome="Failed"), AttemptView(number=2, outcome="Failed")]
    stopped, failed = (a_job(state, attempts) for state in ("Stopped", "Failed"))
    assert [words.outcome_of(stopped, one) for one in attempts] == ["Failed", "Stopped"]
    assert [words.outcome_of(failed, one) for one in attempts] == ["Failed", "Failed"]
    assert words.outcome_of(failed, AttemptView(number=3)) == "Running"


def test_what_the_program_said_comes_before_who_ended() -> None:
    cause = Text("{what}: {why}", what=Text("rank {rank} ended", rank=1), why="CUDA out of memory")
    assert words.error_first(SAY, cause) == ("CUDA out of memory", "rank 1 ended")
    assert words.error_first(SAY, "the launcher vanished") == ("the launcher vanished", "")


@pytest.mark.parametrize(("attempt", "cause", "alarm"), [(3, "it broke", True), (2, "it broke", False), (9, "", False)])
def test_a_job_keeps_failing_from_its_third_attempt_on(attempt: int, cause: str, alarm: bool) -> None:
    one = a_job("Running", []).summary.model_copy(update={"attempt": attempt, "cause": cause})
    assert keeps_failing(one) is alarm


def test_a_curve_is_the_sum_of_all_hosts_and_of_gpus_where_there_are_any() -> None:
    busy = [point(0, "a"), point(0, "b"), point(5, "a")]
    assert curve(busy) == [round(2 * busy[0].cpu_percent, 1), round(busy[2].cpu_percent, 1)]
    assert curve([*busy, point(5, "b").model_copy(update={"gpu_percent": 70.0})]) == [0.0, 70.0]
    assert len(curve([point(second, "a") for second in range(500)])) == 60


@pytest.mark.parametrize(
    ("state", "exit_code", "word"),
    [
        ("running", None, "running"),
        ("exited", 0, "done"),
        ("exited", 3, "failed"),
        ("exited", None, "exited"),
        ("", None, "unknown"),
        ("<b>", None, "unknown"),
    ],
)
def test_a_rank_has_one_word(state: str, exit_code: int | None, word: str) -> None:
    assert condition(RankProgress(rank=0, host="a", state=state, exit_code=exit_code)) == word


def test_a_long_history_is_thinned_evenly_for_all_hosts_and_keeps_its_last_moment() -> None:
    points = [point(second, host) for second in range(5000) for host in ("a", "b")]
    kept = tabs.thinned(points)
    assert 200 < len(kept) / 2 <= 402
    assert [one.host for one in kept[-2:]] == ["a", "b"]
    assert kept[-1].time == points[-1].time


def test_what_is_not_known_of_a_host_is_not_drawn() -> None:
    drawn = {panel.id: panel.lines for panel in tabs.usage_panels(SAY, [point(0, "a")])}
    assert drawn["cpu"] == {"a": [(NOON.timestamp() * 1000, 12.3)]}
    assert drawn["gpu"] == drawn["in"] == {}


@pytest.mark.parametrize(
    ("steps", "by_time", "x"),
    [((1.0, 2.0), False, "step"), ((1.0, None), False, "time"), ((1.0, 2.0), True, "time")],
)
def test_metrics_go_by_steps_where_every_point_has_one(steps: Sequence[float | None], by_time: bool, x: str) -> None:
    points = [MetricPoint(time=NOON, value=0.5, step=step) for step in steps]
    (panel,) = tabs.panels(SAY, [MetricSeries(name="loss", rank=0, points=points)], by_time=by_time)
    assert panel.x == x
    assert [at for at, _ in panel.lines["Rank 0"]] == ([1.0, 2.0] if x == "step" else [NOON.timestamp() * 1000] * 2)


def test_a_copy_of_an_earlier_run_asks_for_what_that_run_asked_for() -> None:
    jobs = MemoryJobs()
    jobs.add(status=SUCCEEDED, metadata={"annotations": {"example.org/try": "first"}})
    jobs.keep("default/pi")
    jobs.add(status=SUCCEEDED, metadata={"annotations": {"example.org/try": "second"}}, run=2)
    service = JobService(jobs, Identity(name="ada", role=Role.ADMIN))
    copies = {run: asyncio.run(draft.like(service, "default/pi", run=run)) for run in (None, 1)}
    assert [("second" in text, "name: pi-2" in text) for text in copies.values()] == [(True, True), (False, True)]


@pytest.mark.parametrize(("engine", "shown"), [("local", "4 CPU"), ("ssh", "4 slots"), ("kube", "")])
def test_a_job_that_says_nothing_of_cpus_shows_what_it_counts_for(engine: str, shown: str) -> None:
    given = {"cpus": 0.0, "memory_bytes": 0, "gpus": 0, "slots": 4, "engine": engine}
    assert words.resources(SAY, JobSummary.model_construct(**given)) == shown


def a_job(state: str, attempts: Sequence[AttemptView]) -> JobView:
    one = JobSummary.model_construct(key="default/a", name="a", namespace="default", state=state)
    return JobView.model_construct(summary=one, attempts=attempts)


def point(second: int, host: str) -> UsagePoint:
    return UsagePoint(time=NOON + timedelta(seconds=second), host=host, cpu_percent=12.34, memory_bytes=1)
