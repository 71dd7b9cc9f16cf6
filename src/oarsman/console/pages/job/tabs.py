"""The tabs of the job page: events, manifest, log, metrics, usage. Each is built once and told when there is news."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from nicegui import ui

from oarsman.console.pages.page import PageContext, PagePart
from oarsman.console.parts import widgets, words
from oarsman.console.parts.charts import Charts, Panel
from oarsman.console.parts.fields import YamlEditor
from oarsman.console.parts.widgets import LogView, note
from oarsman.console.parts.words import Words
from oarsman.service.models import JobView, MetricSeries, Progress, UsagePoint
from oarsman.status.words import ENDED
from oarsman.text.catalogue import N_


class Tab(PagePart, ABC):
    """`name` is its title, and in the address. One that `follows` also changes while the job itself does not.

    `run`: which run of the job it is about; None: the newest, whichever that is.
    """

    name: str
    follows = False

    def __init__(self, context: PageContext, key: str, job: JobView, run: int | None = None) -> None:
        super().__init__(context)
        self.key = key
        self.run = run
        self.job = job

    @property
    def ended(self) -> bool:
        return self.job.summary.state in ENDED

    @abstractmethod
    def build(self) -> None:
        """Draw it; only once, so that what the reader chose stays."""

    @abstractmethod
    async def refresh(self) -> None:
        """Show what is new in `self.job`, or elsewhere. Asked only while the tab is open."""


_REASON = """
<q-td :props="props">
  <span :class="props.row.warning ? 'is-bad' : ''" :title="props.row.reason_said">{{ props.row.reason }}</span>
</q-td>"""
_MESSAGE = '<q-td :props="props"><span :title="props.row.message_said">{{ props.row.message }}</span></q-td>'


class Events(Tab):
    name = N_("Events")

    def build(self) -> None:
        titles = {
            "time": self.say("Time"),
            "reason": self.say("Reason"),
            "count": self.say("Count"),
            "message": self.say("Message"),
        }
        self.table = widgets.table(self.say, "id", titles, sortable=False)
        self.table.add_slot("body-cell-time", widgets.TIME)
        self.table.add_slot("body-cell-reason", _REASON)
        self.table.add_slot("body-cell-message", _MESSAGE)

    async def refresh(self) -> None:
        found = await self.context.ask(self.service.events, self.key, run=self.run)
        rows = [
            {
                "id": number,
                "time": widgets.milliseconds(event.time),
                "reason": self.say.of(event.reason),
                "count": event.count,
                "message": self.say.of(event.message),
                "reason_said": event.reason,
                "message_said": event.message,
                "warning": event.severity == "Warning",
            }
            for number, event in enumerate(found)
        ][::-1]
        widgets.fill(self.table, rows)


_GIVEN, _COMPLETED = "given", "completed"


class Manifest(Tab):
    name = N_("YAML")

    def build(self) -> None:
        with ui.row().classes("items-center w-full"):
            self.which = ui.toggle({_GIVEN: self.say("As given"), _COMPLETED: self.say("As completed")}, value=_GIVEN)
            self.which.props("no-caps dense").on_value_change(self.refresh)
            ui.space()
            ui.button(self.say("Copy"), icon="content_copy", on_click=self._copy).props("outline dense no-caps")
            ui.button(self.say("Download"), icon="download", on_click=self._download).props("outline dense no-caps")
        self.text = YamlEditor("", self.say("YAML"), lambda _: None)
        self.text.classes("oarsman-card oarsman-yaml w-full", remove="oarsman-editor").disable()

    @property
    def chosen(self) -> str:
        return self.job.completed if self.which.value == _COMPLETED else self.job.manifest

    async def refresh(self) -> None:
        if self.text.value != self.chosen:
            self.text.set_value(self.chosen)

    async def _copy(self) -> None:
        """A browser refuses on an address that is neither this machine's nor protected; then nothing was copied."""
        text = json.dumps(self.chosen)
        copied = await ui.run_javascript(
            f"try {{ await navigator.clipboard.writeText({text}); return true }} catch {{ return false }}"
        )
        refused = self.say("The browser does not allow copying here; download it instead.")
        ui.notify(self.say("Copied.") if copied else refused, type="positive" if copied else "warning")

    def _download(self) -> None:
        ending = "completed.yaml" if self.which.value == _COMPLETED else "yaml"
        ui.download.content(self.chosen, f"{self.job.summary.name}.{ending}", "application/yaml")


_ALL, _LAUNCHER = "all", "launcher"
_LONGEST_SEARCH = 1000


