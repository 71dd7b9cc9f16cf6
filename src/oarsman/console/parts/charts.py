"""Drawings: series over time, a job's timeline, the grid of ranks, the slots of a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from typing import Any, Literal, NamedTuple
from zlib import crc32

import nicegui.elements.echart  # noqa: F401  (pages know its drawing library from then on; ours draws with it)
from nicegui import ui
from nicegui.element import Element

from oarsman.console.parts import words
from oarsman.console.parts.widgets import moment
from oarsman.console.parts.words import Words
from oarsman.service.models import RankProgress, Step, UsagePoint
from oarsman.text.catalogue import N_

Point = tuple[float, float]  # milliseconds or step, value


@dataclass
class Panel:
    """One chart: a line per name."""

    id: str
    title: str
    unit: Literal["percent", "bytes", "rate", "number"]
    x: Literal["time", "step"] = "time"
    lines: dict[str, list[Point]] = field(default_factory=dict)

    def add(self, line: str, at: float, value: float | None) -> None:
        if value is not None:
            self.lines.setdefault(line, []).append((at, value))


class Charts(Element, component="charts.js"):
    """`on_ready` is called when the browser can take points: what is sent before is lost."""

    def __init__(self, say: Words, empty: str, on_ready: Callable[[], Any]) -> None:
        super().__init__()
        self._props["words"] = {"empty": empty, "step": say("step"), "more": say("{count} more")}
        self.on("ready", on_ready, args=[])

    def say_if_empty(self, text: str) -> None:
        if text != self._props["words"]["empty"]:
            self._props["words"] = {**self._props["words"], "empty": text}
            self.update()

    def add(self, panels: Sequence[Panel], *, whole: bool) -> None:
        """`whole`: instead of what is shown; else behind it. Panels without points are not shown."""
        found = [vars(panel) for panel in panels if panel.lines]
        if found or whole:
            self.run_method("add", found, whole)


# step -> what it is called
STEPS = {
    "submitted": N_("Submitted"),
    "queued": N_("Queued"),
    "admitted": N_("Admitted"),
    "hostsUp": N_("Hosts up"),
    "launched": N_("Launched"),
    "firstOutput": N_("First output"),
    "ended": N_("Ended"),
}
_LAST = "ended"


class Mark(NamedTuple):
    name: str
    time: datetime | None  # None: not reached, or passed over
    took: str  # from the last step that was reached to this one


def marks(say: Words, steps: Sequence[Step]) -> Iterator[Mark]:
    reached = {step.name: step.time for step in steps}
    before: datetime | None = None
    for name in STEPS:
        time = reached.get(name)
        yield Mark(name, time, words.duration(say, before, time) if before is not None and time is not None else "")
        before = time or before


def timeline(say: Words, steps: Sequence[Step], *, ending: str = "is-reached") -> None:
    """`ending`: the class of the last step's colour, which tells how it ended."""
    with ui.element("ol").classes("oarsman-card oarsman-steps").props(f'aria-label="{say("Timeline")}"'):
        for mark in marks(say, steps):
            colour = ending if mark.name == _LAST else "is-reached"
            with ui.element("li").classes("oarsman-step " + (colour if mark.time is not None else "is-ahead")):
                ui.label(mark.took or "\u00a0").classes("oarsman-step-took")
                ui.element("span").classes("oarsman-step-dot").props('aria-hidden="true"')
                ui.label(say(STEPS[mark.name])).classes("oarsman-step-name")
                (ui.label("–") if mark.time is None else moment(mark.time)).classes("oarsman-note")


# how a rank is -> what that is called; also the class of its colour
CONDITIONS = {
    "running": N_("running"),
    "done": N_("exited with 0"),
    "failed": N_("failed"),
    "unknown": N_("unknown"),
    "exited": N_("exited"),
}


