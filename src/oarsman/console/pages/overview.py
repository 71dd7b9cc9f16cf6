"""Where things stand: jobs by state, what is free, held and idle, what waits and why, what failed in the last day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import Request
from nicegui import ui

from oarsman.console.pages.page import Page
from oarsman.console.parts import job_rows, words
from oarsman.console.parts.job_rows import jobs_in
from oarsman.console.parts.widgets import (
    STATES,
    HostAlarm,
    Part,
    Ticking,
    badge,
    heading,
    milliseconds,
    moment,
    note,
    said,
)
from oarsman.errors import OarsmanError
from oarsman.service.models import AmountsView, HostView, Overview, QueueEntry, RecentFailure
from oarsman.text import units
from oarsman.text.catalogue import N_

LOOK_AGAIN_SECONDS = 5.0  # what is really used changes though no job does
_MOST_WAITING = 5
_MOST_FAILURES = 20


class OverviewPage(Page):
    path, title = "/", N_("Overview")

    async def show(self, _: Request) -> None:
        self.trouble = ui.label("").classes("text-negative oarsman-trouble").props('role="alert"')
        self.alarm = HostAlarm(self.say)
        self.states = _part("", self._states)
        self.room = _part("oarsman-card", self._room)
        self.waiting = _part("oarsman-card", self._waiting)
        self.failures = _part("oarsman-card", self._failures)
        Ticking(self.say)
        await self.refresh()
        self.context.on_changes(self.refresh)
        ui.timer(LOOK_AGAIN_SECONDS, self.refresh, immediate=False)

    async def refresh(self) -> None:
        try:
            found, queue, hosts = await self.context.ask(self._look)
        except OarsmanError as error:
            self.trouble.set_text(self.say.of(error.message))
            return
        self.trouble.set_text("")
        self.alarm.of(hosts)
        self.states.show(found.states)
        self.room.show((found.total, found.held, found.used))
        self.waiting.show((len(queue), queue[:_MOST_WAITING]))
        self.failures.show(found.failures)

    async def _look(self) -> tuple[Overview, Sequence[QueueEntry], Sequence[HostView]]:
        return await self.service.overview(), list(await self.service.queue()), await self.service.hosts()

    def _states(self, states: dict[str, int]) -> None:
        with ui.row().classes("w-full oarsman-tiles"):
            for state in STATES:
                if count := states.get(state, 0):
                    with ui.link(target=jobs_in(state)).classes("oarsman-card oarsman-tile"):
                        ui.label(str(count)).classes("text-h4")
                        badge(self.say, state)
            if not states:
                with ui.row().classes("oarsman-card items-center w-full"):
                    ui.label(self.say("There are no jobs yet."))
                    if self.context.may_change:
                        ui.button(self.say("New job"), icon="add").props("unelevated no-caps href=/create")

    def _room(self, found: tuple[AmountsView, AmountsView, AmountsView | None]) -> None:
        say, engine = self.say, self.context.backend.jobs.place
        with ui.row().classes("items-baseline w-full"):
            heading(say("Capacity"))
            ui.space()
            ui.link(say("Hosts and queue"), "/hosts")
        shown: tuple[tuple[str, str, Callable[[float], str]], ...] = (
            (words.unit(say, engine), "cpus", units.number),
            (say("Memory"), "memory_bytes", units.size),
            (say("GPU"), "gpus", units.number),
        )
        if found[0] == AmountsView():
            note(say("No host takes jobs."))
            return
        for name, field, told in shown:
            total, held, used = (None if one is None else float(getattr(one, field)) for one in found)
            if not total or held is None:
                continue
            free = told(max(0, total - held))
            text = say("{held} of {total} held, {free} free", held=told(held), total=told(total), free=free)
            if used is not None:
                text += words.really(say, engine, field, told(used))
                text += say(", {idle} held but idle", idle=told(max(0.0, held - used)))
            with ui.element("div").classes("oarsman-room"):
                ui.label(name)
                with ui.element("div").classes("oarsman-bar").props('role="img"') as bar:
                    bar.props["aria-label"] = f"{name}: {text}"
                    for kind, amount in (("held", held), ("used", used)):
                        if amount is not None:
                            width = min(100.0, 100 * amount / total)
                            ui.element("div").classes(f"oarsman-bar-{kind}").style(f"width: {width:.1f}%")
                note(text)
        note(say("thin: really used; wide: held by jobs"))

    def _waiting(self, found: tuple[int, Sequence[QueueEntry]]) -> None:
        count, first = found
        heading(self.say("Waiting"))
        if not count:
            note(self.say("Nothing waits."))
        for one in first:
            with ui.element("div").classes("oarsman-entry"):
                ui.link(one.key, job_rows.address(one.key))
                ui.label("").classes("oarsman-note oarsman-figures").props(f"data-since={milliseconds(one.since)}")
                said(self.say, one.reason)
        if count > len(first):
            ui.link(self.say("and {count} more", count=count - len(first)), "/hosts")

    def _failures(self, failures: Sequence[RecentFailure]) -> None:
        heading(self.say("Failures of the last day"))
        if not failures:
            note(self.say("None."))
        for one in failures[:_MOST_FAILURES]:
            with ui.element("div").classes("oarsman-entry"):
                ui.link(one.key, job_rows.address(one.key))
                moment(one.ended).classes("oarsman-note oarsman-figures")
                said(self.say, one.cause)
        if len(failures) > _MOST_FAILURES:
            ui.link(self.say("and {count} more", count=len(failures) - _MOST_FAILURES), jobs_in("Failed"))


def _part(classes: str, draw: Callable[[Any], None]) -> Part:
    return Part(ui.column().classes(f"{classes} w-full items-stretch"), draw)
