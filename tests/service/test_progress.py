"""How far a job is: what its lines add up to, that each is read once, and that a long log stays bounded."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from console.api.asking import Asking, asking
from console.api.memory import RUNNING, SUCCEEDED, MemoryJobs, at
from waiting import waiting

from oarsman.backends.base import EVERYTHING, LogPage, LogQuery
from oarsman.errors import NotFoundError
from oarsman.job.state import Attempt
from oarsman.service import JobService, progress
from oarsman.service.models import Identity, MetricSeries, Progress, Role
from oarsman.service.progress import ProgressKept

ADA = Identity(name="ada", role=Role.USER)
KEY = "default/pi"


class CountingJobs(MemoryJobs):
    """Counts how often each line is handed out. `attempt` is whose log there is."""

    def __init__(self) -> None:
        super().__init__()
        self.attempt = 1
        self.read: Counter[str] = Counter()
        self.open_follows = 0
        self.gone = False
        self.spelled_otherwise = False  # as a door may do that has no offsets

    async def log_page(self, key: str, query: LogQuery = EVERYTHING, **given: Any) -> LogPage:
        if self.gone:
            raise NotFoundError("the log is gone")
        page = replace(await super().log_page(key, query, **given), attempt=self.attempt)
        if given.get("limit") != 1:  # one that only asks whether there is a log at all
            self.read.update(placed.line.text for placed in page.lines)
        if self.spelled_otherwise and given.get("after") is None:
            return replace(page, lines=tuple(placed._replace(after=f"~{placed.after}") for placed in page.lines))
        return page

    async def log_follow(
        self, key: str, query: LogQuery = EVERYTHING, *, after: str | None = None
    ) -> AsyncGenerator[LogPage, None]:
        self.open_follows += 1
        try:
            async with aclosing(super().log_follow(key, query, after=after)) as pages:
                async for page in pages:
                    yield page
        finally:
            self.open_follows -= 1

    def try_again(self, key: str) -> None:
        """Another attempt, whose log is empty."""
        self.attempt += 1
        self._lines[key] = []
        attempts = tuple(Attempt(number=number, started=at(number)) for number in range(1, self.attempt + 1))
        self.become(key, replace(self.record(key).status, attempts=attempts))


@pytest.fixture
def jobs() -> CountingJobs:
    made = CountingJobs()
    made.add()
    return made


@pytest.fixture
def service(jobs: CountingJobs) -> Any:
    return waiting(JobService(jobs, ADA, now=lambda: at(60)))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look reads 150 lines at most: the first 100 and the last 50."""
    monkeypatch.setattr(progress, "OLDEST", 100)
    monkeypatch.setattr(progress, "NEWEST", 50)
    monkeypatch.setattr(progress, "_PAGE", 20)


def series(found: Progress) -> dict[str, MetricSeries]:
    return {one.name: one for one in found.series}


# -- what the lines add up to --------------------------------------------------------------------------
def test_a_job_that_said_nothing_has_ranks_and_no_series(service: Any) -> None:
    found = service.progress(KEY)
    assert (list(found.series), found.complete) == ([], True)
    assert [(rank.rank, rank.host, rank.state, rank.lines) for rank in found.ranks][2:] == [
        (2, "pi-worker-1", "running", 0),
        (3, "pi-worker-1", "", 0),
    ]


def test_named_numbers_become_series_with_time_and_step(jobs: CountingJobs, service: Any) -> None:
    jobs.say(KEY, "starting", "step 10 loss: 0.5", "nothing here", "step 20 loss: 0.25")
    found = series(service.progress(KEY))
    assert [(point.time, point.value, point.step) for point in found["loss"].points] == [
        (at(1), 0.5, 10),
        (at(3), 0.25, 20),
    ]
    assert [(point.value, point.step) for point in found["step"].points] == [(10, None), (20, None)]
    assert list(found) == ["loss", "step"]


def test_a_number_that_came_once_is_no_series(jobs: CountingJobs, service: Any) -> None:
    jobs.say(KEY, "loss: 0.5")
    assert not service.progress(KEY).series
    jobs.say(KEY, "loss: 0.5")
    assert list(series(service.progress(KEY))) == ["loss"]


def test_the_lowest_rank_speaks_for_all(jobs: CountingJobs, service: Any) -> None:
    for rank in (2, None, 0, 1, 2, 0, None):
        jobs.say(KEY, f"loss: 0.{5 if rank is None else rank}", rank=rank)
    found = series(service.progress(KEY))["loss"]
    assert (found.rank, [point.value for point in found.points]) == (0, [0.0, 0.0])


