"""One job: what it is, how far it is, why it failed, what it wrote. One file per tab."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from fastapi import Request
from nicegui import events, ui

from oarsman.console.pages.job.actions import Actions
from oarsman.console.pages.job.head import Head, launch
from oarsman.console.pages.job.ranks import RanksTab
from oarsman.console.pages.job.runs import RunsTab, address
from oarsman.console.pages.job.tabs import Events, Log, Manifest, MetricsTab, Tab, Usage
from oarsman.console.pages.page import Page, key_of, run_asked_for
from oarsman.console.parts import words
from oarsman.console.parts.charts import timeline
from oarsman.console.parts.widgets import STATES, Part, Ticking, badge, facts, heading, moment, note, page_head, said
from oarsman.errors import ForbiddenError, NotFoundError, OarsmanError
from oarsman.service.models import AttemptView
from oarsman.status.words import ENDED
from oarsman.text.catalogue import N_


class SummaryTab(Tab):
    name = N_("Summary")

    def build(self) -> None:
        self.part = Part(ui.column().classes("w-full items-stretch"), lambda _: self._draw())

    async def refresh(self) -> None:
        self.part.show((list(self._facts()), self.job.timeline, self.job.attempts, self.job.summary.state))

    def _draw(self) -> None:
        ending = STATES.get(self.job.summary.state, ("", ""))[1] if self.ended else "is-reached"
        timeline(self.say, self.job.timeline, ending=ending)
        facts(self._facts(), "oarsman-card oarsman-facts")
        if len(self.job.attempts) > 1:
            with ui.column().classes("oarsman-card w-full"):
                heading(self.say("Attempts"))
                with ui.element("ol").classes("oarsman-attempts"):
                    for attempt in self.job.attempts:
                        with ui.element("li"), ui.row().classes("items-baseline"):
                            self._attempt(attempt)

    def _facts(self) -> Iterator[tuple[str, str | datetime]]:
        job = self.job.summary
        yield self.say("Description"), job.description
        yield self.say("Owner"), job.owner
        yield self.say("Where"), self.say.engine(job.engine)
        yield self.say("Machines"), ", ".join(dict.fromkeys(self.job.machines.values()))
        yield self.say("Type"), f"{self.job.mpi or job.implementation}, {job.api_version}"
        ready = self.say("{ready} of {count} ready", ready=job.workers_ready, count=job.workers)
        yield self.say("Workers"), str(job.workers) if self.ended else ready
        command, environment = launch(self.job)
        yield self.say("Launch command"), command
        yield self.say("Environment"), environment
        yield self.say("Slots per worker"), str(job.slots_per_worker)
        yield self.say("Ranks"), str(job.ranks) if job.ranks is not None else ""
        yield self.say("Resources"), words.resources(self.say, job)
        yield self.say("Priority"), str(job.priority) if job.priority else ""
        yield self.say("Number in the queue"), str(job.queue_position or "")
        yield self.say("Created"), job.created
        yield self.say("Folder"), self.job.folder or ""
        yield self.say("Limits"), self.say.of(self.job.limits)

    def _attempt(self, attempt: AttemptView) -> None:
        badge(self.say, words.outcome_of(self.job, attempt))
        if attempt.started is not None:
            moment(attempt.started).classes("oarsman-note")
        note(words.duration(self.say, attempt.started, attempt.ended))
        if attempt.workers is not None:
            note(self.say("{count} workers", count=attempt.workers))
        if attempt.cause is not None:
            said(self.say, attempt.cause.summary)


_LOOKS_EVERY = 3.0  # seconds, at what changes while the job does not
_FIRST = "Logs"  # what most come for


class JobPage(Page):
    path, with_query = "/jobs/{namespace}/{name}", True

    async def show(self, request: Request) -> None:
        self.key = key_of(request)
        self.run = run_asked_for(request.query_params)
        try:
            self.job = await self.context.ask(self.service.job, self.key, run=self.run)
        except (NotFoundError, ForbiddenError) as error:
            page_head(self.key)
            said(self.say, error.message).classes("oarsman-card")
            return
        about = (self.context, self.key, self.job, self.run)
        self.log, ranks = Log(*about), RanksTab(*about)
        ranks.on_pick = self._log_of
        self.log.asked = request.query_params
        tabs = (
            SummaryTab(*about),
            ranks,
            self.log,
            Usage(*about),
            MetricsTab(*about),
            Events(*about),
            RunsTab(*about),
            Manifest(*about),
        )
        self.tabs: dict[str, Tab] = {tab.name: tab for tab in tabs}
        self.firm = ui.element("div").classes("oarsman-nothing")
        self.actions = Actions(self.context, self.key, self.firm, self.refresh)
        self.head = Head(self.context, self.job, self.actions, self.run)
        Ticking(self.say)
        with ui.tabs().props("dense no-caps align=left outside-arrows mobile-arrows").classes("w-full") as bar:
            for name in self.tabs:
                ui.tab(name, label=self.say(name))
        wanted = request.query_params.get("tab", "")
        self.open = self.addressed = wanted if wanted in self.tabs else _FIRST
        self.panels = ui.tab_panels(bar, value=self.open, on_change=self._turned, animated=False)
        with self.panels.classes("w-full bg-transparent").props("keep-alive"):
            for name, tab in self.tabs.items():
                with ui.tab_panel(name).classes("q-pa-none"):
                    tab.build()
        ui.on("oarsman-back", self._went_back)
        self.head.show(self.job)
        await self._look()
        self.context.on_changes(self.refresh, only=self.key)
        ui.timer(_LOOKS_EVERY, self._time_passed, immediate=False)

    async def refresh(self) -> None:
        try:
            found = await self.context.ask(self.service.job, self.key, run=self.run)
        except NotFoundError:
            if not self.actions.busy:
                ui.navigate.to("/jobs" if self.run is None else address(self.key))
            return
        if found != self.job:
            self.job = found
            for tab in self.tabs.values():
                tab.job = found
            self.head.show(found)
            await self._look()

    async def _look(self) -> None:
        """The open tab shows what is new; others do so when they are opened."""
        try:
            await self.tabs[self.open].refresh()
        except NotFoundError:
            return  # it is gone: the next look at the job itself says so
        except OarsmanError as error:
            with self.firm:
                ui.notify(self.say.of(error.message), type="warning")

    async def _time_passed(self) -> None:
        if self.job.summary.state in ENDED:
            return
        if self.tabs[self.open].follows:
            await self._look()

    async def _turned(self, event: events.ValueChangeEventArguments[Any]) -> None:
        self.open = str(event.value)
        if self.open != self.addressed:
            self.addressed = self.open
            ui.run_javascript(f"oarsman.query({{tab: {self.open!r}}}, true)")
        await self._look()

    def _went_back(self, event: events.GenericEventArguments) -> None:
        self.addressed = event.args if event.args in self.tabs else _FIRST
        self.panels.set_value(self.addressed)

    def _log_of(self, rank: int) -> None:
        self.log.of_rank(rank)
        self.panels.set_value(self.log.name)
