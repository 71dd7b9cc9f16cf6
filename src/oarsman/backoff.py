"""How long to wait before the next try. Pure: whoever wants delays to differ brings the randomness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """`first` seconds after one failure, twice as long after each further one in a row, `longest` at most.

    With `random.uniform` each is shortened by up to a half: who failed together must not come back together.
    """

    first: float
    longest: float
    uniform: Callable[[float, float], float] | None = None

    def after(self, failures: int) -> float:
        return self.spread(min(self.first * 2.0 ** min(failures - 1, 30), self.longest))  # no float holds 2**1024

    def spread(self, seconds: float) -> float:
        return seconds if self.uniform is None else seconds * self.uniform(0.5, 1.0)
