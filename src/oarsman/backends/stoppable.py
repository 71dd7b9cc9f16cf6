"""Endless answers that another thread can end.

A generator that waits cannot be closed from outside: its thread has to notice. So whatever it waits for, it waits for
the `Stop` as well, and `close()` of the `Stoppable` around it tells that one. Nothing wakes up in between.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


def readable(*descriptors: int, timeout: float | None = None) -> set[int]:
    """Those that can be read from, once there are any; none when the time is up. A busy server has descriptors whose
    numbers are beyond what select() can take."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    found = poll.poll(None if timeout is None else max(0.0, timeout) * 1000)
    return {descriptor for descriptor, _ in found}


class Stop:
    """Becomes readable, and stays so, once somebody said stop."""

    def __init__(self) -> None:
        self.told = False
        self._lock = threading.Lock()
        self._read, self._write = os.pipe()
        self._open = True

    def fileno(self) -> int:
        return self._read

    def tell(self) -> None:
        with self._lock:
            if not self.told and self._open:
                os.write(self._write, b"x")
            self.told = True

    def pause(self, seconds: float) -> None:
        """Wait that long, or until told."""
        readable(self._read, timeout=seconds)

    def close(self) -> None:
        with self._lock:
            self.told = True
            if self._open:
                self._open = False
                os.close(self._read)
                os.close(self._write)


class Stoppable(Iterator[T], Generic[T]):
    """What `make` yields. `close()` may be called by any thread, at any time, more than once: whoever waits in
    `next()` gets StopIteration at once, and everything that was open is closed."""

    def __init__(self, make: Callable[[Stop], Generator[T, None, None]]) -> None:
        self._stop = Stop()
        self._busy = threading.Lock()
        self._items = make(self._stop)

    def __next__(self) -> T:
        with self._busy:
            if self._stop.told:
                self._end()
                raise StopIteration
            try:
                return next(self._items)
            except BaseException:
                self._end()
                raise

    def close(self) -> None:
        self._stop.tell()
        if self._busy.acquire(blocking=False):  # otherwise the one in next() sees to it
            try:
                self._end()
            finally:
                self._busy.release()

    def _end(self) -> None:
        self._items.close()
        self._stop.close()

    def __del__(self) -> None:
        if hasattr(self, "_items"):
            self.close()
