"""The store: one winner among writers, nothing half-written, nothing lost to kill -9."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from oarsman.errors import ConflictError, NotFoundError, StoreError
from oarsman.store import jobs
from oarsman.store.jobs import JobStore, StoredJob
from oarsman.text.sentence import Text, dump

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def add(store: JobStore, name: str = "pi", **changes: Any) -> StoredJob:
    fields: dict[str, Any] = {
        "uid": f"uid-{name}",
        "namespace": "default",
        "name": name,
        "engine": "local",
        "owner": "me",
        "folder": "/",
        "document": {"spec": {}},
        "environment": {"SECRET": "x"},
        "now": NOW,
        **changes,
    }
    return store.add(**fields)


def everything(store: JobStore, namespace: str | None = None) -> list[StoredJob]:
    return list(store.changes(None, namespace).jobs)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = JobStore(tmp_path / "oarsman.db")
    yield opened
    opened.close()


def test_what_was_written_is_read_back(store: JobStore) -> None:
    added = add(store)
    assert store.get("default/pi") == added == store.by_uid("uid-pi")
    assert everything(store) == [replace(added, environment={})]
    assert everything(store, "elsewhere") == []
    assert store.unfinished() == [added]


def test_the_variables_of_a_job_are_kept_until_its_end_and_no_longer(store: JobStore, tmp_path: Path) -> None:
    """Nobody needs them then, and whoever has a copy of the file has no passwords of shells in it."""
    secret = "the password of a shell"
    add(store, environment={"SECRET": secret, "LONG": "x" * 20_000})
    store.write_status("uid-pi", {}, finished=False, now=NOW)
    assert store.get("default/pi").environment["SECRET"] == secret
    store.write_status("uid-pi", {}, finished=True, now=NOW)
    assert store.get("default/pi").environment == {}
    for text, is_there in (("uid-pi", True), (secret, False)):  # by a program: to read it here would undo its locks
        assert (subprocess.run(["grep", "-rqF", text, str(tmp_path)]).returncode == 0) is is_there


def test_variables_of_jobs_that_ended_before_are_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "oarsman.db"
    store = JobStore(path)
    for name in ("old", "new"):
        add(store, name, environment={"SECRET": f"of {name}"})
    store.close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE jobs SET finished = 1 WHERE name = 'old'")
        database.execute("PRAGMA user_version = 3")
    store = JobStore(path)
    found = {job.name: job.environment for job in map(store.get, ("default/old", "default/new"))}
    assert found == {"old": {}, "new": {"SECRET": "of new"}}
    store.close()
    assert b"of old" not in path.read_bytes()


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


def test_events_keep_what_their_sentences_are_made_of(store: JobStore) -> None:
    add(store)
    said = Text("{host} was lost: {why}", host="a", why=Text("it vanished"))
    for message in (said, said, "plain {words}"):
        store.write_status("uid-pi", {}, finished=False, events=[("Warning", "Lost", message)], now=NOW)
    lost, plain = store.events("uid-pi")
    assert (lost.message, lost.count, dump(lost.message)) == ("a was lost: it vanished", 2, dump(said))
    assert plain.message == "plain {words}"


def test_every_change_has_a_higher_revision(store: JobStore) -> None:
    revisions = [
        add(store).revision,
        store.request_stop("default/pi").revision,
        store.request_delete("default/pi").revision,
    ]
    assert revisions == sorted(set(revisions))


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.request_delete("default/pi"),
        lambda store: store.request_stop("default/pi"),
        lambda store: store.change_document("default/pi", {}, expected_generation=1),
        lambda store: add(store, "new", uid="uid-pi"),
    ],
    ids=["delete", "stop", "edit", "add"],
)
def test_whoever_changes_a_job_gets_it_although_it_is_gone_a_moment_later(
    store: JobStore, change: Callable[[JobStore], StoredJob], monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    """A supervisor removes a job as soon as that is wanted."""
    if "add" not in request.node.callspec.id:
        add(store)
    write = JobStore._write

    def write_and_remove(this: JobStore, work: Callable[[], Any]) -> Any:
        found = write(this, work)
        write(this, lambda: this._db.execute("DELETE FROM jobs"))
        return found

    monkeypatch.setattr(JobStore, "_write", write_and_remove)
    assert change(store).uid == "uid-pi"
    assert everything(store) == []


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
    with pytest.raises(StoreError, match=r"oarsman\.db is damaged, or no database"):
        JobStore(path)


def test_a_damaged_page_is_told_with_the_file_and_how_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "oarsman.db"
    store = JobStore(path)
    for number in range(50):
        add(store, f"job-{number}")
    store.close()
    size = path.stat().st_size
    with path.open("r+b") as file:  # all but the first page, which says what there is
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    store = JobStore(path)
    for ask in (lambda: store.changes(None).jobs, store.unfinished, store.uids, lambda: add(store, "one more")):
        with pytest.raises(StoreError, match=f"{path} is damaged") as caught:
            list(ask() or ())
        assert ".recover" in str(caught.value.hint)
    store.close()


def test_a_folder_in_which_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be used") as caught:
        JobStore(tmp_path / "nowhere" / "oarsman.db")
    assert "OARSMAN_STATE" in str(caught.value.hint)


def test_whoever_holds_the_file_too_long_is_to_be_found(store: JobStore, tmp_path: Path) -> None:
    store._db.execute("PRAGMA busy_timeout = 1")
    with contextlib.closing(sqlite3.connect(tmp_path / "oarsman.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="cannot be used: database is locked") as caught:
            add(store, "one")
    assert "fuser" in str(caught.value.hint)


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
    found = {job.name: job for job in everything(store)}
    for number in range(acknowledged):
        assert found[f"job-{number}"].status == {"n": number}
        assert [event.message for event in store.events(f"uid-job-{number}")] == [str(number)]
    store.close()


def test_changes_are_those_since_a_revision(store: JobStore) -> None:
    add(store, "a")
    add(store, "b")
    everything = store.changes(None)
    assert (everything.whole, [job.name for job in everything.jobs]) == (True, ["a", "b"])
    assert next(iter(everything.jobs)).environment == {}
    assert store.changes(everything.revision).jobs == ()
    store.request_stop("default/b")
    store.remove("uid-a")
    later = store.changes(everything.revision)
    assert (later.whole, [job.name for job in later.jobs], later.gone) == (False, ["b"], ["default/a"])
    assert store.changes(later.revision).gone == ()


def test_everything_is_read_a_few_at_a_time_and_nothing_is_missed(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oarsman.store.jobs._READ_AT_ONCE", 2)
    for name in "abcde":
        add(store, name)
    everything = store.changes(None)
    seen = []
    for job in everything.jobs:
        seen.append(job.name)
        if seen == ["a"]:  # while it is read, one that was read changes, one that was not goes, and one comes
            store.request_stop("default/a")
            store.remove("uid-d")
            add(store, "f")
    assert seen == ["a", "b", "c", "e", "a", "f"]
    later = store.changes(everything.revision)
    assert ([job.name for job in later.jobs], later.gone) == (["a", "f"], ["default/d"])


def test_a_job_removed_and_made_anew_is_not_gone(store: JobStore) -> None:
    before = add(store).revision
    store.remove("uid-pi")
    add(store, uid="uid-again")
    changes = store.changes(before)
    assert ([job.uid for job in changes.jobs], changes.gone) == (["uid-again"], [])


def test_changes_elsewhere_are_left_out(store: JobStore) -> None:
    add(store)
    add(store, "other", namespace="elsewhere")
    before = store.changes(None).revision
    store.remove("uid-other")
    changes = store.changes(before, "default")
    assert (changes.jobs, changes.gone) == ([], [])
    assert changes.revision > before
    assert store.changes(before, "elsewhere").gone == ["elsewhere/other"]


def test_who_has_fallen_far_behind_reads_everything_again(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oarsman.store.jobs._REMOVALS_KEPT", 3)
    before = add(store).revision
    for number in range(3):
        add(store, f"job-{number}")
    assert not store.changes(before).whole
    add(store, "one-more")
    changes = store.changes(before)
    assert (changes.whole, len(list(changes.jobs))) == (True, 5)


def test_a_store_of_the_first_version_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "oarsman.db"
    with sqlite3.connect(path) as database:
        database.executescript((Path(jobs.__file__).parent / "schema.sql").read_text())
        database.execute("PRAGMA user_version = 1")
        database.execute(
            "INSERT INTO jobs"
            " (uid, namespace, name, engine, owner, folder, document, environment, created_at, revision)"
            " VALUES ('u', 'default', 'old', 'embedded', 'me', '/', '{}', '{}', '2026-01-01T00:00:00+00:00', 1)"
        )
        database.execute("UPDATE counters SET value = 1")
    older = sqlite3.connect(path, isolation_level=None)  # a supervisor of that version, still running
    store = JobStore(path)
    before = store.changes(None)
    assert [(job.name, job.engine) for job in before.jobs] == [("old", "local")]
    older.execute("DELETE FROM jobs WHERE uid = 'u'")
    assert store.changes(before.revision).gone == ["default/old"]
    older.close()
    store.close()
    database.close()


def test_many_threads_write_and_read_at_the_same_time(store: JobStore) -> None:
    threads, each = 8, 25

    def work(number: int) -> int:
        for step in range(each):
            name = f"job-{number}-{step}"
            add(store, name)
            assert store.write_status(f"uid-{name}", {"n": step}, finished=True, now=NOW)
            assert store.get(f"default/{name}").status == {"n": step}
            assert len(everything(store)) >= step + 1
        return len({job.uid for job in store.changes(None).jobs})

    with ThreadPoolExecutor(threads) as pool:
        assert max(pool.map(work, range(threads))) == threads * each
    revisions = [job.revision for job in everything(store)]
    assert len(set(revisions)) == threads * each


def test_a_thread_that_ends_leaves_no_connection(store: JobStore) -> None:
    for _ in range(5):
        thread = threading.Thread(target=store.unfinished)
        thread.start()
        thread.join()
    assert len(store._connections) == 1


IN_THE_MIDDLE = """
import os, sys, threading, time
from pathlib import Path
from oarsman.store.jobs import JobStore

store, begun = JobStore(Path(sys.argv[1])), threading.Event()
endless = "WITH RECURSIVE n(i) AS (SELECT begun() UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n"


def read():
    store._db.create_function("begun", 0, begun.set)
    store._db.execute(endless)


threading.Thread(target=read, daemon=True).start()
begun.wait()
child = os.fork()
if child == 0:
    os._exit(7)
while os.waitpid(child, os.WNOHANG) == (0, 0):
    time.sleep(0.01)
os._exit(0)
"""


def test_a_child_of_a_process_whose_threads_read_does_not_wait_for_them(tmp_path: Path) -> None:
    """The console's server starts ssh while others read: the child, and with it the server, had hung for good."""
    words = [sys.executable, "-c", IN_THE_MIDDLE, tmp_path / "oarsman.db"]
    with subprocess.Popen(words, start_new_session=True) as parent:
        try:
            assert parent.wait(60) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):  # and the child, if it hangs
                os.killpg(parent.pid, signal.SIGKILL)
