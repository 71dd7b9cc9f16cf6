"""Numbers that the job's own lines name again and again: loss, images/sec, step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from nicegui import ui

from oarsman.console.pages.job.tab import Tab
from oarsman.console.parts.charts import Charts, Panel
from oarsman.console.words import Words
from oarsman.sdk.models import MetricSeries, Progress


class Metrics(Tab):
    name = "Metrics"
    follows = True

    def build(self) -> None:
        say = self.guest.say
        self.ready = False
        self.shown: object = None
        with ui.row().classes("items-center w-full"):
            self.axis = ui.toggle({"step": say("By step"), "time": say("By time")}, value="step")
            self.axis.props("no-caps dense").on_value_change(self.refresh)
            self.partly = ui.label(say("The log is long: only parts of it were read.")).classes("oarsman-note")
        empty = say("No line names a number again and again, such as `loss: 0.25` or `120 images/sec`.")
        self.charts = Charts(say, empty, self._begin).classes("w-full")

    async def _begin(self) -> None:
        self.ready, self.shown = True, None
        await self.refresh()

    async def refresh(self) -> None:
        if not self.ready:
            return
        found: Progress = await self.guest.ask(self.guest.visit.desk.progress, self.key)
        self.partly.set_visibility(not found.complete)
        if (found.series, self.axis.value) != self.shown:
            self.shown = (found.series, self.axis.value)
            by_time = self.axis.value == "time"
            self.charts.add(panels(self.guest.say, found.series, by_time=by_time), whole=True)


def panels(say: Words, series: Iterable[MetricSeries], *, by_time: bool) -> list[Panel]:
    """A chart per name, a line per rank; by steps only where every point says its step."""
    by_name: dict[str, list[MetricSeries]] = {}
    for one in series:
        by_name.setdefault(one.name, []).append(one)
    found = []
    for name, lines in by_name.items():
        stepped = not by_time and all(point.step is not None for one in lines for point in one.points)
        panel = Panel(name, name, "number", "step" if stepped else "time")
        for one in lines:
            _draw(panel, say("Rank {rank}", rank=one.rank) if one.rank is not None else "", one, panel.x)
        found.append(panel)
    return found


def _draw(panel: Panel, line: str, series: MetricSeries, x: Literal["time", "step"]) -> None:
    for point in series.points:
        at = point.step if x == "step" and point.step is not None else round(point.time.timestamp() * 1000)
        panel.add(line, at, point.value)
