"""The results of a sweep as rows and as CSV: the parameters first, then what became of each point."""

from __future__ import annotations

import csv
import io
from typing import Any

from oarsman.service.models import SweepPoint, SweepView

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a text that begins so is run by spreadsheets
_FACTS = ("state", "metric", "duration_seconds", "attempts", "started", "ended", "cause", "job")


def rows(view: SweepView) -> list[dict[str, Any]]:
    return [row(view, point) for point in view.points]


def row(view: SweepView, point: SweepPoint) -> dict[str, Any]:
    return {
        "point": point.index,
        **{_column(name): point.parameters.get(name) for name in view.parameters},
        "state": point.state,
        "metric": point.metric,
        "duration_seconds": seconds(point),
        "attempts": point.attempts,
        "started": point.started,
        "ended": point.ended,
        "cause": point.cause,
        "job": point.key,
    }


def seconds(point: SweepPoint) -> float | None:
    """How long it took, once it has ended."""
    if point.started is None or point.ended is None:
        return None
    return round((point.ended - point.started).total_seconds(), 3)


def _column(parameter: str) -> str:
    return f"parameter_{parameter}" if parameter in ("point", *_FACTS) else parameter


def csv_text(view: SweepView) -> str:
    file = io.StringIO()
    columns = ["point", *map(_column, view.parameters), *_FACTS]
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for one in rows(view):
        writer.writerow([_cell(one[name]) for name in columns])
    return file.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) and not _number(value) else value
    moment = getattr(value, "isoformat", None)
    return moment(timespec="milliseconds") if moment is not None else value


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
