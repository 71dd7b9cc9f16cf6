"""The work queue: keys, each at most once, now or later, with a back-off of its own after trouble.

A key is never handed to two workers at the same time; if it is added while one works on it, it comes
back when that one is done.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict

_FIRST_DELAY = 0.05
_LONGEST_DELAY = 60.0


class WorkQueue:
    def __init__(self) -> None:
        self._ready: OrderedDict[str, None] = OrderedDict()
        self._working: set[str] = set()
        self._again: set[str] = set()  # added while being worked on
        self._delayed: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}  # the earliest time a delayed key is wanted
        self._failures: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._ready) + len(self._working)

    def add(self, key: str) -> None:
        if key in self._working:
            self._again.add(key)
        else:
            self._ready[key] = None
        self._changed.set()
        self._idle.clear()

    def add_after(self, key: str, seconds: float) -> None:
        if seconds <= 0:
            self.add(key)
            return
        due = asyncio.get_running_loop().time() + seconds
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            heapq.heappush(self._delayed, (due, key))
            self._changed.set()

    def retry(self, key: str) -> float:
        """Again after a delay that doubles with each failure in a row."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min(_FIRST_DELAY * float(2 ** min(failures, 20)), _LONGEST_DELAY)  # bounded: no float holds 2**1024
        self.add_after(key, delay)
        return delay

    def succeeded(self, key: str) -> None:
        self._failures.pop(key, None)

    async def take(self) -> str:
        while True:
            self._promote()
            if self._ready:
                key, _ = self._ready.popitem(last=False)
                self._working.add(key)
                return key
            self._changed.clear()
            timeout = self._delayed[0][0] - asyncio.get_running_loop().time() if self._delayed else None
            try:
                async with asyncio.timeout(None if timeout is None else max(timeout, 0)):
                    await self._changed.wait()
            except TimeoutError:
                pass

    def done(self, key: str) -> None:
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        elif not len(self):
            self._idle.set()

    async def idle(self) -> None:
        """Return when nothing is due and nobody works."""
        await self._idle.wait()

    def _promote(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._delayed and self._delayed[0][0] <= now:
            due, key = heapq.heappop(self._delayed)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
