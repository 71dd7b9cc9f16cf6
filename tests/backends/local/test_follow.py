"""Following all jobs of a machine: told by the store, whether a supervisor runs or not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from oarsman.backends import base as contract
from oarsman.backends.local.backend import LocalBackend
from oarsman.backends.local.follow import SupervisorLink
from oarsman.errors import SupervisorError
from oarsman.job.state import Status
from oarsman.store.paths import Paths

from .local_backends import NOW, PATIENCE, document, finished, listening, local_backend, nobody_is_told

ANOTHER_PROCESS = """
import json, sys
from datetime import UTC, datetime
from pathlib import Path
from oarsman.store import jobs
jobs.JobStore(Path(sys.argv[1])).add(
    uid="other", namespace="default", name="other", engine="local", owner="me", folder="/",
    document=json.loads(sys.argv[2]), environment={}, now=datetime.now(UTC),
)
"""


class Starts:
    """Counts how often a supervisor would have been started; none is."""

    def __init__(self) -> None:
        self.count = 0
        self.asked = threading.Event()

    async def connect(self, _link: SupervisorLink) -> socket.socket:
        self.count += 1
        self.asked.set()
        raise SupervisorError("there is none in this test")


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    starts = Starts()
    nobody_is_told(monkeypatch)
    monkeypatch.setattr("oarsman.backends.local.follow.SupervisorLink.connect", lambda self: starts.connect(self))
    return starts


@pytest.fixture
def jobs(tmp_path: Path, starts: Starts) -> Iterator[LocalBackend]:
    paths = Paths(tmp_path / "state")
    paths.make()
    paths.make_run()  # for the tests that are the supervisor
    yield local_backend(paths)
    paths.socket.unlink(missing_ok=True)
    paths.run.rmdir()


def names(batch: contract.Batch) -> list[str]:
    return [record.job.name for record in batch.records]


def test_first_comes_everything_and_then_what_changes(jobs: LocalBackend, starts: Starts) -> None:
    finished(jobs, "a")
    finished(jobs, "b")
    with listening(jobs.follow()) as heard:
        first = heard.next()
        assert (first.whole, names(first)) == (True, ["a", "b"])
        uid = jobs._store.get("default/b").uid
        jobs._store.request_delete("default/b")
        changed = heard.next()
        assert (changed.whole, names(changed), changed.gone) == (False, ["b"], ())
        assert [record.deleting for record in changed.records] == [True]
        jobs._store.remove(uid)
        gone = heard.next()
        assert (gone.whole, gone.records, gone.gone) == (False, (), ("default/b",))


def test_no_supervisor_is_started_for_jobs_that_are_over(jobs: LocalBackend, starts: Starts) -> None:
    finished(jobs)
    with listening(jobs.follow()) as heard:
        heard.next()
        jobs._store.request_stop("default/pi")
        assert names(heard.next()) == ["pi"]
    assert starts.count == 0


def test_what_another_process_submits_is_seen(jobs: LocalBackend) -> None:
    with listening(jobs.follow()) as heard:
        assert heard.next().whole
        words = [sys.executable, "-c", ANOTHER_PROCESS, str(jobs._paths.database), json.dumps(document("other"))]
        subprocess.run(words, check=True, timeout=PATIENCE)
        assert names(heard.next()) == ["other"]


def test_only_the_wanted_namespace_is_followed(jobs: LocalBackend) -> None:
    finished(jobs, "here")
    finished(jobs, "there", namespace="elsewhere")
    with listening(jobs.follow("elsewhere")) as heard:
        assert names(heard.next()) == ["there"]
        jobs._store.remove(jobs._store.get("default/here").uid)
        jobs._store.remove(jobs._store.get("elsewhere/there").uid)
        assert heard.next().gone == ("elsewhere/there",)


def test_a_job_that_can_no_longer_be_read_is_gone(jobs: LocalBackend) -> None:
    finished(jobs)
    with listening(jobs.follow()) as heard:
        heard.next()
        jobs._store.change_document("default/pi", {"kind": "MPIJob"}, expected_generation=1)
        assert heard.next().gone == ("default/pi",)


def test_a_change_whose_writer_was_killed_before_it_said_so_is_seen(
    jobs: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(jobs)
    with listening(jobs.follow()) as heard:
        heard.next()
        monkeypatch.setattr("oarsman.store.jobs.os.utime", lambda _path: None)
        jobs._store.request_stop("default/pi")
        assert heard.next().records[0].stop_requested


def test_one_change_among_many_jobs_reads_one_document(jobs: LocalBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        finished(jobs, f"job-{number}")
    with listening(jobs.follow()) as heard:
        assert len(names(heard.next())) == 30
        read: list[str] = []
        real = jobs._record
        monkeypatch.setattr(jobs, "_record", lambda stored: read.append(stored.name) or real(stored))
        with listening(jobs.follow()) as second:
            assert len(names(second.next())) == 30
            read.clear()
            jobs._store.request_stop("default/job-7")
            assert names(second.next()) == ["job-7"]
            assert read == ["job-7"]
        assert names(heard.next()) == ["job-7"]


def test_unfinished_jobs_without_a_supervisor_get_one(jobs: LocalBackend, starts: Starts) -> None:
    jobs.submit(document(), environment={}, folder=Path("/"))
    with listening(jobs.follow()) as heard:
        heard.next()
        assert starts.asked.wait(PATIENCE)
        jobs._store.request_stop("default/pi")
        assert heard.next().records[0].stop_requested  # that none could be started is survived


def test_a_supervisor_that_dies_is_replaced(jobs: LocalBackend, starts: Starts) -> None:
    jobs.submit(document(), environment={}, folder=Path("/"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(jobs._paths.socket))
        server.listen()
        server.settimeout(PATIENCE)
        with listening(jobs.follow()) as heard:
            heard.next()
            connection, _ = server.accept()
            assert starts.count == 0
            server.close()
            connection.close()
            assert starts.asked.wait(PATIENCE)
            jobs._store.write_status(jobs._store.get("default/pi").uid, {}, finished=True, now=NOW)
            assert heard.next().records[0].status == Status()


def descriptors() -> list[str]:
    """What this process has open, but for the files of the store: each thread that reads it keeps its own."""
    found = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    return [path for path in found if ".db" not in path]


def test_however_many_look_on_the_system_is_asked_once_to_tell(jobs: LocalBackend) -> None:
    finished(jobs)
    before = len(descriptors())
    with ExitStack() as stack:
        heard = [stack.enter_context(listening(jobs.follow())) for _ in range(5)]
        for one in heard:
            one.next()
        assert [path for path in descriptors() if "inotify" in path][1:] == []
        jobs._store.request_stop("default/pi")
        assert [names(one.next()) for one in heard] == [["pi"]] * 5
    assert len(descriptors()) == before


def test_it_ends_when_another_thread_closes_it_and_leaves_nothing_open(jobs: LocalBackend) -> None:
    open_files = []
    for _ in range(4):
        items = jobs.follow()
        with listening(items) as heard:
            heard.next()
            items.close()
            assert heard.ends()
        del items, heard
        open_files.append(len(descriptors()))
    assert open_files[1:] == open_files[:1] * 3