class Log(Tab):
    """Which lines, and what is looked for, stand in the address."""

    name = N_("Logs")
    view: LogView
    asked: Mapping[str, str] = MappingProxyType({})  # by the address that the page was opened with

    def build(self) -> None:
        asked = self.asked
        self.wanted: dict[str, Any] = {
            "run": self.run,
            **{name: _number(asked.get(name, "")) for name in ("attempt", "worker", "rank")},
            "launcher": asked.get("launcher") == "true" or None,
            "stream": "err" if asked.get("stream") == "err" else None,
        }
        self.search, self.only = asked.get("search", "")[:_LONGEST_SEARCH], asked.get("only") == "true"
        with ui.row().classes("items-center w-full q-gutter-sm"):
            self._which()
            ui.space()
            with ui.row().classes("items-center"):  # if there is no room for one of them, all go below
                ui.checkbox(self.say("Times"), on_change=lambda e: self.view.look(stamps=e.value))
                ui.checkbox(self.say("Wrap"), value=True, on_change=lambda e: self.view.look(wrap=e.value))
                with ui.element("a").classes("oarsman-link").props("download") as self.link:
                    ui.label(self.say("Download"))
        self.view = LogView(self.say, self.key, self._reading, asked.get("at", "")).classes("w-full")
        self.view.find(self.search, only=self.only)
        self.view.only(**self.wanted)
        self.link.props["href"] = self.view.download

    @property
    def _reading(self) -> str:
        return f"{self.job.summary.uid}/{self.job.summary.attempt}"

    def _which(self) -> None:
        self.attempt = ui.select(
            [], label=self.say("Attempt"), on_change=lambda e: self._change(attempt=e.value or None)
        )
        self.attempt.props("outlined dense options-dense").classes("w-44")
        sources = self._sources()
        source = _LAUNCHER if self.wanted["launcher"] else self.wanted["worker"]
        self.source = ui.select(
            sources, value=source if source in sources else _ALL, label=self.say("From"), with_input=True
        )
        self.source.props("outlined dense options-dense").classes("w-40")
        self.source.on_value_change(
            lambda e: self._change(
                launcher=e.value == _LAUNCHER or None, worker=e.value if isinstance(e.value, int) else None
            )
        )
        self.rank = ui.number(self.say("Rank"), value=self.wanted["rank"], min=0, precision=0)
        self.rank.props("outlined dense clearable debounce=300").classes("w-28")
        self.rank.on_value_change(lambda e: self._change(rank=None if e.value is None else int(e.value)))
        search = ui.input(
            self.say("Search"), value=self.search, on_change=lambda e: self._find(e.value or "", self.only)
        )
        search.props(f"outlined dense clearable debounce=300 maxlength={_LONGEST_SEARCH}")
        search.on("keydown.enter", js_handler="(event) => oarsman.nextMatch(event.shiftKey ? -1 : 1)")
        ui.checkbox(
            self.say("Only matching lines"), value=self.only, on_change=lambda e: self._find(self.search, e.value)
        )
        errors = ui.checkbox(self.say("Only errors"), value=self.wanted["stream"] == "err")
        errors.on_value_change(lambda e: self._change(stream="err" if e.value else None))

    def _sources(self) -> dict[Any, str]:
        workers = {number: self.say("Worker {number}", number=number) for number in range(self.job.summary.workers)}
        return {_ALL: self.say("Everybody"), _LAUNCHER: self.say("Launcher only"), **workers}

    def _change(self, **part: Any) -> None:
        self.wanted.update(part)
        self.view.only(**self.wanted)
        self._tell_address()

    def _find(self, text: str, only: bool) -> None:
        self.search, self.only = text, only
        self.view.find(text, only=only)
        self._tell_address()

    def _tell_address(self) -> None:
        self.link.props["href"] = self.view.download
        parts = {**self.wanted, "search": self.search or None, "only": self.only or None}
        ui.run_javascript(f"oarsman.query({json.dumps(parts)})")

    def of_rank(self, rank: int) -> None:
        """Shows what one rank wrote; whatever else was asked for is kept, but for who wrote it."""
        self.source.set_value(_ALL)
        self.rank.set_value(rank)

    async def refresh(self) -> None:
        self.view.reads(self._reading, ended=self.ended)
        self.attempt.set_visibility(len(self.job.attempts) > 1)
        attempts = {0: self.say("Newest")}
        for one in self.job.attempts:
            attempts[one.number] = f"{one.number} · {self.say(words.outcome_of(self.job, one))}"
        if attempts != self.attempt.options:
            chosen = self.wanted["attempt"]
            self.attempt.set_options(attempts, value=chosen if chosen in attempts else 0)
        if (sources := self._sources()) != self.source.options:
            self.source.set_options(sources, value=self.source.value if self.source.value in sources else _ALL)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 10 else None


