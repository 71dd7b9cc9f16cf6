"""Every job of a backend, kept up to date by one task that follows it, for all who look at once.

A page of ten thousand jobs costs a walk over rows that are already made. Whoever wants to hear of changes
gets keys, not copies: one that is slow is told once per job, and one that is too slow is told to start over.
"""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_left, insort
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from oarsman.backends.base import Backend, Batch, JobRecord
from oarsman.errors import NotFoundError, OarsmanError, RetryableError
from oarsman.service import views
from oarsman.service.models import JobSummary, QueueEntry
from oarsman.text.sentence import Text

log = logging.getLogger("oarsman.catalogue")
_FIRST_ANSWER_SECONDS = 60.0
_AGAIN_AFTER_SECONDS = 1.0
_MOST_PENDING = 2_000  # keys a subscriber may be behind before it is told to start over
_MOST_MENDED = 200  # changes at once that an order is mended for; with more it is cheaper to sort again
_MOST_MADE = 256
T = TypeVar("T")


async def if_there(asked: Awaitable[T]) -> T | None:
    """What is asked for; None: there is no such thing."""
    with suppress(NotFoundError):
        return await asked
    return None


@dataclass(frozen=True, slots=True)
class IndexEntry:
    summary: JobSummary
    waiting: QueueEntry | None
    text: str  # what a search looks at, in small letters


_ALL_FIELDS = set(JobSummary.model_fields)


def entry_of(record: JobRecord) -> IndexEntry:
    found = views.summary(record)
    # Which fields were given is all of them, and a set of their names would be half of what an entry weighs.
    object.__setattr__(found, "__pydantic_fields_set__", _ALL_FIELDS)
    text = "\n".join((found.name, found.description, found.reason, found.cause)).lower()
    return IndexEntry(found, views.waiting(record), text)


@dataclass(frozen=True, slots=True)
class IndexChanges:
    """What a subscriber has missed. After a reset the keys are all there are."""

    keys: Sequence[str]
    reset: bool = False


class Subscription:
    """Keys that changed since the last look. `changed` is set when there is something new."""

    def __init__(self, job_index: JobIndex) -> None:
        self._job_index = job_index
        self._pending: dict[str, None] = {}
        self._reset = True  # whoever has just come knows nothing
        self.changed = asyncio.Event()

    def tell(self, keys: Sequence[str], *, reset: bool) -> None:
        if reset or len(self._pending) + len(keys) > _MOST_PENDING:
            self._reset = True
            self._pending.clear()
        elif not self._reset:
            self._pending.update(dict.fromkeys(keys))
        self.changed.set()

    def take(self) -> IndexChanges | None:
        """What there is now; None: nothing."""
        self.changed.clear()
        pending, reset = list(self._pending), self._reset
        self._pending.clear()
        self._reset = False
        if reset:
            return IndexChanges(self._job_index.keys(), reset=True)
        return IndexChanges(pending) if pending else None

    def close(self) -> None:
        self._job_index._subscriptions.discard(self)


class Rows(Protocol):
    """Where a service finds rows: a job index, or what a backend said just now."""

    def entries(self) -> Sequence[IndexEntry]: ...
    def ordered(self, by: str) -> Sequence[IndexEntry]: ...
    def once(self, what: Hashable, make: Callable[[], T]) -> T:
        """What is made of the rows, made once for all who ask before the next change."""
        ...


class RowsRead:
    """Rows of a backend that nobody follows."""

    def __init__(self, records: Sequence[JobRecord]) -> None:
        self.records = {record.job.key: record for record in records}
        self._entries = [entry_of(record) for record in self.records.values()]

    def entries(self) -> Sequence[IndexEntry]:
        return self._entries

    def ordered(self, by: str) -> Sequence[IndexEntry]:
        return sorted(self._entries, key=sort_key(by))

    def once(self, what: Hashable, make: Callable[[], T]) -> T:
        return make()


def sort_key(by: str) -> Callable[[IndexEntry], tuple[str | float, str]]:
    """The value to sort by, and the key of the job, so that no two are equal. What is not known comes first."""

    def key(entry: IndexEntry) -> tuple[str | float, str]:
        return comparable(by, getattr(entry.summary, by)), entry.summary.key

    return key


_TEXTS = {name for name, field in JobSummary.model_fields.items() if field.annotation is str}


def comparable(by: str, value: object) -> str | float:
    if by in _TEXTS:
        return str(value)
    if value is None:
        return float("-inf")
    moment = getattr(value, "timestamp", None)
    return float(moment()) if moment is not None else float(value)  # type: ignore[arg-type]


Swap = tuple[IndexEntry | None, IndexEntry | None]  # what was there, and what is now


def _mended(order: Sequence[IndexEntry], by: str, swaps: Sequence[Swap]) -> list[IndexEntry]:
    key, found = sort_key(by), list(order)
    for old, _ in swaps:
        if old is not None:
            del found[bisect_left(found, key(old), key=key)]
    for _, new in swaps:
        if new is not None:
            insort(found, new, key=key)
    return found


