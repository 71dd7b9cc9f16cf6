"""How often to try: a bucket of tokens for a steady rate, and pauses that grow."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass


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
class Pauses:
    """Grow twofold up to `most`, and spread out so that not everyone comes back at once."""

    first: float = 0.1
    most: float = 15.0
    refused: float = 30.0  # after an answer that only a person can change

    def after(self, failures: int) -> float:
        return self._spread(min(self.most, self.first * 2.0 ** min(failures - 1, 30)))

    def after_refusal(self) -> float:
        return self._spread(self.refused)

    def _spread(self, seconds: float) -> float:
        return seconds * random.uniform(0.5, 1.0)
