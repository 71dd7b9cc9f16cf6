"""The runs of a job in the store: what is kept of an earlier one, how many there are, and when they go."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from oarsman.errors import ConflictError, NotFoundError
from oarsman.store.jobs import JobStore, StoredJob

NOW = datetime(2026, 11, 15, tzinfo=UTC)
KEY = "default/pi"


def wanted(number: int, **changes: Any) -> Any:
    fields = {"uid": f"uid-{number}", "namespace": "default", "name": "pi", "engine": "local", "owner": "me"}
    more = {"folder": "/", "document": {"spec": {"number": number}}, "environment": {"SECRET": "x"}, "now": NOW}
    return {**fields, **more, **changes}


def ends(store: JobStore, number: int) -> None:
    event = ("Warning", "MPIJobFailed", f"run {number} failed")
    store.write_status(f"uid-{number}", {"ended": number}, finished=True, events=[event], now=NOW)


def ran(store: JobStore, times: int, keeping: int = 10) -> None:
    """So many runs of one job, each ended."""
    for number in range(1, times + 1):
        store.replace(f"uid-{number - 1}", keeping=keeping, **wanted(number))
        ends(store, number)


def numbers(store: JobStore) -> list[int]:
    return [job.run for job in store.runs(KEY)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    with contextlib.closing(JobStore(tmp_path / "oarsman.db")) as opened:
        yield opened


def test_an_ended_job_that_is_replaced_is_kept_as_a_run_with_its_status_and_its_events(store: JobStore) -> None:
    ran(store, 1)
    ended = store.get(KEY)
    made, to_clear = store.replace("uid-1", keeping=10, **wanted(2))
    assert (made.uid, made.run, made.environment, list(to_clear)) == ("uid-2", 2, {"SECRET": "x"}, ["uid-1"])
    assert store.runs(KEY) == [made, ended]
    assert (store.get(f"{KEY}#1"), store.get(f"{KEY}#2"), store.get(KEY)) == (ended, made, made)
    assert [event.message for event in store.events("uid-1")] == ["run 1 failed"]
    assert (store.events("uid-2"), ended.environment) == ([], {})


def test_an_earlier_run_is_none_of_the_jobs(store: JobStore) -> None:
    """Neither a list nor the supervisor has anything to do with it, and nothing changes it."""
    ran(store, 2)
    assert [job.uid for job in store.changes(None).jobs] == ["uid-2"]
    assert (store.by_uid("uid-1"), store.uids(), store.keeps("uid-1"), store.keeps("uid-2")) == (
        None,
        {"uid-2"},
        True,
        False,
    )
    assert not store.write_status("uid-1", {}, finished=False, now=NOW)
    for change in (store.request_stop, store.request_delete):
        with pytest.raises(NotFoundError):
            change(f"{KEY}#1")


def test_lists_say_which_run_each_job_is(store: JobStore) -> None:
    ran(store, 3)
    store.add(**wanted(9, name="tau"))
    assert {job.name: job.run for job in store.changes(None).jobs} == {"pi": 3, "tau": 1}


def test_of_the_runs_of_a_job_the_newest_are_kept(store: JobStore) -> None:
    ran(store, 4, keeping=2)
    assert numbers(store) == [4, 3, 2]
    _, to_clear = store.replace("uid-4", keeping=1, **wanted(5))
    assert (numbers(store), sorted(to_clear)) == ([5, 4], ["uid-2", "uid-3", "uid-4"])
    with pytest.raises(NotFoundError, match="no run 1 of"):
        store.get(f"{KEY}#1")


def test_with_none_to_keep_nothing_is_kept(store: JobStore) -> None:
    ran(store, 2, keeping=0)
    assert (numbers(store), store.keeps("uid-1")) == ([1], False)


@pytest.mark.parametrize("state", ["running", "deleting"])
def test_only_a_job_that_has_ended_is_replaced(store: JobStore, state: str) -> None:
    store.add(**wanted(1))
    if state == "deleting":
        ends(store, 1)
        store.request_delete(KEY)
    for replaced in ("uid-1", "uid of another job that had this name"):
        with pytest.raises(ConflictError, match="exists already"):
            store.replace(replaced, keeping=10, **wanted(2))
    assert store.get(KEY).uid == "uid-1"


def test_a_job_that_has_the_name_by_now_and_is_another_is_not_replaced(store: JobStore) -> None:
    ran(store, 1)
    store.remove("uid-1")
    store.add(**wanted(2, owner="somebody else"))
    ends(store, 2)
    with pytest.raises(ConflictError, match="exists already"):
        store.replace("uid-1", keeping=10, **wanted(3))
    assert (numbers(store), store.get(KEY).uid) == ([1], "uid-2")


def test_who_follows_hears_of_the_next_run_and_not_that_the_job_is_gone(store: JobStore) -> None:
    ran(store, 1)
    before = store.changes(None).revision
    store.replace("uid-1", keeping=10, **wanted(2))
    news = store.changes(before)
    assert ([job.uid for job in news.jobs], list(news.gone)) == (["uid-2"], [])


def test_the_runs_of_a_job_go_with_it_and_are_named(store: JobStore) -> None:
    ran(store, 3)
    assert sorted(store.remove("uid-3")) == ["uid-1", "uid-2"]
    store.add(**wanted(4))
    assert numbers(store) == [1]


def test_to_remove_an_earlier_run_by_mistake_removes_nothing(store: JobStore) -> None:
    """Whoever was about to remove the job has its uid, and it was run again meanwhile."""
    ran(store, 2)
    assert list(store.remove("uid-1")) == []
    assert numbers(store) == [2, 1]


def test_runs_that_an_older_oarsman_left_behind_are_nobodys(store: JobStore, tmp_path: Path) -> None:
    """It deletes the job and knows nothing of runs. The next job of that name may be somebody else's."""
    ran(store, 2)
    with contextlib.closing(sqlite3.connect(tmp_path / "oarsman.db", isolation_level=None)) as database:
        database.execute("DELETE FROM jobs")
    store.replace("uid-2", keeping=10, **wanted(3, owner="somebody else"))
    assert [(job.run, job.owner) for job in store.runs(KEY)] == [(1, "somebody else")]


def test_what_fails_half_way_leaves_the_job_as_it_was(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(store, 1)

    def killed(*_: object) -> StoredJob:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(JobStore, "_insert", killed)
        with pytest.raises(KeyboardInterrupt):
            store.replace("uid-1", keeping=10, **wanted(2))
    assert (numbers(store), store.get(KEY).uid) == ([1], "uid-1")
    assert [event.message for event in store.events("uid-1")] == ["run 1 failed"]


def test_a_store_of_an_earlier_version_keeps_its_jobs(tmp_path: Path) -> None:
    path = tmp_path / "oarsman.db"
    with contextlib.closing(JobStore(path)) as store:
        ran(store, 1)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DROP TABLE runs")
        database.execute("PRAGMA user_version = 4")
    with contextlib.closing(JobStore(path)) as store:
        assert (numbers(store), store.get(KEY).status) == ([1], {"ended": 1})
        assert store.replace("uid-1", keeping=10, **wanted(2))[0].run == 2
