"""All jobs of this machine, and then what changes among them."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass

from oarsman.errors import ManifestError, StoreError
from oarsman.runtime.jobs import Batch, JobRecord
from oarsman.runtime.news import News
from oarsman.runtime.stoppable import Stop
from oarsman.store.jobs import JobStore, StoreChanges, StoredJob
from oarsman.store.places import Places

log = logging.getLogger("oarsman")
_TROUBLE_PAUSE = 1.0

Read = Callable[[StoredJob], JobRecord]


def changes(
    places: Places, store: JobStore, read: Read, namespace: str | None, stop: Stop
) -> Generator[Batch, None, None]:
    """The bell is hung up before the first look, so nothing falls between a look and the wait after it."""
    revision: int | None = None
    with closing(News(places, stop, store.anything_unfinished)) as news:
        while not stop.told:
            try:
                found = store.changes(revision, namespace)
                if found.revision == revision:
                    news.wait()
                    continue
            except (StoreError, sqlite3.Error) as error:
                if revision is None:
                    raise
                log.warning("the store cannot be read: %s; tried again", error)
                stop.pause(_TROUBLE_PAUSE)
                continue
            revision = found.revision
            batch = _batch(found, read)
            if batch.whole or batch.records or batch.gone:
                yield batch


def _batch(found: StoreChanges, read: Read) -> Batch:
    if found.whole:
        return Batch(records=Readable(found.jobs, read), whole=True)
    records, gone = [], list(found.gone)
    for stored in found.jobs:
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

    def __iter__(self) -> Iterator[JobRecord]:
        for stored in self.found:
            with suppress(ManifestError):
                yield self.read(stored)
