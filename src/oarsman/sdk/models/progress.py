"""How far a job is, as its own lines tell."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from oarsman.sdk.models.base import Value


class MetricPoint(Value):
    time: datetime
    value: float
    step: float | None = None  # what the same line says of step, batch or iteration


class MetricSeries(Value):
    """A number that lines name again and again: loss, images/sec, step."""

    name: str
    rank: int | None = None  # None: nobody can say which
    points: Sequence[MetricPoint]  # a bounded number, evenly thinned


class RankProgress(Value):
    rank: int
    host: str
    state: str = ""  # running, exited, "" where nobody can say
    exit_code: int | None = None
    lines: int = 0
    last_output: datetime | None = None
    step: float | None = None
    behind: str = ""  # why it is called a straggler; empty: it is none


class Progress(Value):
    series: Sequence[MetricSeries] = ()
    ranks: Sequence[RankProgress] = ()
    complete: bool = True  # False: the log is too long, and only parts of it were read
