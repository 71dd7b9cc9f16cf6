"""What the supervisor does in the background goes on, whatever happens to it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from oarsman.control import supervisor as module
from oarsman.control.reconciler import utc_now
from oarsman.control.store_records import StoreRecords
from oarsman.control.supervisor import Supervisor
from oarsman.plan.actions import Plan
from oarsman.store.jobs import JobStore
from oarsman.store.paths import Paths

PATIENCE = 100.0


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths(tmp_path / "state")
    paths.make()
    return paths


def locked_once(then: Sequence[Any]) -> Callable[[], Sequence[Any]]:
    answers = iter([sqlite3.OperationalError("database is locked")])

    def unfinished() -> Sequence[Any]:
        for error in answers:
            raise error
        return then

    return unfinished


def test_jobs_are_looked_at_again_after_the_store_could_not_be_read(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RESYNC_SECONDS", 0.01)

    async def story() -> str:
        supervisor = Supervisor(paths)
        monkeypatch.setattr(supervisor._store, "unfinished", locked_once([SimpleNamespace(uid="missed")]))
        looking = asyncio.create_task(supervisor._look_at_everything_again())
        taking = asyncio.create_task(supervisor._queue.take())
        await asyncio.wait({looking, taking}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        looking.cancel()
        supervisor._store.close()
        return taking.result()

    assert asyncio.run(story()) == "missed"


def test_a_supervisor_leaves_although_the_store_could_not_be_read_for_once(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OARSMAN_IDLE_SECONDS", "0.01")

    async def story() -> None:
        supervisor = Supervisor(paths)
        monkeypatch.setattr(supervisor._store, "unfinished", locked_once([]))
        await asyncio.wait_for(supervisor._leave_when_idle(), PATIENCE)
        assert supervisor._stop.is_set()
        supervisor._store.close()

    asyncio.run(story())


def test_the_loop_turns_while_another_process_writes(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "oarsman.db")
    job = {"namespace": "default", "name": "pi", "engine": "local", "owner": "me", "folder": "/", "document": {}}
    store.add(uid="1", environment={}, now=utc_now(), **job)  # type: ignore[arg-type]
    records = StoreRecords(store)

    async def write() -> None:
        record = records.read("1")
        assert record is not None
        writing = asyncio.create_task(records.write(record, None, Plan(status=record.status), settled=True))
        await asyncio.sleep(0.1)
        other.execute("ROLLBACK")
        await writing

    with closing(sqlite3.connect(tmp_path / "oarsman.db", isolation_level=None)) as other, closing(store):
        other.execute("BEGIN IMMEDIATE")
        asyncio.run(write())
