"""Answers that come one by one. Any thread may end them, also while another waits for the next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from oarsman.errors import OarsmanError
from oarsman.sdk.catalogue import Catalogue
from oarsman.sdk.desk.changes import Told
from oarsman.sdk.models import JobChange

S = TypeVar("S")
T = TypeVar("T")


class Mapped(Iterator[T], Generic[S, T]):
    """What a door yields, as something else. `into` gives None for what is not to be shown."""

    def __init__(self, source: Iterator[S], into: Callable[[S], T | None]) -> None:
        self._source = source
        self._into = into

    def __next__(self) -> T:
        while True:
            found = self._into(next(self._source))
            if found is not None:
                return found

    def close(self) -> None:
        """Doors hand out iterators that can be closed while another thread waits in them."""
        if (close := getattr(self._source, "close", None)) is not None:
            close()

    interrupt = close


class Changes(Iterator[JobChange]):
    """Waits on the thread that asks. `own`: the catalogue is kept for this alone, and ends with it."""

    def __init__(self, catalogue: Catalogue, told: Told, *, own: bool) -> None:
        self._catalogue, self._told, self._own = catalogue, told, own
        self._awake = threading.Event()
        self._closed = False
        self._ready: Iterator[JobChange] = iter(())
        self._subscription = catalogue.subscribe(self._awake.set)

    def __next__(self) -> JobChange:
        while not self._closed:
            if (change := next(self._ready, None)) is not None:
                return change
            self._awake.wait()
            self._awake.clear()
            if self._catalogue.error is not None:
                self._fail(self._catalogue.error)
            news = self._subscription.take() if self._catalogue.known else None
            self._ready = self._told.changes(news) if news is not None else iter(())
        raise StopIteration

    def _fail(self, error: OarsmanError) -> None:
        self.close()
        raise error

    def close(self) -> None:
        self._closed = True
        self._subscription.close()
        if self._own:
            self._catalogue.close()
        self._awake.set()

    interrupt = close

    def __del__(self) -> None:
        if not self._closed:
            self.close()
