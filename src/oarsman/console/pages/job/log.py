"""What the job wrote: all of it or a part, live, and as a file."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from oarsman.console.pages.job.tab import Tab
from oarsman.console.parts.log_view import LogView
from oarsman.sdk.models import AttemptView

_ALL, _LAUNCHER = "all", "launcher"


class Log(Tab):
    name = "Logs"

    def build(self) -> None:
        self.wanted: dict[str, Any] = {}
        self.choices: dict[Any, Any] = {}
        with ui.row().classes("items-center w-full q-gutter-sm"):
            self._which()
            ui.space()
            self._how()
        self.view = LogView(self.guest.say, self.key, self._run).classes("w-full")
        self.link.props["href"] = self.view.download

    @property
    def _run(self) -> str:
        return f"{self.job.summary.uid}/{self.job.summary.attempt}"

    def _which(self) -> None:
        say = self.guest.say
        self.attempt = ui.select([], label=say("Attempt"), on_change=lambda e: self._change(attempt=e.value or None))
        self.attempt.props("outlined dense options-dense").classes("w-44")
        self.source = ui.select(self._sources(), value=_ALL, label=say("From"), with_input=True)
        self.source.props("outlined dense options-dense").classes("w-40")
        self.source.on_value_change(lambda e: self._from(e.value))
        self.rank = ui.number(say("Rank"), min=0, precision=0)
        self.rank.props("outlined dense clearable debounce=300").classes("w-28")
        self.rank.on_value_change(lambda e: self._change(rank=None if e.value is None else int(e.value)))
        ui.input(say("Search"), on_change=lambda e: self._change(search=e.value)).props(
            "outlined dense clearable debounce=300"
        )
        ui.checkbox(say("Only errors"), on_change=lambda e: self._change(stream="err" if e.value else None))

    def _how(self) -> None:
        say = self.guest.say
        ui.checkbox(say("Times"), on_change=lambda e: self.view.look(stamps=e.value))
        ui.checkbox(say("Wrap"), value=True, on_change=lambda e: self.view.look(wrap=e.value))
        self.link = ui.element("a").classes("oarsman-link").props("download")
        with self.link:
            ui.label(say("Download"))

    def _sources(self) -> dict[Any, str]:
        say = self.guest.say
        workers = {number: say("Worker {number}", number=number) for number in range(self.job.summary.workers)}
        return {_ALL: say("Everybody"), _LAUNCHER: say("Launcher only"), **workers}

    def _from(self, chosen: Any) -> None:
        self._change(launcher=chosen == _LAUNCHER, worker=chosen if isinstance(chosen, int) else None)

    def _change(self, **part: Any) -> None:
        self.wanted.update(part)
        self.view.only(**self.wanted)
        self.link.props["href"] = self.view.download

    def of_rank(self, rank: int) -> None:
        """Shows what one rank wrote; whatever else was asked for is kept, but for who wrote it."""
        self.source.set_value(_ALL)
        self.rank.set_value(rank)

    async def refresh(self) -> None:
        self.view.reads(self._run)
        self.attempt.set_visibility(len(self.job.attempts) > 1)
        attempts = {0: self.guest.say("Newest"), **{one.number: self._called(one) for one in self.job.attempts}}
        if attempts != self.attempt.options:
            chosen = self.attempt.value
            self.attempt.set_options(attempts, value=chosen if chosen in attempts else 0)
        if (sources := self._sources()) != self.source.options:
            self.source.set_options(sources, value=self.source.value if self.source.value in sources else _ALL)

    def _called(self, one: AttemptView) -> str:
        return f"{one.number} · {self.guest.say(one.outcome or 'Running')}"