def test_where_nobody_knows_the_rank_nothing_is_claimed_of_one(jobs: CountingJobs, service: Any) -> None:
    for step in range(30):
        jobs.say(KEY, f"step {step} loss: 0.5", f"step {step // 5} loss: 0.5", rank=None)
    found = service.progress(KEY)
    assert series(found)["loss"].rank is None
    assert {(rank.lines, rank.step, rank.behind) for rank in found.ranks} == {(0, None, "")}


def test_a_rank_that_is_behind_is_named_while_it_runs(jobs: CountingJobs, service: Any) -> None:
    for step in range(1, 31):
        for rank in range(3):
            jobs.say(KEY, f"step {step if rank != 1 else min(step, 5)}", rank=rank)
    ranks = service.progress(KEY).ranks
    assert [(rank.step, rank.behind) for rank in ranks[:3]] == [(30, ""), (5, "at step 5, the others at 30"), (30, "")]
    assert (ranks[1].lines, ranks[1].last_output) == (30, at(88))
    jobs.become(KEY, SUCCEEDED)
    assert {rank.behind for rank in service.progress(KEY).ranks} == {""}
    assert {(rank.state, rank.exit_code) for rank in service.progress(KEY).ranks} == {("exited", 0)}


def test_tagged_lines_tell_who_is_behind_where_ranks_cannot_be_seen(jobs: CountingJobs, service: Any) -> None:
    jobs.become(KEY, replace(RUNNING, placement={}))
    for step in range(1, 31):
        jobs.say(KEY, f"step {step}", rank=0)
        jobs.say(KEY, f"step {step // 2}", rank=1)
    assert [(rank.state, rank.behind) for rank in service.progress(KEY).ranks][:2] == [
        ("", ""),
        ("", "at step 15, the others at 30"),
    ]


def test_steps_that_begin_anew_with_every_epoch_accuse_nobody(jobs: CountingJobs, service: Any) -> None:
    for epoch in range(3):
        for step in range(0, 100, 10):
            for rank in range(3):
                if (epoch, step, rank) != (2, 0, 1):
                    jobs.say(KEY, f"epoch {epoch} step {step}", rank=rank)
        if epoch == 1:
            jobs.say(KEY, "epoch 2 step 0", rank=0)  # the first one in the new epoch
            assert {rank.behind for rank in service.progress(KEY).ranks} == {""}


def test_ranks_that_nobody_planned_are_told_as_their_lines_say(jobs: CountingJobs, service: Any) -> None:
    jobs.say(KEY, "hello", rank=9)
    last = service.progress(KEY).ranks[-1]
    assert (last.rank, last.host, last.state, last.lines) == (9, "pi-worker-0", "", 1)


# -- each line once --------------------------------------------------------------------------------------
def test_no_line_is_read_twice(jobs: CountingJobs, service: Any) -> None:
    said = 0
    for amount in (0, 1, 1, 30, 0, 500):
        jobs.say(KEY, *(f"line {said + n} loss: {said + n}.5" for n in range(amount)))
        said += amount
        found = service.progress(KEY)
    assert len(jobs.read) >= said - 1  # a log of one line is read with the question whether there is one
    assert set(jobs.read.values()) == {1}
    assert [point.value for point in series(found)["loss"].points][-1] == said - 0.5
    assert found.ranks[0].lines == said


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("lines", [1, 2, 19, 20, 21, 99, 100, 101, 110, 149, 150])
@pytest.mark.parametrize("spelled_otherwise", [False, True])
def test_a_log_within_the_limits_is_counted_whole_and_once(
    jobs: CountingJobs, service: Any, lines: int, spelled_otherwise: bool
) -> None:
    jobs.spelled_otherwise = spelled_otherwise
    jobs.say(KEY, "first", rank=1)
    service.progress(KEY)
    jobs.say(KEY, *(f"line {n} loss: {n}.5" for n in range(lines)))
    found = service.progress(KEY)
    assert found.complete
    assert found.ranks[0].lines == lines


