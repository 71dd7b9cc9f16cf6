"""Durations, ages and amounts as people read them: the same in the command, the SDK and the console."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from oarsman.text.sentence import Text

# From so many seconds on: a unit and the smaller one beside it. The console's pages count up with it, too.
UNITS: Final = ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s"))


def duration(span: timedelta | float) -> str:
    """At most two units: 0.4s, 12s, 3m5s, 2h10m, 4d3h."""
    seconds = max(span.total_seconds() if isinstance(span, timedelta) else span, 0.0)
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    whole = round(seconds)
    for size, unit, part, smaller in UNITS:
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size}{unit}" + (f"{rest}{smaller}" if rest else "")
    return f"{whole}s"


def age(then: datetime | None, now: datetime) -> str:
    """Whole seconds and up: what still grows should not flicker in tenths."""
    return "" if then is None else duration(float(int((now - then).total_seconds())))


def took(started: datetime | None, ended: datetime | None, now: datetime) -> str:
    """How long something ran, or runs by now; empty if it has not started."""
    return age(started, now) if started is None or ended is None else duration(ended - started)


def size(amount: float | None) -> str:
    """Bytes in the unit that leaves one to four digits."""
    if amount is None:
        return ""
    value = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if value >= 10 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def quantity(amount: int) -> str:
    """Bytes as a manifest has them: 300Mi, 1536Mi, 2Gi, 500M."""
    for base, units in ((1024, ("Ti", "Gi", "Mi", "Ki")), (1000, ("T", "G", "M", "k"))):
        for power, unit in zip((4, 3, 2, 1), units, strict=True):
            if amount and amount % base**power == 0:
                return f"{amount // base**power}{unit}"
    return str(amount)


def ranges(numbers: Iterable[int]) -> str:
    """0-3, 7"""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def slots(number: int) -> str:
    return Text("{n} slot", n=1) if number == 1 else Text("{n} slots", n=number)


def workers(number: int) -> str:
    return Text("{n} worker", n=1) if number == 1 else Text("{n} workers", n=number)


def ranks(number: int) -> str:
    return Text("{n} rank", n=1) if number == 1 else Text("{n} ranks", n=number)


def number(amount: float) -> str:
    """Of processors: no more digits than anybody wants."""
    return f"{round(amount, 1):g}"
