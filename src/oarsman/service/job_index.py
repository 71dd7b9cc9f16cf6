"""Every job of a backend, kept up to date by one thread that follows it, for all who look at once.

A page of ten thousand jobs costs a walk over rows that are already made. Whoever wants to hear of changes
gets keys, not copies: one that is slow is told once per job, and one that is too slow is told to start over.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from oarsman.backends.base import Backend, Batch, JobRecord
from oarsman.errors import OarsmanError, RetryableError
from oarsman.service import views
from oarsman.service.models import JobSummary, QueueEntry
from oarsman.text.sentence import Text

log = logging.getLogger("oarsman.catalogue")
_FIRST_ANSWER_SECONDS = 60.0
_AGAIN_AFTER_SECONDS = 1.0
_LAST_WORDS_SECONDS = 5.0
_MOST_PENDING = 2_000  # keys a subscriber may be behind before it is told to start over
_MOST_MENDED = 200  # changes at once that an order is mended for; with more it is cheaper to sort again
_MOST_MADE = 256
T = TypeVar("T")


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
    """Keys that changed since the last look. `wake` is called, on another thread, when there is something new."""

    def __init__(self, job_index: JobIndex, wake: Callable[[], None]) -> None:
        self._job_index = job_index
        self._wake = wake
        self._lock = threading.Lock()
        self._pending: dict[str, None] = {}
        self._reset = True  # whoever has just come knows nothing

    def tell(self, keys: Sequence[str], *, reset: bool) -> None:
        with self._lock:
            if reset or len(self._pending) + len(keys) > _MOST_PENDING:
                self._reset = True
                self._pending.clear()
            elif not self._reset:
                self._pending.update(dict.fromkeys(keys))
        self._wake()

    def take(self) -> IndexChanges | None:
        """What there is now; None: nothing."""
        with self._lock:
            pending, reset = list(self._pending), self._reset
            self._pending.clear()
            self._reset = False
        if reset:
            return IndexChanges(self._job_index.keys(), reset=True)
        return IndexChanges(pending) if pending else None

    def close(self) -> None:
        self._job_index.unsubscribe(self)


class Rows(Protocol):
    """Where a service finds rows: a job index, or a backend that is asked anew each time."""

    def entries(self) -> Sequence[IndexEntry]: ...
    def ordered(self, by: str) -> Sequence[IndexEntry]: ...
    def once(self, what: Hashable, make: Callable[[], T]) -> T:
        """What is made of the rows, made once for all who ask before the next change."""
        ...


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
    def __init__(self, jobs: Backend, *, now: Callable[[], float] = time.monotonic) -> None:
        self._jobs = jobs
        self._now = now
        self._lock = threading.Lock()
        self._known = threading.Event()  # the first answer is there, or the error that came instead
        self._entries: dict[str, IndexEntry] = {}
        self._orders: dict[str, Sequence[IndexEntry]] = {}
        self._made: dict[Hashable, Any] = {}
        self._making = threading.RLock()  # the first who asks makes it, the others wait for that
        self._version = 0
        self._error: OarsmanError | None = None
        self._failed_at = 0.0
        self._subscriptions: set[Subscription] = set()
        self._thread: threading.Thread | None = None
        self._batches: Iterator[Batch] | None = None
        self._closed = False

    def begin(self) -> None:
        """Before anybody asks: with many jobs, the first answer takes a while."""
        self._start()

    # -- reading -------------------------------------------------------------------------------------
    def entries(self) -> Sequence[IndexEntry]:
        self._ready()
        with self._lock:
            return list(self._entries.values())

    def get(self, key: str) -> IndexEntry | None:
        with self._lock:
            return self._entries.get(key)

    def keys(self) -> Sequence[str]:
        with self._lock:
            return list(self._entries)

    def ordered(self, by: str) -> Sequence[IndexEntry]:
        """All, sorted by a field of the summary: by the first who asks, and mended with every change."""
        self._ready()
        with self._making:
            with self._lock:
                if (known := self._orders.get(by)) is not None:
                    return known
                version, found = self._version, list(self._entries.values())
            found.sort(key=sort_key(by))
            with self._lock:
                if version == self._version:
                    self._orders[by] = found
            return found

    def once(self, what: Hashable, make: Callable[[], T]) -> T:
        self._ready()
        with self._making:
            with self._lock:
                if what in self._made:
                    known: T = self._made[what]
                    return known
                version = self._version
            value = make()
            with self._lock:
                if version == self._version and len(self._made) < _MOST_MADE:
                    self._made[what] = value
            return value

    # -- hearing of changes --------------------------------------------------------------------------
    def subscribe(self, wake: Callable[[], None]) -> Subscription:
        """It begins with a reset, as soon as the jobs are known."""
        subscription = Subscription(self, wake)
        with self._lock:
            self._subscriptions.add(subscription)
        self._start()
        if self._known.is_set():
            wake()
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        with self._lock:
            self._subscriptions.discard(subscription)

    @property
    def known(self) -> bool:
        """Whether the first answer has come."""
        return self._known.is_set() and self._error is None

    @property
    def error(self) -> OarsmanError | None:
        return self._error

    @property
    def subscribers(self) -> int:
        return len(self._subscriptions)

    # -- learning ------------------------------------------------------------------------------------
    def learn(self, record: JobRecord) -> None:
        """What somebody was just told of a job, so that what they look at next is not older."""
        if self._known.is_set():
            self._take(Batch(records=(record,)))

    def _take(self, batch: Batch) -> None:
        made = {record.job.key: entry_of(record) for record in batch.records}
        with self._lock:
            told = list(made) if batch.whole else self._change(made, batch.gone)
            if batch.whole:
                self._entries = made
                self._orders.clear()
            self._made.clear()
            self._version += 1
            subscriptions = list(self._subscriptions)
        if batch.whole or told:
            for subscription in subscriptions:
                subscription.tell(told, reset=batch.whole)

    def _change(self, made: Mapping[str, IndexEntry], gone: Sequence[str]) -> list[str]:
        """The keys to tell of."""
        told, swaps = [], []
        for key in [*made, *gone]:
            before = self._entries.get(key)
            if self._merge(key, made.get(key)):
                told.append(key)
            after = self._entries.get(key)
            if before is not after:
                swaps.append((before, after))
        if len(swaps) > _MOST_MENDED:
            self._orders.clear()
        self._orders = {by: _mended(order, by, swaps) for by, order in self._orders.items()}
        return told

    def _merge(self, key: str, entry: IndexEntry | None) -> bool:
        """Whether there is something to tell of."""
        known = self._entries.get(key)
        if entry is None:
            return self._entries.pop(key, None) is not None
        if known is not None and known.summary.revision > entry.summary.revision:
            return False
        self._entries[key] = entry
        return known is None or known.summary != entry.summary

    # -- the thread ----------------------------------------------------------------------------------
    def _ready(self) -> None:
        self._start()
        if not self._known.wait(_FIRST_ANSWER_SECONDS):
            raise RetryableError(Text("the jobs are not known yet"), hint=Text("try again in a moment"))
        if self._error is not None:
            raise self._error

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None or self._closed:
                return
            if self._error is not None and self._now() - self._failed_at < _AGAIN_AFTER_SECONDS:
                return
            self._known.clear()
            self._error = None
            self._thread = threading.Thread(target=self._follow, name="catalogue", daemon=True)
            self._thread.start()

    def _follow(self) -> None:
        error: OarsmanError
        try:
            batches = self._jobs.follow()
            with self._lock:
                self._batches = batches
            for batch in () if self._closed else batches:
                self._take(batch)
                self._known.set()
            error = RetryableError(Text("nobody tells of changes among the jobs any more"))
        except OarsmanError as problem:
            error = problem
        except Exception as problem:
            log.exception("following the jobs failed")
            error = RetryableError(Text("following the jobs failed: {why}", why=problem))
        self._fail(error)

    def _fail(self, error: OarsmanError) -> None:
        with self._lock:
            self._error, self._failed_at = error, self._now()
            self._thread = self._batches = None
            subscriptions = list(self._subscriptions)
        self._known.set()
        for subscription in subscriptions:
            subscription.tell((), reset=True)

    def close(self) -> None:
        """Whoever listens is told that it is over; the thread ends, wherever it waits."""
        with self._lock:
            self._closed = True
            batches, thread = self._batches, self._thread
        if (close := getattr(batches, "close", None)) is not None:
            close()  # backends hand out iterators that any thread may close
        if thread is not None and thread is not threading.current_thread():
            thread.join(_LAST_WORDS_SECONDS)