class MetricsTab(Tab):
    name = N_("Metrics")
    follows = True
    ready = False  # the browser can take points: what is sent before is lost
    shown: object = None

    def build(self) -> None:
        with ui.row().classes("items-center w-full"):
            self.axis = ui.toggle({"step": self.say("By step"), "time": self.say("By time")}, value="step")
            self.axis.props("no-caps dense").on_value_change(self.refresh)
            self.partly = note(self.say("The log is long: only parts of it were read."))
        empty = self.say("No line names a number again and again, such as `loss: 0.25` or `120 images/sec`.")
        self.charts = Charts(self.say, empty, self._begin).classes("w-full")

    async def _begin(self) -> None:
        self.ready, self.shown = True, None
        await self.refresh()

    async def refresh(self) -> None:
        if not self.ready:
            return
        found: Progress = await self.context.ask(self.service.progress, self.key, run=self.run)
        self.partly.set_visibility(not found.complete)
        if (found.series, self.axis.value) != self.shown:
            self.shown = (found.series, self.axis.value)
            by_time = self.axis.value == "time"
            self.charts.add(panels(self.say, found.series, by_time=by_time), whole=True)


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
            line = say("Rank {rank}", rank=one.rank) if one.rank is not None else ""
            for point in one.points:
                at = point.step if stepped and point.step is not None else round(point.time.timestamp() * 1000)
                panel.add(line, at, point.value)
        found.append(panel)
    return found


_STRAGGLE = timedelta(minutes=1)  # not every engine measures all hosts at the same moment
_POINTS = 400  # of a host that are shown of what was before; more is nothing but weight


class Usage(Tab):
    name = N_("Usage")
    follows = True

    def build(self) -> None:
        self.ready = False
        self.uid = self.job.summary.uid
        self.newest: dict[str, datetime] = {}
        self.charts = Charts(self.say, self._nothing, self._begin)
        self.charts.classes("w-full")

    @property
    def _nothing(self) -> str:
        return self.say("Nothing was measured.") if self.ended else self.say("Nothing was measured yet.")

    async def _begin(self) -> None:
        self.ready, self.newest = True, {}
        await self.refresh()

    async def refresh(self) -> None:
        self.charts.say_if_empty(self._nothing)
        if not self.ready:
            return
        if self.uid != self.job.summary.uid:  # it runs again, under its own name
            self.uid, self.newest = self.job.summary.uid, {}
            self.charts.run_method("clear")
        whole = not self.newest
        since = None if whole else max(self.newest.values()) - _STRAGGLE
        found = await self.context.ask(self.service.usage, self.key, since=since, run=self.run)
        found = [point for point in found if point.host not in self.newest or point.time > self.newest[point.host]]
        if whole and self.newest:
            return  # somebody else was quicker
        self.newest.update({point.host: point.time for point in sorted(found, key=lambda point: point.time)})
        self.charts.add(usage_panels(self.say, thinned(found) if whole else found), whole=whole)


def usage_panels(say: Words, points: Iterable[UsagePoint]) -> list[Panel]:
    cpu, memory = Panel("cpu", say("CPU (100 %: one core)"), "percent"), Panel("memory", say("Memory"), "bytes")
    received, sent = Panel("in", say("Network, received"), "rate"), Panel("out", say("Network, sent"), "rate")
    gpu, held = Panel("gpu", say("GPU"), "percent"), Panel("gpu-memory", say("GPU memory"), "bytes")
    for one in points:
        at = round(one.time.timestamp() * 1000)
        cpu.add(one.host, at, round(one.cpu_percent, 1))
        memory.add(one.host, at, one.memory_bytes)
        received.add(one.host, at, _whole(one.received_bytes_per_second))
        sent.add(one.host, at, _whole(one.sent_bytes_per_second))
        gpu.add(one.host, at, one.gpu_percent)
        held.add(one.host, at, one.gpu_memory_bytes)
    return [cpu, memory, received, sent, gpu, held]


def thinned(points: Sequence[UsagePoint]) -> list[UsagePoint]:
    """Every n-th moment and the last one."""
    moments = sorted({point.time for point in points})
    kept = {*moments[:: max(1, -(-len(moments) // _POINTS))], *moments[-1:]}
    return [point for point in points if point.time in kept]


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
