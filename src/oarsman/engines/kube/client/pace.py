"""How often to try: a bucket of tokens for a steady rate, and pauses that grow."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from oarsman.backoff import Backoff


class Bucket:
    """At most `rate` requests a second, after a burst."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = self._burst
        self._at = time.monotonic()

    async def take(self) -> None:
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        self._tokens -= 1  # below zero: a place in the queue
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / self._rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses(Backoff):
    """What whoever follows a server needs besides."""

    first: float = 0.1
    longest: float = 15.0
    uniform: Callable[[float, float], float] | None = random.uniform
    refused: float = 30.0  # after an answer that only a person can change
    silence: float = 150.0  # the least that counts as suspicious, from a server that was heard regularly

    def after_refusal(self) -> float:
        return self.spread(self.refused)


class Pulse:
    """Learns from a regular sign of life how long silence is normal; a server that gives none is never suspected."""

    def __init__(self, least: float) -> None:
        self._least = least
        self._last: float | None = None
        self._normal: float | None = None

    def heard(self, now: float, *, regular: bool) -> float | None:
        """When something must have been heard again; None: nothing can be expected."""
        if regular:
            if self._last is not None:
                self._normal = now - self._last
            self._last = now
        return None if self._normal is None else now + max(self._least, 3 * self._normal)
