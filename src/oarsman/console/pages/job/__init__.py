"""One job: what it is, how far it is, why it failed, what it wrote. One file per tab."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from fastapi import Request
from nicegui import events, ui

from oarsman.console.console import Console
from oarsman.console.pages import shell
from oarsman.console.pages.context import PageContext
from oarsman.console.pages.job.actions import Actions
from oarsman.console.pages.job.ranks import RanksTab
from oarsman.console.pages.job.tabs import Events, Log, Manifest, MetricsTab, Tab, Usage
from oarsman.console.parts import words
from oarsman.console.parts.charts import timeline
from oarsman.console.parts.widgets import STATES, said, state_badge
from oarsman.console.parts.words import Words
from oarsman.errors import ForbiddenError, ManifestError, NotFoundError, OarsmanError
from oarsman.manifest import form
from oarsman.service.models import AttemptView, CauseView, JobView
from oarsman.status.words import ENDED
from oarsman.text.catalogue import N_


class SummaryTab(Tab):
    name = N_("Summary")

    def build(self) -> None:
        self.place = ui.column().classes("w-full items-stretch")
        self.shown: object = None

    async def refresh(self) -> None:
        found = (list(self._facts()), self.job.timeline, self.job.attempts, self.job.summary.state)
        if found == self.shown:
            return
        self.shown = found
        self.place.clear()
        with self.place:
            ending = STATES.get(self.job.summary.state, ("", ""))[1] if self.ended else "is-reached"
            timeline(self.context.say, self.job.timeline, ending=ending)
            self._draw_facts()
            if len(self.job.attempts) > 1:
                self._attempts()

    def _facts(self) -> Iterator[tuple[str, str]]:
        job, say = self.job.summary, self.context.say
        yield say("Description"), job.description
        yield say("Owner"), job.owner
        yield say("Where"), say.engine(job.engine)
        yield say("Machines"), ", ".join(dict.fromkeys(self.job.machines.values()))
        yield say("Type"), f"{job.implementation}, {job.api_version}"
        yield say("Workers"), self._workers()
        command, environment = self._launch()
        yield say("Launch command"), command
        yield say("Environment"), environment
        yield say("Slots per worker"), str(job.slots_per_worker)
        yield say("Ranks"), str(job.ranks) if job.ranks is not None else ""
        yield say("Resources"), words.resources(say, job)
        yield say("Priority"), str(job.priority) if job.priority else ""
        yield say("Place in the queue"), str(job.queue_position or "")
        yield say("Created"), words.moment(job.created)
        yield say("Folder"), self.job.folder or ""

    def _workers(self) -> str:
        job = self.job.summary
        if self.ended:
            return str(job.workers)
        return self.context.say("{ready} of {count} ready", ready=job.workers_ready, count=job.workers)

    def _launch(self) -> tuple[str, str]:
        """The launch command and the environment, as the manifest says them."""
        try:
            values = form.values(form.document(self.job.manifest))
        except ManifestError:
            return "", ""
        return shlex.join([*values["command"], *values["args"]]), values["environment"]

    def _draw_facts(self) -> None:
        with ui.element("dl").classes("oarsman-card oarsman-facts"):
            for name, value in self._facts():
                if value:
                    with ui.element("dt"):
                        ui.label(name)
                    with ui.element("dd"):
                        ui.label(value)

    def _attempts(self) -> None:
        with ui.column().classes("oarsman-card w-full"):
            ui.label(self.context.say("Attempts")).classes("text-subtitle1")
            with ui.element("ol").classes("oarsman-attempts"):
                for attempt in self.job.attempts:
                    with ui.element("li"), ui.row().classes("items-baseline"):
                        self._attempt(attempt)

    def _attempt(self, attempt: AttemptView) -> None:
        say = self.context.say
        state_badge(say, attempt.outcome or "Running")
        ui.label(words.moment(attempt.started)).classes("oarsman-note")
        ui.label(words.duration(attempt.started, attempt.ended)).classes("oarsman-note")
        if attempt.workers is not None:
            ui.label(say("{count} workers", count=attempt.workers)).classes("oarsman-note")
        if attempt.cause is not None:
            said(say, attempt.cause.summary)


_LOOKS_EVERY = 3.0  # seconds, at what changes while the job does not
_FIRST = "Logs"  # what most come for


def register(console: Console) -> None:
    @shell.page(console, "/jobs/{namespace}/{name}", with_query=True)
    async def page(context: PageContext, request: Request) -> None:
        key = shell.key_of(request)
        try:
            job = await context.ask(context.request_context.service.job, key)
        except (NotFoundError, ForbiddenError) as error:
            said(context.say, error.message).classes("oarsman-card")
            return
        await _Page(context, key, job).show(request.query_params.get("tab", ""))


class _Page:
    def __init__(self, context: PageContext, key: str, job: JobView) -> None:
        self.context = context
        self.key = key
        self.job = job
        self.log, self.ranks = Log(context, key, job), RanksTab(context, key, job)
        self.ranks.on_pick = self._log_of
        others = (kind(context, key, job) for kind in (Usage, MetricsTab, Events, Manifest))
        self.tabs: dict[str, Tab] = {
            tab.name: tab for tab in (SummaryTab(context, key, job), self.ranks, self.log, *others)
        }

    async def show(self, wanted: str) -> None:
        say = self.context.say
        self.firm = ui.element("div")  # what a handler says or opens goes here: the head is drawn anew at any moment
        self.actions = Actions(self.context, self.key, self.firm, self.refresh)
        self.head = ui.column().classes("w-full items-stretch")
        self.drawn: object = None
        with ui.tabs().props("dense no-caps align=left outside-arrows mobile-arrows").classes("w-full") as bar:
            for name in self.tabs:
                ui.tab(name, label=say(name))
        self.open = wanted if wanted in self.tabs else _FIRST
        self.panels = ui.tab_panels(bar, value=self.open, on_change=self._turned, animated=False)
        with self.panels.classes("w-full bg-transparent").props("keep-alive"):
            for name, tab in self.tabs.items():
                with ui.tab_panel(name).classes("q-pa-none"):
                    tab.build()
        self._head()
        await self._look()
        self.context.on_changes(self.refresh, only=self.key)
        ui.timer(_LOOKS_EVERY, self._time_passed, immediate=False)

    # -- what is new -----------------------------------------------------------------------------------
    async def refresh(self) -> None:
        try:
            found = await self.context.ask(self.context.request_context.service.job, self.key)
        except NotFoundError:
            if not self.actions.busy:
                ui.navigate.to("/jobs")
            return
        if found != self.job:
            self.job = found
            for tab in self.tabs.values():
                tab.job = found
            self._head()
            await self._look()

    async def _look(self) -> None:
        """The open tab shows what is new; others do so when they are opened."""
        try:
            await self.tabs[self.open].refresh()
        except NotFoundError:
            return  # it is gone: the next look at the job itself says so
        except OarsmanError as error:
            with self.firm:
                ui.notify(self.context.say.of(error.message), type="warning")

    async def _time_passed(self) -> None:
        if self.job.summary.state in ENDED:
            return
        self.lasted.set_text(self._lasted())
        if self.tabs[self.open].follows:
            await self._look()

    async def _turned(self, event: events.ValueChangeEventArguments[Any]) -> None:
        self.open = str(event.value)
        ui.navigate.history.replace(f"?tab={quote(self.open)}")
        await self._look()

    def _log_of(self, rank: int) -> None:
        self.log.of_rank(rank)
        self.panels.set_value(self.log.name)

    # -- the head --------------------------------------------------------------------------------------
    def _lasted(self) -> str:
        return words.duration(self.job.summary.started, self.job.summary.ended)

    def _head(self) -> None:
        job = self.job.summary
        drawn = (job.state, job.message, job.workers, job.started, job.ended, self.job.cause)
        self.actions.job = self.job
        if drawn == self.drawn:
            return
        self.drawn = drawn
        self.head.clear()
        with self.head:
            with ui.row().classes("items-center w-full"):
                ui.label(job.name).classes("text-h5 oarsman-title")
                state_badge(self.context.say, job.state)
                self.lasted = ui.label(self._lasted()).classes("oarsman-note")
                ui.space()
                if self.context.may_change:
                    self.actions.buttons(self.job)
            if self.job.cause is not None and job.state in ("Failed", "Stopped"):
                _cause(self.context.say, self.job.cause)
            elif job.message:
                said(self.context.say, job.message).classes("oarsman-note")


def _cause(say: Words, cause: CauseView) -> None:
    with ui.column().classes("oarsman-card oarsman-cause w-full"):
        said(say, cause.summary).classes("text-subtitle1")
        if cause.hint:
            said(say, cause.hint)
        if cause.last_lines:
            ui.label("\n".join(cause.last_lines)).classes("oarsman-lines")


__all__ = ["register"]
