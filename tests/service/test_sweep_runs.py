"""Which points of a sweep are handed in, when, and which never again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from console.api.memory import FAILED, RUNNING, SUCCEEDED, MemoryJobs, a_document, a_status, at
from waiting import waiting

from oarsman import names
from oarsman.backends.base import Fit
from oarsman.errors import ConflictError, ManifestError, NotFoundError, UsageError
from oarsman.job.state import Status
from oarsman.job.sweep import Sweep, pattern_of
from oarsman.manifest import to_yaml
from oarsman.portal import shared
from oarsman.service.sweep_runs import Handing, MetricsKept, SweepRunner, last_number

HANDING = Handing(environment={}, folder=Path("/"), owner="ada")
STOPPED = replace(
    a_status(names.FAILED, ended=at(9)),
    conditions=tuple(
        replace(found, reason=names.REASON_STOPPED) if found.type == names.FAILED else found
        for found in FAILED.conditions
    ),
)


def a_sweep(**given: Any) -> Sweep:
    manifest = to_yaml([a_document("x", slotsPerWorker="{{slots}}")])
    return Sweep(**{"name": "s", "namespace": "", "manifest": manifest, "grid": {"slots": [2, 3, 4]}, **given})


class Runner(SweepRunner):
    """Whose drives are waited for."""

    async def begin(self, *args: Any) -> Any:
        return waiting(await super().begin(*args))


def runner(jobs: MemoryJobs) -> Any:
    return waiting(Runner(jobs))


def begun(jobs: MemoryJobs, **given: Any) -> Any:
    drive = runner(jobs).begin(a_sweep(**given), HANDING)
    drive.hand_in()
    return drive


def names_of(jobs: MemoryJobs) -> list[str]:
    return [record.job.name for record in jobs.records()]


@contextmanager
def running(drive: Any, **how: Any) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=drive.run, kwargs=how)
    thread.start()
    try:
        yield thread
        thread.join(120)
        assert not thread.is_alive()
    finally:
        drive.close()
        thread.join(120)


def until(jobs: MemoryJobs, *expected: str) -> None:
    """Wait for these jobs to be there, and no others."""
    with jobs._change:
        assert jobs._change.wait_for(lambda: names_of(jobs) == list(expected), 20), names_of(jobs)


def test_everything_is_handed_in_where_the_engine_has_a_queue() -> None:
    jobs = MemoryJobs()
    drive = begun(jobs)
    assert names_of(jobs) == ["s-0000", "s-0001", "s-0002"]
    assert [record.job.slots_per_worker for record in jobs.records()] == [2, 3, 4]
    assert drive.todo == []


def test_nothing_is_handed_in_if_one_point_is_wrong() -> None:
    jobs = MemoryJobs()
    with pytest.raises(ManifestError, match=r"point 1 \(slots=many\)"):
        begun(jobs, grid={"slots": [2, "many"]})
    with pytest.raises(UsageError, match=r"\{\{slots\}\}"):
        begun(jobs, grid={"other": [2]})
    assert names_of(jobs) == []


@pytest.mark.parametrize("manifest", ["", "a: [", "- a", "a: 1\n---\nb: 2\n"])
def test_a_sweep_takes_one_document(manifest: str) -> None:
    with pytest.raises(ManifestError):
        begun(MemoryJobs(), manifest=manifest)


def test_the_namespace_is_the_one_asked_for_the_manifests_or_home() -> None:
    theirs = to_yaml([{**a_document("x"), "metadata": {"name": "x", "namespace": "theirs"}}])
    for given, expected in (({}, "default"), ({"namespace": "ours"}, "ours"), ({"manifest": theirs}, "theirs")):
        jobs = MemoryJobs()
        assert begun(jobs, **given).sweep.namespace == expected
        assert {record.job.namespace for record in jobs.records()} == {expected}


def test_the_next_is_handed_in_when_one_has_ended() -> None:
    jobs = MemoryJobs()
    drive = begun(jobs, at_once=1)
    assert names_of(jobs) == ["s-0000"]
    with running(drive, to_the_end=True):
        jobs.become("default/s-0000", FAILED)
        until(jobs, "s-0000", "s-0001")
        jobs.become("default/s-0001", SUCCEEDED)
        until(jobs, "s-0000", "s-0001", "s-0002")
        jobs.become("default/s-0002", SUCCEEDED)
    assert drive.over
    assert drive.states == {0: "Failed", 1: "Succeeded", 2: "Succeeded"}


def test_the_same_again_goes_on_and_repeats_nothing_that_is_there() -> None:
    jobs = MemoryJobs()
    begun(jobs, at_once=1)
    jobs.become("default/s-0000", FAILED)
    before = jobs.record("default/s-0000")
    drive = begun(jobs, at_once=5)
    assert names_of(jobs) == ["s-0000", "s-0001", "s-0002"]
    assert jobs.record("default/s-0000") == before
    assert begun(jobs).todo == []
    assert drive.active == [1, 2]


def test_another_sweep_of_that_name_is_refused() -> None:
    jobs = MemoryJobs()
    begun(jobs)
    for other in ({"grid": {"slots": [5]}}, {"retries": 1}, {"metric": "(x)"}):
        with pytest.raises(ConflictError, match="another sweep"):
            begun(jobs, **other)
    jobs = MemoryJobs()
    jobs.add("s-0000")
    with pytest.raises(ConflictError, match="another sweep"):
        begun(jobs)


def test_a_job_of_that_name_that_is_no_point_is_left_alone() -> None:
    jobs = MemoryJobs()
    jobs.add("s-0001")
    with pytest.raises(ConflictError, match="s-0001"):
        begun(jobs)


def test_resuming_runs_what_was_stopped_or_deleted_and_nothing_that_ended() -> None:
    jobs = MemoryJobs()
    begun(jobs)
    jobs.become("default/s-0000", SUCCEEDED)
    jobs.become("default/s-0001", STOPPED)
    jobs.vanish("default/s-0002")
    drive = runner(jobs).resume("default/s", HANDING)
    assert drive.todo == [1, 2]
    drive.hand_in()
    assert [record.status.finished for record in jobs.records()] == [True, False, False]


def test_what_is_still_being_stopped_is_waited_for() -> None:
    jobs = MemoryJobs()
    begun(jobs)
    for index in range(3):
        jobs.become(f"default/s-000{index}", SUCCEEDED if index else RUNNING)
    assert runner(jobs).stop("default/s") == 1
    drive = runner(jobs).resume("default/s", HANDING)
    drive.hand_in()
    assert drive.todo == [0]
    with running(drive):
        jobs._put(replace(jobs.record("default/s-0000"), status=STOPPED))
    assert (drive.todo, jobs.record("default/s-0000").status.finished) == ([], False)


@pytest.mark.parametrize("how", ["stop", "delete"])
def test_whoever_stops_or_deletes_the_sweep_stops_those_who_go_on_with_it(how: str) -> None:
    jobs = MemoryJobs()
    drive = begun(jobs, at_once=1)
    with running(drive):
        getattr(runner(jobs), how)("default/s")
    assert drive.interrupted
    assert names_of(jobs) == (["s-0000"] if how == "stop" else [])


def test_without_its_first_job_nobody_knows_what_a_sweep_was() -> None:
    jobs = MemoryJobs()
    with pytest.raises(NotFoundError):
        runner(jobs).resume("default/s", HANDING)
    begun(jobs)
    jobs.vanish("default/s-0000")
    with pytest.raises(ConflictError, match="first job"):
        runner(jobs).resume("default/s", HANDING)
    begun(jobs)
    assert sorted(names_of(jobs)) == ["s-0000", "s-0001", "s-0002"]


class Cluster(MemoryJobs):
    """Without a queue of its own: what does not fit must not be handed in."""

    room = 1

    async def silence(self, key: str) -> str | None:
        return None

    async def served(self, namespace: str) -> bool | None:
        return True

    async def fit(self, document: Any, *, owner: str | None = None) -> Fit:
        going = [record for record in self.records() if not record.status.finished]
        return replace(await super().fit(document), now=len(going) < self.room)


def test_where_there_is_no_queue_no_more_are_handed_in_than_fit() -> None:
    jobs = Cluster()
    drive = begun(jobs)
    assert names_of(jobs) == ["s-0000"]
    jobs.room = 2
    with running(drive):
        jobs.become("default/s-0000", RUNNING)
        until(jobs, "s-0000", "s-0001")
        jobs.become("default/s-0001", RUNNING)
        jobs.become("default/s-0000", SUCCEEDED)
    assert names_of(jobs) == ["s-0000", "s-0001", "s-0002"]


def test_those_who_go_on_at_the_same_time_do_not_get_in_each_others_way() -> None:
    jobs = MemoryJobs()
    one, other = (runner(jobs).begin(a_sweep(), HANDING) for _ in range(2))
    one.hand_in(2)
    other.hand_in()
    one.hand_in()
    assert names_of(jobs) == ["s-0000", "s-0001", "s-0002"]
    assert (one.todo, other.todo) == ([], [])


# -- numbers in logs ----------------------------------------------------------------------------------
def test_the_last_number_is_found_from_the_end_and_kept_when_the_job_has_ended() -> None:
    jobs, pattern, clock = MemoryJobs(), pattern_of(r"loss: (\S+)"), [0.0]
    jobs.add("pi", RUNNING)
    kept = waiting(MetricsKept(lambda: clock[0]))

    def seen(*, ended: bool) -> float | None:
        return kept.of(jobs, "default/pi", "uid-pi", pattern, ended=ended)

    assert seen(ended=False) is None
    jobs.say("default/pi", "loss: 3", *["chatter"] * 1200)
    assert seen(ended=False) is None  # looked at a moment ago
    clock[0] = 60.0
    assert seen(ended=False) == 3.0
    jobs.say("default/pi", "loss: 2", "loss: nan")
    assert seen(ended=True) == 2.0
    jobs.vanish("default/pi")
    assert seen(ended=True) == 2.0


def test_a_log_is_not_read_without_end() -> None:
    jobs = MemoryJobs()
    jobs.add("pi", Status())
    jobs.say("default/pi", "loss: 3", *["chatter"] * 5000)
    for key in ("default/pi", "default/none"):
        assert shared().run(last_number(jobs, key, pattern_of(r"loss: (\S+)"))) is None