class JobIndex:
    """Belongs to one event loop. Reading needs `await ready()` first; what is read then is there at once."""

    def __init__(self, jobs: Backend, *, now: Callable[[], float] = time.monotonic) -> None:
        self._jobs = jobs
        self._now = now
        self._answered = asyncio.Event()  # the first answer is there, or the error that came instead
        self._entries: dict[str, IndexEntry] = {}
        self._orders: dict[str, Sequence[IndexEntry]] = {}
        self._made: dict[Hashable, Any] = {}
        self._version = 0
        self._error: OarsmanError | None = None
        self._failed_at = 0.0
        self._subscriptions: set[Subscription] = set()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def begin(self) -> None:
        """Before anybody asks: with many jobs, the first answer takes a while."""
        if self._task is not None or self._closed:
            return
        if self._error is not None and self._now() - self._failed_at < _AGAIN_AFTER_SECONDS:
            return
        self._answered.clear()
        self._error = None
        self._task = asyncio.get_running_loop().create_task(self._follow(), name="job index")

    async def ready(self) -> None:
        """Raises what keeps the jobs from being known."""
        self.begin()
        try:
            async with asyncio.timeout(_FIRST_ANSWER_SECONDS):
                await self._answered.wait()
        except TimeoutError:
            raise RetryableError(Text("the jobs are not known yet"), hint=Text("try again in a moment")) from None
        if self._error is not None:
            raise self._error

    # -- reading -------------------------------------------------------------------------------------
    def entries(self) -> Sequence[IndexEntry]:
        return list(self._entries.values())

    def get(self, key: str) -> IndexEntry | None:
        return self._entries.get(key)

    def keys(self) -> Sequence[str]:
        return list(self._entries)

    def ordered(self, by: str) -> Sequence[IndexEntry]:
        """All, sorted by a field of the summary: by the first who asks, and mended with every change."""
        if by not in self._orders:
            self._orders[by] = sorted(self._entries.values(), key=sort_key(by))
        return self._orders[by]

    def once(self, what: Hashable, make: Callable[[], T]) -> T:
        version = self._version
        value: T = self._made[what] if what in self._made else make()
        if version == self._version and len(self._made) < _MOST_MADE:
            self._made[what] = value
        return value

    # -- hearing of changes --------------------------------------------------------------------------
    def subscribe(self) -> Subscription:
        """It begins with a reset, as soon as the jobs are known."""
        subscription = Subscription(self)
        self._subscriptions.add(subscription)
        self.begin()
        if self._answered.is_set():
            subscription.changed.set()
        return subscription

    async def changes(self, silence: float | None = None) -> AsyncGenerator[IndexChanges | None, None]:
        """What changes; None: nothing did for so many seconds. Raises what keeps the jobs from being known."""
        subscription = self.subscribe()
        try:
            while True:
                try:
                    async with asyncio.timeout(silence):
                        await subscription.changed.wait()
                except TimeoutError:
                    yield None
                    continue
                if self._error is not None:
                    raise self._error
                if not self._answered.is_set():
                    subscription.changed.clear()
                elif (news := subscription.take()) is not None:
                    yield news
        finally:
            subscription.close()

    @property
    def subscribers(self) -> int:
        return len(self._subscriptions)

    # -- learning ------------------------------------------------------------------------------------
    def learn(self, record: JobRecord) -> None:
        """What somebody was just told of a job, so that what they look at next is not older."""
        if self._answered.is_set():
            self._take({record.job.key: entry_of(record)})

    def _take(self, made: Mapping[str, IndexEntry], gone: Sequence[str] = (), *, whole: bool = False) -> None:
        told = list(made) if whole else self._change(made, gone)
        if whole:
            self._entries = dict(made)
            self._orders.clear()
        self._made.clear()
        self._version += 1
        if whole or told:
            for subscription in self._subscriptions:
                subscription.tell(told, reset=whole)

    def _change(self, made: Mapping[str, IndexEntry], gone: Sequence[str]) -> list[str]:
        """The keys to tell of."""
        told, swaps = [], []
        for key in [*made, *gone]:
            before, after = self._entries.get(key), made.get(key)
            if before is after or (before and after and before.summary.revision > after.summary.revision):
                continue  # nobody knew it, or what is known is newer
            if after is None:
                del self._entries[key]
            else:
                self._entries[key] = after
            if before is None or after is None or before.summary != after.summary:
                told.append(key)
            swaps.append((before, after))
        if len(swaps) > _MOST_MENDED:
            self._orders.clear()
        self._orders = {by: _mended(order, by, swaps) for by, order in self._orders.items()}
        return told

    # -- the task ------------------------------------------------------------------------------------
    async def _follow(self) -> None:
        error: OarsmanError = RetryableError(Text("the stream of job changes ended"))
        try:
            async with aclosing(self._jobs.follow()) as batches:
                async for batch in batches:
                    made = await asyncio.to_thread(_entries, batch) if batch.whole else _entries(batch)
                    self._take(made, batch.gone, whole=batch.whole)
                    self._answered.set()
        except OarsmanError as problem:
            error = problem
        except Exception as problem:
            log.exception("following the jobs failed")
            error = RetryableError(Text("following the jobs failed: {why}", why=problem))
        finally:
            self._error, self._failed_at = error, self._now()
            self._task = None
            self._answered.set()
            for subscription in self._subscriptions:
                subscription.tell((), reset=True)

    async def close(self) -> None:
        """Whoever listens is told that it is over."""
        self._closed = True
        if self._task is not None:
            task = self._task
            task.cancel()
            await asyncio.wait({task})


def _entries(batch: Batch) -> Mapping[str, IndexEntry]:
    """Of ten thousand jobs this takes seconds, and is nothing for the event loop."""
    return {record.job.key: entry_of(record) for record in batch.records}
