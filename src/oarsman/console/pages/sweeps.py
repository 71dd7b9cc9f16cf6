"""Sweeps: how far each is, and of one the table of its points, what was found, and what can be done.

Values are only ever interpolated as text, bound as attributes, or drawn on a canvas.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from fastapi import Request
from nicegui import ui

from oarsman.console.api import PREFIX
from oarsman.console.pages.page import Page, key_of
from oarsman.console.parts import job_rows, widgets, words
from oarsman.console.parts.widgets import STATES, Part, badge, crumbs, heading, moment, note, page_head
from oarsman.console.parts.words import Words
from oarsman.errors import ForbiddenError, NotFoundError, OarsmanError
from oarsman.service.models import SweepPoint, SweepView
from oarsman.text.catalogue import N_

_DONE = (("Succeeded", "is-good"), ("Failed", "is-bad"), ("Stopped", "is-idle"))
_BADGES = {**STATES, N_("NotSubmitted"): ("more_horiz", "is-idle")}
_WAITING = ("NotSubmitted", "Queued", "Pending")
_LABELS = "#7d8a97"  # readable on light and on dark
_DOTS = "#2f8fbf"
_FAILURES = "#c94f4f"

_POINT = """
<a v-if="props.row.href" class="oarsman-link" :href="props.row.href">{{ props.row.point }}</a>
<span v-else>{{ props.row.point }}</span>"""
POINT = f'<q-td :props="props">{_POINT}</q-td>'
STATE = f'<q-td :props="props">{job_rows.BADGE}</q-td>'
CARD = f"""<div class="col-12 oarsman-row-card">
  <div class="oarsman-row-line">{_POINT}<q-space />{job_rows.BADGE}</div>"""
CARD += """
  <div class="oarsman-row-facts"><span v-for="col in props.cols.filter((col) =>
      !['point', 'state'].includes(col.name) && col.value !== '' && col.value != null)" :key="col.name">{{
    col.label }}: {{ col.value }}</span></div>
