"""Answers that come one by one, and which changes one caller is told of: only what it may see, and nothing twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from oarsman.errors import OarsmanError
from oarsman.service.job_index import IndexChanges, IndexEntry, JobIndex
from oarsman.service.listing import Visible
from oarsman.service.models import JobChange


class ToldJobs:
    """Remembers what the caller knows, so that a job it was never told of is not mentioned when it goes."""

    def __init__(self, job_index: JobIndex, wanted: Visible) -> None:
        self._job_index = job_index
        self._wanted = wanted
        self._known: dict[str, int] = {}  # key -> revision

    def changes(self, news: IndexChanges) -> Iterator[JobChange]:
        if news.reset:
            self._known.clear()
            yield JobChange(reset=True)
        for key in news.keys:
            change = self._change(key, self._job_index.get(key))
            if change is not None:
                yield change

    def _change(self, key: str, entry: IndexEntry | None) -> JobChange | None:
        if entry is not None and self._wanted(entry):
            if self._known.get(key) == entry.summary.revision and entry.summary.revision:
                return None
            self._known[key] = entry.summary.revision
            return JobChange(changed=entry.summary)
        return JobChange(removed=key) if self._known.pop(key, None) is not None else None


S = TypeVar("S")
T = TypeVar("T")


class Mapped(Iterator[T], Generic[S, T]):
    """What a backend yields, as something else. `into` gives None for what is not to be shown."""

    def __init__(self, source: Iterator[S], into: Callable[[S], T | None]) -> None:
        self._source = source
        self._into = into

    def __next__(self) -> T:
        while True:
            found = self._into(next(self._source))
            if found is not None:
                return found

    def close(self) -> None:
        """Backends hand out iterators that can be closed while another thread waits in them."""
        if (close := getattr(self._source, "close", None)) is not None:
            close()

    interrupt = close


class JobChanges(Iterator[JobChange]):
    """Waits on the thread that asks. `own`: the job index is kept for this alone, and ends with it."""

    def __init__(self, job_index: JobIndex, told: ToldJobs, *, own: bool) -> None:
        self._job_index, self._told, self._own = job_index, told, own
        self._awake = threading.Event()
        self._closed = False
        self._ready: Iterator[JobChange] = iter(())
        self._subscription = job_index.subscribe(self._awake.set)

    def __next__(self) -> JobChange:
        while not self._closed:
            if (change := next(self._ready, None)) is not None:
                return change
            self._awake.wait()
            self._awake.clear()
            if self._job_index.error is not None:
                self._fail(self._job_index.error)
            news = self._subscription.take() if self._job_index.known else None
            self._ready = self._told.changes(news) if news is not None else iter(())
        raise StopIteration

    def _fail(self, error: OarsmanError) -> None:
        self.close()
        raise error

    def close(self) -> None:
        self._closed = True
        self._subscription.close()
        if self._own:
            self._job_index.close()
        self._awake.set()

    interrupt = close

    def __del__(self) -> None:
        if not self._closed:
            self.close()
