"""The work queue: keys, each at most once, now or later, with a back-off of its own after trouble.

A key is never handed to two workers at the same time; if it is added while one works on it, it comes
back when that one is done. It may be given a rest first: what is added meanwhile is then worked on
together. Keys of a kind that goes `ahead` are taken before the others, but never for long without one
of those in between.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from oarsman.backoff import Backoff

_BACKOFF = Backoff(0.05, 60.0)
_AHEAD_IN_A_ROW = 7


class WorkQueue:
    def __init__(self, *, ahead: Callable[[str], bool] = lambda _: False) -> None:
        self._goes_ahead = ahead
        self._ahead: OrderedDict[str, None] = OrderedDict()
        self._ready: OrderedDict[str, None] = OrderedDict()
        self._waiting = asyncio.Semaphore(0)  # one for each key in these two
        self._ahead_in_a_row = 0
        self._working: set[str] = set()
        self._again: set[str] = set()  # added while being worked on
        self._delayed: dict[str, tuple[float, asyncio.Handle]] = {}  # each for the earliest time it is wanted
        self._failures: dict[str, int] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._ahead) + len(self._ready) + len(self._working)

    def add(self, key: str) -> None:
        self._idle.clear()
        if key in self._working:
            self._again.add(key)
        elif key not in self._ahead and key not in self._ready:
            (self._ahead if self._goes_ahead(key) else self._ready)[key] = None
            self._waiting.release()

    def add_after(self, key: str, seconds: float) -> None:
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        known = self._delayed.get(key)
        if known is not None:
            if known[0] <= due:
                return
            known[1].cancel()
        self._delayed[key] = due, loop.call_later(seconds, self._due, key)

    def retry(self, key: str) -> float:
        """Again after a delay that doubles with each failure in a row."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = _BACKOFF.after(failures)
        self.add_after(key, delay)
        return delay

    def succeeded(self, key: str) -> None:
        self._failures.pop(key, None)

    async def take(self) -> str:
        await self._waiting.acquire()
        ahead = bool(self._ahead) and (self._ahead_in_a_row < _AHEAD_IN_A_ROW or not self._ready)
        self._ahead_in_a_row = self._ahead_in_a_row + 1 if ahead else 0
        key, _ = (self._ahead if ahead else self._ready).popitem(last=False)
        self._working.add(key)
        return key

    def done(self, key: str, *, rest: float = 0.0) -> None:
        """`rest`: seconds before it may be taken again."""
        if rest > 0:
            asyncio.get_running_loop().call_later(rest, self.done, key)
            return
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        elif not len(self):
            self._idle.set()

    async def idle(self) -> None:
        """Return when nothing is due and nobody works."""
        await self._idle.wait()

    def _due(self, key: str) -> None:
        del self._delayed[key]
        self.add(key)
