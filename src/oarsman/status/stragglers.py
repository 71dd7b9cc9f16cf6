"""Which ranks of a running job are behind the others, and why one may say so. Where it is not sure, nothing is said.

Ranks that wait for a slow one stop writing too, so silence alone accuses nobody: the others have to go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

_FEWEST_STEPS: Final = 2.0  # behind by no more than this is nothing
_SHARE: Final = 0.2
_ROUNDS: Final = 2  # the first rank to begin a new epoch does not make the others late
_SILENT_SECONDS: Final = 30.0
_SILENT_INTERVALS: Final = 5.0
_LONGER_THAN_EVER: Final = 2.0
_FEWEST_BEATS: Final = 4  # fewer say nothing of how regularly a rank writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What the lines of one running rank say. A beat is a moment at which it wrote; many lines may come with one."""

    step: float | None = None
    round: int = 0  # how often its steps began anew
    first: datetime | None = None
    last: datetime | None = None
    beats: int = 0
    longest_gap: float = 0.0  # seconds between two beats


def behind(paces: Mapping[int, Pace], now: datetime) -> Mapping[int, str]:
    """Reasons by rank, of those that are behind. `paces` has the ranks that run, and no others."""
    if len(paces) < 2:
        return {}
    return {**_silent(paces, now), **_slow(paces)}  # where both are true, the step says more


# -- by their steps -----------------------------------------------------------------------------------
def _slow(paces: Mapping[int, Pace]) -> dict[int, str]:
    stepping = {rank: pace for rank, pace in paces.items() if pace.step is not None}
    found = {}
    for rank, pace in stepping.items():
        others = [other for one, other in stepping.items() if one != rank]
        if others and (reason := _slower(pace, others)):
            found[rank] = reason
    return found


def _slower(pace: Pace, others: Sequence[Pace]) -> str:
    rounds = _median([float(other.round) for other in others])
    if rounds - pace.round >= _ROUNDS:
        return f"{rounds - pace.round:g} rounds of steps behind the others"
    steps = [other.step for other in others if other.round == pace.round and other.step is not None]
    if 2 * len(steps) < len(others) or not steps or pace.step is None:
        return ""  # most of them are in another round, where steps count anew
    usual = _median(steps)
    if usual - pace.step > max(_FEWEST_STEPS, _SHARE * usual):
        return f"at step {pace.step:.10g}, the others at {usual:.10g}"
    return ""


# -- by their silence ---------------------------------------------------------------------------------
def _silent(paces: Mapping[int, Pace], now: datetime) -> dict[int, str]:
    lasts = {rank: pace.last for rank, pace in paces.items() if pace.last is not None and pace.beats >= _FEWEST_BEATS}
    if len(lasts) < len(paces):
        return {}  # some never wrote regularly, so nobody is expected to
    interval = _median([_interval(pace) for pace in paces.values()])
    silences = {rank: max(0.0, (now - last).total_seconds()) for rank, last in lasts.items()}
    patience = max(_SILENT_SECONDS, _SILENT_INTERVALS * interval)
    found = {}
    for rank, silence in silences.items():
        others = -_median([-other for one, other in silences.items() if one != rank])
        if silence > max(patience, _LONGER_THAN_EVER * paces[rank].longest_gap) and others <= patience / 2:
            found[rank] = f"silent for {silence:.0f} s, the others wrote {others:.0f} s ago"
    return found


def _interval(pace: Pace) -> float:
    """Mean seconds between two beats."""
    if pace.first is None or pace.last is None or pace.beats < 2:
        return 0.0
    return (pace.last - pace.first).total_seconds() / (pace.beats - 1)


def _median(values: Sequence[float]) -> float:
    """The lower one of two in the middle: a doubt is in favour of whoever is late."""
    return sorted(values)[(len(values) - 1) // 2]
