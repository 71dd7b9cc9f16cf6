"""The jobs of one user, in the SQLite store. Their key is their uid."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from oarsman.control.reconciler import Record, utc_now
from oarsman.engines.contract import Assignment
from oarsman.job.job import Job
from oarsman.plan.actions import Plan
from oarsman.status.codec import from_wire, to_wire
from oarsman.store.jobs import JobStore, StoredJob


class StoreRecords:
    def __init__(
        self, store: JobStore, gone: Callable[[str], None] = lambda _: None, *, now: Callable[[], datetime] = utc_now
    ) -> None:
        """gone: told of each earlier run that goes with its job."""
        self._store = store
        self._gone = gone
        self._now = now

    def read(self, key: str) -> Record[StoredJob] | None:
        stored = self._store.by_uid(key)
        if stored is None:
            return None
        return Record(
            key=key,
            uid=key,
            generation=stored.generation,
            version=stored.generation,
            status=from_wire(stored.status),
            stored=stored,
            identity=stored.identity,
            engine=stored.engine,
            deleting=stored.deleting,
        )

    def document(self, record: Record[StoredJob]) -> Mapping[str, Any]:
        return record.stored.document

    def last_valid(self, record: Record[StoredJob]) -> None:
        """What the store holds was valid when it was stored."""

    def assignment(self, record: Record[StoredJob], job: Job) -> Assignment:
        stored = record.stored
        return Assignment(
            job=job,
            status=record.status,
            environment=stored.environment,
            folder=Path(stored.folder),
            stop_requested=stored.stop_requested or stored.deleting,
        )

    async def write(self, record: Record[StoredJob], job: Job | None, plan: Plan, *, settled: bool) -> None:
        """Events go with the status or not at all."""
        wire, stored = to_wire(plan.status), record.stored
        if wire == stored.status and not plan.events and settled == stored.finished:
            return
        events = [(event.severity.value, event.reason, event.message) for event in plan.events]
        write = self._store.write_status  # in a thread: another process that writes is waited for
        await asyncio.to_thread(write, stored.uid, wire, finished=settled, events=events, now=self._now())

    async def leave(self, record: Record[StoredJob]) -> None:
        """It takes no room here and runs nothing; only its record is ours."""
        await self.write(record, None, Plan(status=record.status), settled=True)

    async def remove(self, record: Record[StoredJob]) -> None:
        for uid in await asyncio.to_thread(self._store.remove, record.uid):
            self._gone(uid)

    def keeps(self, uid: str) -> bool:
        return self._store.keeps(uid)

    def uid_of(self, key: str) -> str:
        """Known or not: an earlier supervisor may have left something of it."""
        return key

    def forgotten(self, key: str) -> None:
        """The record was all there is."""