class RankGrid(Element, component="rank_grid.js"):
    """`on_pick` is called with the rank whose cell was chosen."""

    def __init__(self, say: Words, on_pick: Callable[[int], Any]) -> None:
        super().__init__()
        self._say = say
        self._props["groups"] = []
        self._props["words"] = {
            "label": say("Every rank"),
            "rank": say("Rank"),
            "nowhere": say("Host unknown"),
            **{name: say(text) for name, text in CONDITIONS.items()},
        }
        self.on("pick", lambda event: on_pick(int(event.args)))

    def show(self, ranks: Sequence[RankProgress], placed: Callable[[str], str]) -> None:
        """`placed` says what a host is called here."""
        groups: dict[str, list[dict[str, Any]]] = {}
        for one in ranks:
            groups.setdefault(one.host, []).append(self._cell(one))
        found = [{"host": placed(host), "cells": cells} for host, cells in groups.items()]
        if found != self._props["groups"]:
            self._props["groups"] = found
            self.update()

    def _cell(self, one: RankProgress) -> dict[str, Any]:
        say = self._say
        note = [say("step {step}", step=f"{one.step:g}")] if one.step is not None else []
        if one.exit_code:
            note.append(say("exit code {code}", code=one.exit_code))
        behind = say("behind: {why}", why=say.of(one.behind)) if one.behind else ""
        return {"rank": one.rank, "state": condition(one), "note": " · ".join(note), "behind": behind}


def condition(one: RankProgress) -> str:
    """One of CONDITIONS."""
    if one.exit_code:
        return "failed"
    if one.exit_code == 0:
        return "done"
    return one.state if one.state in ("running", "exited") else "unknown"


_CURVE_POINTS = 60


def curve(points: Iterable[UsagePoint]) -> list[float]:
    """Per cent of all hosts together, of their GPUs where they have any; the newest moments."""
    moments: dict[datetime, float] = {}
    points = list(points)
    gpus = any(one.gpu_percent is not None for one in points)
    for one in points:
        used = one.gpu_percent if gpus else one.cpu_percent
        moments[one.time] = moments.get(one.time, 0.0) + (used or 0.0)
    return [round(moments[moment], 1) for moment in sorted(moments)][-_CURVE_POINTS:]


def sparkline(say: Words, values: Sequence[float]) -> None:
    """A curve of the size of a word."""
    most = max([*values, 1.0])
    step = 100 / max(1, len(values) - 1)
    told = say("Used: {now} %, at most {most} %", now=f"{values[-1]:g}", most=f"{most:g}") if values else ""
    drawn = " ".join(f"{position * step:.1f},{22 - 20 * value / most:.1f}" for position, value in enumerate(values))
    with ui.element("svg").classes("oarsman-spark").props('viewBox="0 0 100 24" preserveAspectRatio=none') as image:
        if len(values) > 1:
            ui.element("polyline").props["points"] = drawn
    if told:
        image.props("role=img").props["aria-label"] = told
    else:
        image.props("aria-hidden=true")


_COLOURS = 10  # --job-0 to --job-9 in style.css
_MOST_SQUARES = 64  # beyond it a square is more than one
_NOTHING = 1e-9


class SlotHolder(NamedTuple):
    """`colour` is the name of a variable in style.css."""

    name: str
    colour: str
    amount: float


Cell = list[tuple[int, float]]  # (number of the holder, its share of this square), from left to right


def squares(total: float, amounts: Sequence[float], most: int = _MOST_SQUARES) -> list[Cell]:
    """The holders one after the other, over squares of equal size. The amounts are those of all, the free part too."""
    count = min(ceil(total), most)
    size = total / count if count else 0.0
    cells: list[Cell] = [[] for _ in range(count)]
    number, room = 0, size
    for holder, amount in enumerate(amounts):
        while amount > _NOTHING and number < count:
            taken = min(amount, room)
            cells[number].append((holder, round(taken / size, 4)))
            amount, room = amount - taken, room - taken
            if room <= _NOTHING:
                number, room = number + 1, size
    return cells


def colours(keys: Sequence[str]) -> dict[str, str]:
    """One for each job, different as long as there are enough, and the same when other jobs come and go."""
    found: dict[str, str] = {}
    for key in sorted(set(keys)):
        wish = crc32(key.encode("utf-8", "replace"))
        wishes = [f"job-{(wish + n) % _COLOURS}" for n in range(_COLOURS)]
        found[key] = next((colour for colour in wishes if colour not in found.values()), wishes[0])
    return found


class Slots(Element, component="slots.js"):
    """`label` is what it says to those who do not see it. `wide`: one long bar instead of squares."""

    def __init__(
        self, label: str, total: float, holders: Sequence[SlotHolder], used: float | None, *, wide: bool = False
    ) -> None:
        super().__init__()
        self._props["label"] = label
        self._props["wide"] = wide
        self._props["used"] = min(1.0, used / total) if used is not None and total else None
        self._props["holders"] = [{"name": one.name, "colour": one.colour} for one in holders]
        self._props["cells"] = squares(total, [one.amount for one in holders], 1 if wide else _MOST_SQUARES)