</div>"""

# As Quasar sorts, but for points without a value: they come last in both directions.
_SORTED = """(rows, by, descending) => {
  const none = (value) => value === null || value === undefined || value === "";
  const order = (one, other) => {
    if (typeof one === "number" && typeof other === "number") return one - other;
    const [a, b] = [one, other].map((value) => String(value).toLocaleString().toLowerCase());
    return a < b ? -1 : Number(a > b);
  };
  return [...rows].sort((first, second) => {
    const [one, other] = [first[by], second[by]];
    if (none(one) || none(other)) return none(one) - none(other);
    return order(one, other) * (descending ? -1 : 1);
  });
}"""


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
    bar.props(f"aria-valuemax={view.total} aria-valuenow={ended(view)}").props["aria-label"] = text
    with bar:
        for count, colour in pieces:
            if count > 0:
                ui.element("div").classes(colour).style(f"width: {100 * count / max(view.total, 1):.3f}%")
    note(text)


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
    icon, colour = _BADGES.get(point.state, ("help", "is-idle"))
    return {
        "point": point.index,
        "href": job_rows.address(point.key) if point.state != "NotSubmitted" else "",
        **{f"p{number}": point.parameters.get(name, "") for number, name in enumerate(view.parameters)},
        "state": say(point.state),
        "icon": icon,
        "colour": colour,
        "metric": point.metric,
        "duration": words.duration(say, point.started, point.ended) if point.ended is not None else "",
        "cause": " · ".join(part for part in words.error_first(say, point.cause) if part),
    }


def scatter(say: Words, view: SweepView, parameter: str) -> dict[str, Any]:
    """The metric of each point against one parameter: along a number line, or, for texts, by name. What a failed point
    found last is no result."""
    found = [
        (point.parameters.get(parameter, ""), point.metric, point.state == "Failed")
        for point in view.points
        if point.metric is not None
    ]
    numbers = [_number(value) for value, *_ in found]
    numeric = None not in numbers
    positive = [number for number in numbers if number is not None and number > 0]
    x: dict[str, Any] = {"type": "value", "scale": True}
    if not numeric:
        x = {"type": "category", "data": list(dict.fromkeys(str(value) for value, *_ in found))}
    elif positive and len(positive) == len(numbers) and max(positive) / min(positive) > 50:
        x = {"type": "log"}
    quiet = {
        "nameLocation": "middle",
        "nameTextStyle": {"color": _LABELS},
        "axisLabel": {"color": _LABELS},
        "splitLine": {"lineStyle": {"color": _LABELS, "opacity": 0.25}},
    }
    drawn: dict[bool, list[Any]] = {False: [], True: []}
    for number, (value, metric, failed) in zip(numbers, found, strict=True):
        drawn[failed].append([number if numeric else str(value), metric])
    failures = {"name": say("Failed"), "symbol": "triangle", "color": _FAILURES}
    series = [{"name": say("Results"), "symbol": "circle", "color": _DOTS, "data": drawn[False]}]
    series += [{**failures, "data": drawn[True]}] if drawn[True] else []
    return {
        "animation": False,
        "grid": {"left": 70, "right": 24, "top": 40, "bottom": 50},
        "legend": {"show": bool(drawn[True]), "top": 0, "textStyle": {"color": _LABELS}},
        "xAxis": {**x, **quiet, "name": parameter, "nameGap": 30},
        "yAxis": {"type": "value", "scale": True, **quiet},
        "tooltip": {"trigger": "item", "renderMode": "richText"},
        "series": [{"type": "scatter", "symbolSize": 11, "itemStyle": {"opacity": 0.8}, **one} for one in series],
    }


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


_FIRST = "oarsman sweep run --name rates --grid lr=0.1,0.01 -n 2 -- ./train --lr {{lr}}"
_POINTS_PER_SECOND = 400  # that a page is sent anew; a large sweep is drawn less often
_LOOK_AGAIN_SECONDS = 2.0


def address(key: str) -> str:
    return f"/sweeps/{quote(key, safe='/', errors='replace')}"


class SweepsPage(Page):
    path, title = "/sweeps", N_("Sweeps")

    async def show(self, _: Request) -> None:
        about = self.say("One manifest, many sets of parameters: each point is a job of its own.")
        with page_head(self.say(self.title), about):
            if self.context.may_change:
                ui.button(self.say("New sweep"), icon="add").props("unelevated no-caps href=/sweeps/new")
        self.trouble = ui.label("").classes("text-negative oarsman-trouble").props('role="alert"')
        self.list = Part(ui.column().classes("w-full items-stretch"), self._draw)
        await self.refresh()
        self.context.on_changes(self.refresh)

    async def refresh(self) -> None:
        try:
            found = await self.context.ask(self.service.sweeps)
        except OarsmanError as error:
            self.trouble.set_text(self.say.of(error.message))
            return
        self.trouble.set_text("")
        self.list.show(found)

    def _draw(self, found: Sequence[SweepView]) -> None:
        if not found:
            with ui.column().classes("oarsman-card w-full"):
                ui.label(self.say("There are no sweeps yet."))
                ui.label(_FIRST).classes("oarsman-lines")
        for view in found:
            with ui.column().classes("oarsman-card w-full").props("role=article") as card:
                card.props["aria-label"] = view.name
                with ui.row().classes("items-center w-full"):
                    ui.link(view.name, address(view.key)).classes("oarsman-link oarsman-h2")
                    badge(self.say, view.state, _BADGES)
                    ui.space()
                    for fact in (", ".join(view.parameters), view.owner):
                        note(fact)
                    moment(view.created).classes("oarsman-note")
                progress(self.say, view)


class SweepPage(Page):
    path = "/sweeps/{namespace}/{name}"

    async def show(self, request: Request) -> None:
        try:
            self.view = view = await self.context.ask(self.service.sweep, key_of(request))
        except (NotFoundError, ForbiddenError) as error:
            page_head(key_of(request))
            ui.label(self.say.of(error.message)).classes("oarsman-card")
            return
        self.pending = False
        self.next_look = 0.0
        self.firm = ui.element("div").classes("oarsman-nothing")
        crumbs(self.say, (self.say("Sweeps"), "/sweeps"))
        with ui.row().classes("oarsman-head"):
            heading(view.name, 1)
            state = Part(ui.element("div"), lambda _: badge(self.say, self.view.state, _BADGES))
            ui.space()
            with ui.element("a").classes("oarsman-link").props("download") as link:
                ui.label(self.say("Results as CSV"))
            link.props["href"] = f"{PREFIX}{address(view.key)}/results.csv"
            buttons = Part(ui.row().classes("items-center"), lambda _: self._buttons())
            self._offer_delete()  # never drawn anew: a click on a button that is just being replaced is lost
        self.bar = Part(ui.column().classes("oarsman-card w-full"), lambda _: progress(self.say, self.view))
        self.parts = (state, buttons)
        with ui.column().classes("oarsman-card w-full") as self.figure:
            with ui.row().classes("items-center w-full"):
                heading(self.say("Metric by parameter"))
                ui.space()
                self.axis = ui.select(list(view.parameters), value=view.parameters[0] if view.parameters else None)
                self.axis.props("outlined dense").on_value_change(self._draw_chart)
                self.axis.props["aria-label"] = self.say("Parameter")
            self.chart = ui.echart({}).classes("oarsman-sweep-chart").props("role=img")
            self.chart.props["aria-label"] = self.say("Metric by parameter")
        self.table = widgets.table(self.say, "point", columns(self.say, view))
        self.table.props[":sort-method"] = _SORTED
        for slot, template in (("body-cell-point", POINT), ("body-cell-state", STATE), ("item", CARD)):
            self.table.add_slot(slot, template)
        self._draw()
        self.context.on_changes(self.refresh)
        ui.timer(_LOOK_AGAIN_SECONDS, self._look_again)

    async def refresh(self) -> None:
        """At once, but for large sweeps: those wait for the next tick."""
        if time.monotonic() < self.next_look:
            self.pending = True
            return
        self.pending = False
        try:
            self.view = await self.context.ask(self.service.sweep, self.view.key)
        except NotFoundError:
            ui.navigate.to("/sweeps")
            return
        except OarsmanError:
            self.pending = True
            return
        self.next_look = time.monotonic() + self.view.total / _POINTS_PER_SECOND
        self._draw()

    async def _look_again(self) -> None:
        """What is found in logs changes though no job does."""
        if self.pending or self.view.state == "Running":
            await self.refresh()

    def _draw(self) -> None:
        view = self.view
        widgets.fill(self.table, [row(self.say, view, point) for point in view.points])
        self._draw_chart()
        self.bar.show(dict(view.states))
        for part in self.parts:
            part.show(view.state)

    def _draw_chart(self) -> None:
        shown = bool(self.axis.value) and any(point.metric is not None for point in self.view.points)
        self.figure.set_visibility(shown)
        options = scatter(self.say, self.view, self.axis.value) if shown else {}
        if shown and options != self.chart.options:
            self.chart.options.clear()
            self.chart.options.update(options)
            self.chart.update()

    def _buttons(self) -> None:
        name, say, service = self.view.name, self.say, self.service
        if not self.context.may_change:
            return
        if self.view.state == "Running":
            question = say("Stop what runs of {name}? Results stay, and it can be resumed.", name=name)
            self.offer(say("Stop"), "stop", partial(self._do, "stop sweep", service.stop_sweep), question, grave=True)
        if self.view.state == "Stopped":
            self.offer(say("Resume"), "play_arrow", partial(self._do, "resume sweep", service.resume_sweep))

    def _offer_delete(self) -> None:
        if self.context.may_change:
            question = self.say("Delete {name} with all its jobs, logs and results?", name=self.view.name)
            delete = partial(self._do, "delete sweep", self.service.delete_sweep)
            self.offer(self.say("Delete"), "delete", delete, question, grave=True, more="color=negative")

    async def _do(self, what: str, act: Callable[[str], Any]) -> None:
        if await self.context.attempt(what, self.view.key, act, self.view.key):
            self.next_look = 0.0
            await self.refresh()
