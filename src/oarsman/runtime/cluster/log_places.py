"""Places in the log of a job. Logs of pods have no offsets, so a place is a time and a count.

A job may be read from several logs at once: the launcher's, and those of the workers that were asked for. A place
says for each of them how far it was read, so that none has to wait for another, however their clocks differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from oarsman.errors import UserError
from oarsman.runtime.cluster.podlog import BEGINNING, Spot

LAUNCHER: Final = 0  # worker n is n + 1
_FORM: Final = re.compile(r"([1-9][0-9]{0,8})((?:\.[0-9]{1,7}-(?:0|[0-9]{23})-[0-9]{1,15})*)")
_DIGITS: Final = re.compile(r"[^0-9]")
_LONGEST: Final = 100_000


@dataclass(frozen=True, slots=True)
class Place:
    attempt: int
    spots: Mapping[int, Spot] = field(default_factory=dict)

    def spot(self, source: int) -> Spot:
        """How far that log was read. One that was not asked for then goes on where the others are."""
        if source in self.spots:
            return self.spots[source]
        newest = max((stamp for stamp, _ in self.spots.values()), default="")
        return (newest, 0) if newest else BEGINNING

    def moved(self, source: int, spot: Spot) -> Place:
        return Place(self.attempt, {**self.spots, source: spot})

    def of(self, sources: Iterable[int]) -> Place:
        """The same place, for these logs."""
        return Place(self.attempt, {source: self.spot(source) for source in sources})

    @property
    def beginning(self) -> bool:
        return all(spot == BEGINNING for spot in self.spots.values())

    @property
    def text(self) -> str:
        return str(self.attempt) + "".join(
            f".{source}-{_DIGITS.sub('', stamp) or '0'}-{times}" for source, (stamp, times) in self.spots.items()
        )


def place(text: str, *, field: str) -> Place:
    found = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
    try:
        if found is None:
            raise ValueError
        parts = (part.split("-") for part in found[2].split(".")[1:])
        return Place(int(found[1]), {int(source): (_stamp(digits), int(times)) for source, digits, times in parts})
    except ValueError:
        raise UserError(
            f"{text[:80]!r} is no place in a log of this job", field=field, hint="hand back what an earlier page said"
        ) from None


def _stamp(digits: str) -> str:
    if digits == "0":
        return ""
    when, parts = digits[:14], digits[14:]
    if datetime.strptime(when, "%Y%m%d%H%M%S").year < 1970:
        raise ValueError
    return f"{when[:4]}-{when[4:6]}-{when[6:8]}T{when[8:10]}:{when[10:12]}:{when[12:14]}.{parts}Z"
