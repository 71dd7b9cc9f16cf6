"""How sweeps and their points are drawn: bars of how far one is, rows of points, a chart of what was found.

Values are only ever interpolated as text, bound as attributes, or drawn on a canvas.
"""

from __future__ import annotations

import math
from typing import Any

from nicegui import ui

from oarsman.console.parts import job_rows, words
from oarsman.console.parts.widgets import BADGES
from oarsman.console.parts.words import Words
from oarsman.service.models import SweepPoint, SweepView
from oarsman.text.catalogue import N_

_DONE = (("Succeeded", "is-good"), ("Failed", "is-bad"), ("Stopped", "is-idle"))
_STATES = {**BADGES, N_("NotSubmitted"): ("more_horiz", "is-idle")}
_WAITING = ("NotSubmitted", "Queued", "Pending")
_LABELS = "#7d8a97"  # readable on light and on dark
_DOTS = "#2f8fbf"

POINT = """<q-td :props="props">
  <a v-if="props.row.href" class="oarsman-link" :href="props.row.href">{{ props.row.point }}</a>
  <span v-else>{{ props.row.point }}</span>
</q-td>"""
STATE = """<q-td :props="props"><span class="oarsman-state" :class="props.row.colour">
  <q-icon :name="props.row.icon" aria-hidden="true" />{{ props.row.state }}
</span></q-td>"""
CARD = """<div class="col-12 oarsman-row-card">
  <div class="row items-center no-wrap" style="gap: 8px">
    <a v-if="props.row.href" class="oarsman-link" :href="props.row.href">{{ props.row.point }}</a>
    <span v-else>{{ props.row.point }}</span><q-space />
    <span class="oarsman-state" :class="props.row.colour">
      <q-icon :name="props.row.icon" aria-hidden="true" />{{ props.row.state }}</span>
  </div>
  <dl class="oarsman-facts"><template v-for="col in props.cols.filter((col) =>
      !['point', 'state'].includes(col.name) && col.value !== '' && col.value != null)" :key="col.name">
    <dt>{{ col.label }}</dt><dd>{{ col.value }}</dd></template></dl>
</div>"""


def badge(say: Words, state: str) -> None:
    """Of a sweep or a point, which know more states than jobs do."""
    icon, colour = _STATES.get(state, ("help", "is-idle"))
    with ui.element("span").classes(f"oarsman-state {colour}"):
        ui.icon(icon).props('aria-hidden="true"')
        ui.label(say(state))


def ended(view: SweepView) -> int:
    return sum(view.states.get(state, 0) for state in ("Succeeded", "Failed"))


def progress(say: Words, view: SweepView) -> None:
    """A bar with a piece per outcome, and the same in words."""
    text = say(
        "{ended} of {total} ended, {failed} failed",
        ended=ended(view),
        total=view.total,
        failed=view.states.get("Failed", 0),
    )
    known = sum(view.states.get(state, 0) for state in (*(name for name, _ in _DONE), *_WAITING))
    pieces = [(view.states.get(name, 0), colour) for name, colour in _DONE]
    pieces.append((view.total - known, "is-busy"))
    bar = ui.element("div").classes("oarsman-sweep-bar").props("role=progressbar aria-valuemin=0")
    bar.props(f"aria-valuemax={view.total} aria-valuenow={ended(view)}").props["aria-label"] = words
    with bar:
        for count, colour in pieces:
            if count > 0:
                ui.element("div").classes(colour).style(f"width: {100 * count / max(view.total, 1):.3f}%")
    ui.label(text).classes("oarsman-note")


def columns(say: Words, view: SweepView) -> dict[str, str]:
    """Parameters have names of their own choice: their fields are numbered."""
    return {
        "point": say("Point"),
        **{f"p{number}": name for number, name in enumerate(view.parameters)},
        "state": say("State"),
        **({"metric": say("Metric")} if view.metric else {}),
        "duration": say("Duration"),
        "cause": say("Why"),
    }


def row(say: Words, view: SweepView, point: SweepPoint) -> dict[str, Any]:
    icon, colour = _STATES.get(point.state, ("help", "is-idle"))
    return {
        "point": point.index,
        "href": job_rows.address(point.key) if point.state != "NotSubmitted" else "",
        **{f"p{number}": point.parameters.get(name, "") for number, name in enumerate(view.parameters)},
        "state": say(point.state),
        "icon": icon,
        "colour": colour,
        "metric": point.metric,
        "duration": words.duration(point.started, point.ended) if point.ended is not None else "",
        "cause": point.cause,
    }


def scatter(view: SweepView, parameter: str) -> dict[str, Any]:
    """The metric of each point against one parameter: along a number line, or, for texts, by name."""
    found = [(point.parameters.get(parameter, ""), point.metric) for point in view.points if point.metric is not None]
    numbers = [_number(value) for value, _ in found]
    numeric = all(number is not None for number in numbers)
    x: dict[str, Any] = (
        {"type": "value", "scale": True}
        if numeric
        else {"type": "category", "data": list(dict.fromkeys(str(value) for value, _ in found))}
    )
    positive = [number for number in numbers if number is not None and number > 0]
    if numeric and len(positive) == len(numbers) and positive and max(positive) / min(positive) > 50:
        x = {"type": "log"}
    quiet = {
        "nameLocation": "middle",
        "nameTextStyle": {"color": _LABELS},
        "axisLabel": {"color": _LABELS},
        "splitLine": {"lineStyle": {"color": _LABELS, "opacity": 0.25}},
    }
    data = [[number if numeric else str(value), metric] for number, (value, metric) in zip(numbers, found, strict=True)]
    return {
        "animation": False,
        "grid": {"left": 70, "right": 24, "top": 20, "bottom": 50},
        "xAxis": {**x, **quiet, "name": parameter, "nameGap": 30},
        "yAxis": {"type": "value", "scale": True, **quiet},
        "tooltip": {"trigger": "item", "renderMode": "richText"},
        "series": [{"type": "scatter", "symbolSize": 11, "data": data, "itemStyle": {"color": _DOTS, "opacity": 0.8}}],
    }


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None
