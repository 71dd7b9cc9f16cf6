"""What ranks wrote down, as launch.sh says it in the end: see scripts/ranks.sh."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from oarsman.job.observed import Exit, RankReport
from oarsman.status.tags import Spoken

_PLACES: Final = "oarsman: ranks "
_PLACE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))? on ([a-z0-9.-]*?[a-z0-9]?)(?:(\d{1,9})\.\.(\d{1,9}))?")
_FAILED: Final = re.compile(
    r"oarsman: rank (?P<rank>\d{1,9}) on (?P<host>\S{1,253}) ended with code (?P<code>\d{1,3}) at (?P<at>\S{1,40})"
)
_MOST: Final = 100_000  # ranks


def apart(lines: Sequence[Spoken]) -> tuple[tuple[RankReport, ...], list[Spoken]]:
    """The ranks that the last lines of a launcher tell about, and its other lines. What a rank wrote tells of none."""
    found: dict[int, RankReport] = {}
    others = []
    for each in lines:
        line = each.text.lstrip("\0")  # Open MPI 5 leaves zero bytes behind
        if each.rank is not None:
            others.append(each)
        elif line.startswith(_PLACES) and (places := _places(line.removeprefix(_PLACES))) is not None:
            found = {rank: RankReport(rank=rank, host=host, world_size=len(places)) for rank, host in places.items()}
        elif said := _FAILED.fullmatch(line):
            rank = int(said["rank"])
            known = found.get(rank) or RankReport(rank=rank, host=said["host"], world_size=rank + 1)
            ended = Exit(code=int(said["code"]))
            found[rank] = replace(known, host=said["host"], exit=ended, finished_at=_moment(said["at"]))
        else:
            others.append(each._replace(text=line))
    return tuple(found[rank] for rank in sorted(found)), others


def _places(text: str) -> dict[int, str] | None:
    """None: a program wrote this, or it was cut."""
    found: dict[int, str] = {}
    for part in text.split(", "):
        said = _PLACE.fullmatch(part)
        if said is None:
            return None
        first, last = int(said[1]), int(said[2] or said[1])
        hosts = list(_hosts(said[3], said[4], said[5]))
        count = last - first + 1
        if not hosts or not 0 < count <= _MOST - len(found) or count % len(hosts):
            return None
        each = count // len(hosts)
        found |= {first + number: hosts[number // each] for number in range(count)}
    return found


def _hosts(stem: str, first: str | None, last: str | None) -> Iterable[str]:
    if first is None or last is None:
        return (stem,)
    few = range(int(first), min(int(last), int(first) + _MOST) + 1)
    return (f"{stem}{number}" for number in few)


def _moment(text: str) -> datetime | None:
    """Not every `date` knows fractions of a second."""
    whole, _, fraction = text.partition(".")
    try:
        moment = datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return moment.replace(microsecond=int(fraction[:6].ljust(6, "0"))) if fraction.isdecimal() else moment
