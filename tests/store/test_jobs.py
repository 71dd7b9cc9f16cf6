"""The store: one winner among writers, nothing half-written, nothing lost to kill -9."""

from __future__ import annotations

import os
import signal
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from oarsman.errors import ConflictError, NotFoundError, StoreError
from oarsman.store.jobs import JobStore, StoredJob

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def add(store: JobStore, name: str = "pi", **changes: Any) -> StoredJob:
    fields: dict[str, Any] = {
        "uid": f"uid-{name}", "namespace": "default", "name": name, "engine": "embedded", "owner": "me", "folder": "/",
        "document": {"spec": {}}, "environment": {"SECRET": "x"}, "now": NOW, **changes,
    }  # fmt: skip
    return store.add(**fields)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = JobStore(tmp_path / "oarsman.db")
    yield opened
    opened.close()


def test_what_was_written_is_read_back(store: JobStore) -> None:
    added = add(store)
    assert store.get("default/pi") == added == store.by_uid("uid-pi")
    assert store.all() == [added]
    assert store.all("elsewhere") == []
    assert store.unfinished() == [added]


def test_a_name_is_taken_once(store: JobStore) -> None:
    add(store)
    with pytest.raises(ConflictError, match="exists already"):
        add(store, uid="another")
    add(store, uid="another", namespace="elsewhere")


def test_of_two_edits_of_one_generation_one_wins(store: JobStore) -> None:
    job = add(store)
    store.change_document(job.key, {"spec": 1}, expected_generation=job.generation)
    with pytest.raises(ConflictError, match="somebody else"):
        store.change_document(job.key, {"spec": 2}, expected_generation=job.generation)
    assert store.get(job.key).document == {"spec": 1}


def test_status_and_events_are_written_together_and_repeats_are_counted(store: JobStore) -> None:
    add(store)
    event = ("Warning", "MPIJobFailed", "rank 1 failed")
    assert store.write_status("uid-pi", {"phase": 1}, finished=False, events=[event], now=NOW)
    assert store.write_status("uid-pi", {"phase": 2}, finished=True, events=[event], now=NOW)
    assert [(e.reason, e.count) for e in store.events("uid-pi")] == [("MPIJobFailed", 2)]
    assert store.get("default/pi").status == {"phase": 2}
    assert store.unfinished() == []
    assert not store.write_status("nobody", {}, finished=False, now=NOW)


def test_every_change_has_a_higher_revision(store: JobStore) -> None:
    revisions = [
        add(store).revision,
        store.request_stop("default/pi").revision,
        store.request_delete("default/pi").revision,
    ]
    assert revisions == sorted(set(revisions))


def test_a_removed_job_takes_its_events_along(store: JobStore) -> None:
    add(store)
    store.write_status("uid-pi", {}, finished=False, events=[("Normal", "a", "b")], now=NOW)
    store.remove("uid-pi")
    assert store.events("uid-pi") == []
    with pytest.raises(NotFoundError):
        store.get("default/pi")


def test_nobody_else_can_read_it(store: JobStore, tmp_path: Path) -> None:
    assert stat.S_IMODE((tmp_path / "oarsman.db").stat().st_mode) == 0o600


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "oarsman.db"
    JobStore(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(StoreError, match="newer"):
        JobStore(path)


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "oarsman.db"
    path.write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StoreError, match="cannot open"):
        JobStore(path)


def test_a_writer_killed_at_any_moment_leaves_whole_records(tmp_path: Path) -> None:
    path = tmp_path / "oarsman.db"
    JobStore(path).close()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        store = JobStore(path)
        number = 0
        while True:
            add(store, f"job-{number}")
            store.write_status(
                f"uid-job-{number}", {"n": number}, finished=True, events=[("Normal", "r", str(number))], now=NOW
            )
            os.write(write, b"x")
            number += 1
    os.close(write)
    acknowledged = 0
    while acknowledged < 50:
        acknowledged += len(os.read(read, 10))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while rest := os.read(read, 1000):
        acknowledged += len(rest)
    os.close(read)
    store = JobStore(path)
    jobs = {job.name: job for job in store.all()}
    for number in range(acknowledged):
        assert jobs[f"job-{number}"].status == {"n": number}
        assert [event.message for event in store.events(f"uid-job-{number}")] == [str(number)]
    store.close()
