"""Which ranks of a running job are behind the others, and why one may say so. Where it is not sure, nothing is said.

Ranks that wait for a slow one stop writing too, so silence alone accuses nobody: the others have to go on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from oarsman.text.sentence import Text

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
    ahead = _ahead(paces)
    silent = {rank: reason for rank, reason in _silent(paces, now).items() if rank not in ahead}
    found = {**silent, **_slow(paces)}  # where both are true, the step says more
    return found if len(found) < len(paces) else {}  # one is silent, the other late: nobody goes on


class _Crowd:
    """Values of which each is compared with the others. Of two in the middle the lower one is taken."""

    def __init__(self, values: Iterable[float]) -> None:
        self._values = sorted(values)

    @property
    def others(self) -> int:
        return len(self._values) - 1

    def median(self) -> float:
        return self._values[(len(self._values) - 1) // 2]

    def median_without(self, value: float) -> float:
        """Of the others, for one whose own value this is. There have to be others."""
        middle = (self.others - 1) // 2
        return self._values[middle + 1 if bisect_left(self._values, value) <= middle else middle]


# -- by their steps -----------------------------------------------------------------------------------
def _slow(paces: Mapping[int, Pace]) -> dict[int, str]:
    stepping = {rank: (pace.round, pace.step) for rank, pace in paces.items() if pace.step is not None}
    if len(stepping) < 2:
        return {}
    rounds = _Crowd(round for round, _ in stepping.values())
    steps: dict[int, list[float]] = {}
    for round, step in stepping.values():
        steps.setdefault(round, []).append(step)
    crowds = {round: _Crowd(found) for round, found in steps.items()}
    reasons = {rank: _slower(round, step, rounds, crowds[round]) for rank, (round, step) in stepping.items()}
    return {rank: reason for rank, reason in reasons.items() if reason}


def _slower(round: int, step: float, rounds: _Crowd, steps: _Crowd) -> str:
    """`steps` are those of the same round: in another one they count anew."""
    late = rounds.median_without(round) - round
    if late >= _ROUNDS:
        return Text("{late} rounds of steps behind the others", late=f"{late:g}")
    if not steps.others or 2 * steps.others < rounds.others:
        return ""
    usual = steps.median_without(step)
    if usual - step > max(_FEWEST_STEPS, _SHARE * usual):
        return Text("at step {step}, the others at {usual}", step=f"{step:.10g}", usual=f"{usual:.10g}")
    return ""


def _ahead(paces: Mapping[int, Pace]) -> set[int]:
    """Those further than half of the others: one that is silent there may well wait for them."""
    steps = {rank: (pace.round, pace.step) for rank, pace in paces.items() if pace.step is not None}
    if len(steps) < 2:
        return set()
    places = {step: float(place) for place, step in enumerate(sorted(set(steps.values())))}
    crowd = _Crowd(places[step] for step in steps.values())
    return {rank for rank, step in steps.items() if places[step] > crowd.median_without(places[step])}


# -- by their silence ---------------------------------------------------------------------------------
def _silent(paces: Mapping[int, Pace], now: datetime) -> dict[int, str]:
    lasts = {rank: pace.last for rank, pace in paces.items() if pace.last is not None and pace.beats >= _FEWEST_BEATS}
    if len(lasts) < len(paces):
        return {}  # some never wrote regularly, so nobody is expected to
    interval = _Crowd(map(_interval, paces.values())).median()
    silences = {rank: max(0.0, (now - last).total_seconds()) for rank, last in lasts.items()}
    newest = _Crowd(-silence for silence in silences.values())
    patience = max(_SILENT_SECONDS, _SILENT_INTERVALS * interval)
    found: dict[int, str] = {}
    for rank, silence in silences.items():
        others = -newest.median_without(-silence)
        if silence > max(patience, _LONGER_THAN_EVER * paces[rank].longest_gap) and others <= patience / 2:
            template = Text("silent for {silence} s, the others wrote {others} s ago")
            found[rank] = Text(template, silence=f"{silence:.0f}", others=f"{others:.0f}")
    return found


def _interval(pace: Pace) -> float:
    """Mean seconds between two beats."""
    if pace.first is None or pace.last is None or pace.beats < 2:
        return 0.0
    return (pace.last - pace.first).total_seconds() / (pace.beats - 1)