@pytest.mark.usefixtures("short")
def test_of_a_longer_log_the_beginning_and_the_newest_lines_are_read(
    jobs: CountingJobs, service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def first(*_: Any, **__: Any) -> AsyncGenerator[LogPage, None]:
        yield await jobs.log_page(KEY, after="0", limit=10)

    monkeypatch.setattr(jobs, "log_follow", first)
    jobs.say(KEY, *(f"line {n} loss: {n}.5" for n in range(1000)))
    found = service.progress(KEY)
    assert not found.complete
    values = [point.value for point in series(found)["loss"].points]
    assert values == [n + 0.5 for n in (*range(110), *range(950, 1000))]
    assert found.ranks[0].lines == 160
    jobs.say(KEY, "line 1000 loss: 1000.5")
    again = service.progress(KEY)
    assert (again.complete, again.ranks[0].lines) == (False, 161)
    assert set(jobs.read.values()) == {1}


def test_only_the_first_page_is_followed_and_then_it_is_closed(jobs: CountingJobs, service: Any) -> None:
    jobs.say(KEY, "a", "b", "c")
    assert service.progress(KEY).ranks[0].lines == 3
    assert jobs.open_follows == 0


def test_an_ended_job_is_not_read_again(jobs: CountingJobs, service: Any) -> None:
    jobs.say(KEY, "loss: 0.5", "loss: 0.25")
    jobs.become(KEY, SUCCEEDED)
    before = service.progress(KEY)
    jobs.gone = True
    assert service.progress(KEY) == before


def test_a_log_that_went_with_its_pod_leaves_what_was_read_of_it(jobs: CountingJobs, service: Any) -> None:
    jobs.say(KEY, "loss: 0.5", "loss: 0.25")
    before = service.progress(KEY)
    jobs.gone = True
    assert service.progress(KEY) == before
    assert waiting(JobService(jobs, ADA)).progress(KEY).ranks


def test_another_attempt_begins_anew_once_it_has_a_log(jobs: CountingJobs, service: Any) -> None:
    jobs.say(KEY, "loss: 0.5", "loss: 0.25", "loss: 0.1")
    service.progress(KEY)
    jobs.try_again(KEY)
    assert not service.progress(KEY).series
    jobs.say(KEY, "loss: 9.5", "loss: 8.5")
    found = series(service.progress(KEY))["loss"]
    assert [point.value for point in found.points] == [9.5, 8.5]


def test_a_job_of_the_same_name_begins_anew(jobs: CountingJobs, service: Any) -> None:
    jobs.say(KEY, "loss: 0.5", "loss: 0.25")
    service.progress(KEY)
    jobs.vanish(KEY)
    jobs._lines[KEY] = []
    record = jobs.add()
    jobs._put(replace(record, job=replace(record.job, uid="another")))
    assert not service.progress(KEY).series


def test_many_who_ask_at_once_read_it_once(jobs: CountingJobs) -> None:
    kept = ProgressKept()
    jobs.say(KEY, *(f"line {n} loss: {n}.5" for n in range(200)))
    together = threading.Barrier(4)

    def ask(_: int) -> Progress:
        together.wait()
        return waiting(JobService(jobs, ADA, now=lambda: at(60), progress=kept)).progress(KEY)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(4)))
    assert all(answer == answers[0] for answer in answers)
    assert answers[0].ranks[0].lines == 200
    assert max(jobs.read.values()) == 1


# -- bounded ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [2, 499, 500, 501, 1000, 1001, 1002, 12_345])
def test_points_are_thinned_evenly_with_the_first_and_the_last(count: int) -> None:
    thinned = progress._Thinned(0)
    for number in range(count):
        thinned.add(progress._Point(str(number), float(number), None))
    values = [point.value for point in thinned.thin()]
    assert (values[0], values[-1]) == (0, count - 1)
    assert len(values) == min(count, 500)
    gaps = [later - earlier for earlier, later in pairwise(values[:-1])]
    assert max(gaps, default=1) - min(gaps, default=1) <= thinned.stride
    assert len(thinned.points) <= 1000


def test_there_are_never_more_than_a_dozen_series(jobs: CountingJobs, service: Any) -> None:
    for _ in range(2):
        jobs.say(KEY, *(f"a{n}_loss: 0.5 step {n}" for n in range(100)))
    found = service.progress(KEY)
    assert len(found.series) == progress.MOST_SERIES


def test_only_the_jobs_looked_at_last_are_kept(jobs: CountingJobs) -> None:
    kept = ProgressKept()
    service = waiting(JobService(jobs, ADA, now=lambda: at(60), progress=kept))
    for number in range(100):
        jobs.add(f"job-{number}", RUNNING)
        service.progress(f"default/job-{number}")
    assert len(kept._kept) == progress._MOST_JOBS


# -- through REST ------------------------------------------------------------------------------------------
def test_over_rest_it_is_the_same_and_kept_with_the_door(tmp_path: Any) -> None:
    jobs = CountingJobs()
    jobs.add()
    with asking(tmp_path, jobs) as ask:
        jobs.say(KEY, *(f"step {n} loss: {n}.5" for n in range(1, 9)))
        assert _answer(ask) == waiting(JobService(MemoryCopy(jobs), ADA)).progress(KEY)
        jobs.say(KEY, "step 9 loss: 9.5")
        assert series(_answer(ask))["loss"].points[-1].value == 9.5
    assert set(jobs.read.values()) == {1}


class MemoryCopy(MemoryJobs):
    """The same jobs and lines, without counting."""

    def __init__(self, other: CountingJobs) -> None:
        super().__init__()
        self._records, self._lines = other._records, other._lines


def _answer(ask: Asking) -> Progress:
    answer = ask("GET", f"/jobs/{KEY}/progress")
    assert answer.status_code == 200, answer.text
    return Progress.model_validate_json(answer.content)
