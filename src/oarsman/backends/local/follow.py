"""Changes among the jobs of this machine, as they happen.

What is written to the store is heard whether a supervisor runs or not. A connection to the supervisor is held only to
learn of its end: if jobs are unfinished then, another one is started. It does not keep an idle supervisor alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from oarsman.backends.base import Batch, JobRecord
from oarsman.backends.local.supervisor_link import SupervisorLink
from oarsman.errors import ManifestError, OarsmanError, StoreError
from oarsman.store.change_watch import ChangeWatch, readable
from oarsman.store.jobs import JobStore, StoreChanges, StoredJob
from oarsman.store.paths import Paths

log = logging.getLogger("oarsman")
_GRACE = 5.0  # whoever brought new work starts the supervisor; only if that one died do we
_TRY_AGAIN = 30.0


class LocalChanges:
    """`unfinished` says whether anything is left that needs a supervisor. A `folder` is watched beside the store."""

    def __init__(self, paths: Paths, unfinished: Callable[[], bool], *, folder: Path | None = None) -> None:
        self._link = SupervisorLink(paths)
        self._unfinished = unfinished
        self._change_watch = ChangeWatch(paths.database, folder)
        self._supervisor: socket.socket | None = None
        self._start_at: float | None = time.monotonic()  # None: there was no need for one when we last looked

    def close(self) -> None:
        self._change_watch.close()
        if self._supervisor is not None:
            self._supervisor.close()

    async def wait(self) -> None:
        """Return when something may have changed."""
        while True:
            await self._see_to_a_supervisor()
            change_watch, supervisor = self._change_watch.fileno(), self._supervisor
            watched = [change_watch] if change_watch is not None else []
            watched += [supervisor.fileno()] if supervisor is not None else []
            found = await readable(*watched, within=self._patience())
            if supervisor is not None and supervisor.fileno() in found:
                self._it_left(supervisor)
                return
            if not found:
                self._change_watch.silent()
                return
            if self._change_watch.heard():
                return

    def _patience(self) -> float | None:
        waits = [self._change_watch.patience()]
        if self._start_at is not None and self._supervisor is None:
            waits.append(self._start_at - time.monotonic())
        return min((wait for wait in waits if wait is not None), default=None)

    async def _see_to_a_supervisor(self) -> None:
        if self._supervisor is not None:
            return
        if not await asyncio.to_thread(self._unfinished):
            self._start_at = None
            return
        now = time.monotonic()
        if self._start_at is None:
            self._start_at = now + _GRACE
        self._supervisor = self._link.reach()
        if self._supervisor is None and now >= self._start_at:
            self._start_at = now + _TRY_AGAIN
            try:
                self._supervisor = await self._link.connect()
            except (OarsmanError, OSError) as error:
                log.warning("%s; tried again in %d s", error, _TRY_AGAIN)

    def _it_left(self, supervisor: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if supervisor.recv(4096):
                return  # it has nothing to say to us, but it lives
        supervisor.close()
        self._supervisor = None
        now = time.monotonic()
        # One that we started ourselves just now and that is gone already would not fare better at once.
        begun = self._start_at is not None and self._start_at - _TRY_AGAIN > now - _GRACE
        self._start_at = now + _GRACE if begun else now


_TROUBLE_PAUSE = 1.0

Read = Callable[[StoredJob], JobRecord]


async def changes(
    paths: Paths, store: JobStore, read: Read, namespace: str | None, engine: str | None = None
) -> AsyncGenerator[Batch, None]:
    """The change watch is hung up before the first look, so nothing falls between a look and the wait after it."""
    revision: int | None = None
    with closing(LocalChanges(paths, store.anything_unfinished)) as news:
        while True:
            try:
                found = await asyncio.to_thread(store.changes, revision, namespace)
                if found.revision == revision:
                    await news.wait()
                    continue
            except (StoreError, sqlite3.Error) as error:
                if revision is None:
                    raise
                log.warning("the store cannot be read: %s; tried again", error)
                await asyncio.sleep(_TROUBLE_PAUSE)
                continue
            revision = found.revision
            batch = await asyncio.to_thread(_batch, found, read, engine)
            if batch.whole or batch.records or batch.gone:
                yield batch


def _batch(found: StoreChanges, read: Read, engine: str | None) -> Batch:
    if found.whole:
        return Batch(records=Readable(found.jobs, read, engine), whole=True)
    records, gone = [], list(found.gone)
    for stored in found.jobs:
        if engine not in (None, stored.engine):
            continue
        try:
            records.append(read(stored))
        except ManifestError:  # one that can no longer be read is no more
            gone.append(stored.key)
    return Batch(records=tuple(records), gone=tuple(gone))


@dataclass(frozen=True, slots=True)
class Readable:
    """One that an older Oarsman took and this one cannot read must not hide the others."""

    found: Iterable[StoredJob]
    read: Read
    engine: str | None = None  # the others are left out

    def __iter__(self) -> Iterator[JobRecord]:
        for stored in self.found:
            if self.engine in (None, stored.engine):
                with suppress(ManifestError):
                    yield self.read(stored)
