"""Where things stand: jobs by state, what is free, held and idle, what waits and why, what failed in the last day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fastapi import Request
from nicegui import ui

from oarsman.console.console import Console
from oarsman.console.pages import shell
from oarsman.console.pages.context import PageContext
from oarsman.console.parts import job_rows, words
from oarsman.console.parts.job_rows import jobs_in
from oarsman.console.parts.widgets import STATES, Ticking, milliseconds, said, state_badge
from oarsman.console.parts.words import Words
from oarsman.errors import OarsmanError
from oarsman.service.models import AmountsView, Overview, QueueEntry, RecentFailure
from oarsman.text import units
from oarsman.text.catalogue import N_

LOOK_AGAIN_SECONDS = 5.0  # what is really used changes though no job does
_MOST_WAITING = 5
_MOST_FAILURES = 20


def register(console: Console) -> None:
    @shell.page(console, "/", N_("Overview"))
    async def page(context: PageContext, _: Request) -> None:
        await _Overview(context).show()


class _Part:
    """A part of the page, drawn anew only if what it shows has changed: links keep the focus of the keyboard."""

    def __init__(self, classes: str, draw: Callable[[Any], None]) -> None:
        self._place = ui.column().classes(f"{classes} w-full items-stretch")
        self._draw = draw
        self._seen: object = None

    def show(self, found: object) -> None:
        if found != self._seen:
            self._seen = found
            self._place.clear()
            with self._place:
                self._draw(found)


class _Overview:
    def __init__(self, context: PageContext) -> None:
        self.context = context

    async def show(self) -> None:
        self.trouble = ui.label("").classes("text-negative oarsman-trouble").props('role="alert"')
        self.states = _Part("", self._states)
        self.room = _Part("oarsman-card", self._room)
        self.waiting = _Part("oarsman-card", self._waiting)
        self.failures = _Part("oarsman-card", self._failures)
        Ticking()
        await self.refresh()
        self.context.on_changes(self.refresh)
        ui.timer(LOOK_AGAIN_SECONDS, self.refresh, immediate=False)

    async def refresh(self) -> None:
        try:
            found, queue = await self.context.ask(self._look)
        except OarsmanError as error:
            self.trouble.set_text(self.context.say.of(error.message))
            return
        self.trouble.set_text("")
        self.states.show(found.states)
        self.room.show((found.total, found.held, found.used))
        self.waiting.show((len(queue), queue[:_MOST_WAITING]))
        self.failures.show(found.failures)

    async def _look(self) -> tuple[Overview, Sequence[QueueEntry]]:
        service = self.context.request_context.service
        return await service.overview(), list(await service.queue())

    # -- its parts -------------------------------------------------------------------------------------
    def _states(self, states: dict[str, int]) -> None:
        say = self.context.say
        with ui.row().classes("w-full oarsman-tiles"):
            for state in STATES:
                if count := states.get(state, 0):
                    with ui.link(target=jobs_in(state)).classes("oarsman-card oarsman-tile"):
                        ui.label(str(count)).classes("text-h4")
                        state_badge(say, state)
            if not states:
                with ui.row().classes("oarsman-card items-center w-full"):
                    ui.label(say("There are no jobs yet."))
                    if self.context.may_change:
                        ui.button(say("New job"), icon="add").props("unelevated no-caps href=/create")

    def _room(self, found: tuple[AmountsView, AmountsView, AmountsView | None]) -> None:
        say = self.context.say
        with ui.row().classes("items-baseline w-full"):
            _title(say("Capacity"))
            ui.space()
            ui.link(say("Hosts and queue"), "/hosts")
        for one in _resources(say, self.context.request_context.backend.jobs.place, *found):
            with ui.element("div").classes("oarsman-room"):
                ui.label(one.name)
                with ui.element("div").classes("oarsman-bar").props('role="img"') as bar:
                    bar.props["aria-label"] = f"{one.name}: {one.words}"
                    ui.element("div").classes("oarsman-bar-held").style(f"width: {one.held:.1f}%")
                    if one.used is not None:
                        ui.element("div").classes("oarsman-bar-used").style(f"width: {one.used:.1f}%")
                ui.label(one.words).classes("oarsman-note")
        ui.label(say("thin: really used; wide: held by jobs")).classes("oarsman-note")

    def _waiting(self, found: tuple[int, Sequence[QueueEntry]]) -> None:
        say = self.context.say
        count, first = found
        _title(say("Waiting"))
        if not count:
            ui.label(say("Nothing waits.")).classes("oarsman-note")
        for one in first:
            with ui.element("div").classes("oarsman-entry"):
                ui.link(one.key, job_rows.address(one.key))
                ui.label("").classes("oarsman-note oarsman-figures").props(f"data-since={milliseconds(one.since)}")
                said(say, one.reason)
        if count > len(first):
            ui.link(say("and {count} more", count=count - len(first)), "/hosts")

    def _failures(self, failures: Sequence[RecentFailure]) -> None:
        say = self.context.say
        _title(say("Failures of the last day"))
        if not failures:
            ui.label(say("None.")).classes("oarsman-note")
        for one in failures[:_MOST_FAILURES]:
            with ui.element("div").classes("oarsman-entry"):
                ui.link(one.key, job_rows.address(one.key))
                ui.label(words.moment(one.ended)).classes("oarsman-note oarsman-figures")
                said(say, one.cause)
        if len(failures) > _MOST_FAILURES:
            ui.link(say("and {count} more", count=len(failures) - _MOST_FAILURES), jobs_in("Failed"))


def _title(text: str) -> None:
    ui.label(text).classes("text-subtitle1").props('role="heading" aria-level="2"')


class _Resource(NamedTuple):
    name: str
    held: float  # percent of all there is
    used: float | None
    words: str


def _resources(
    say: Words, engine: str, total: AmountsView, held: AmountsView, used: AmountsView | None
) -> list[_Resource]:
    shown: tuple[tuple[str, str, Callable[[float], str]], ...] = (
        (words.unit(say, engine), "cpus", units.number),
        (say("Memory"), "memory_bytes", units.size),
        (say("GPU"), "gpus", units.number),
    )
    found = []
    for name, field, told in shown:
        all_ = float(getattr(total, field))
        if not all_:
            continue
        has = float(getattr(held, field))
        uses = float(getattr(used, field)) if used is not None else None
        text = say(
            "{held} of {total} held, {free} free", held=told(has), total=told(all_), free=told(max(0, all_ - has))
        )
        if uses is not None:
            text += words.really(say, engine, field, told(uses))
            text += say(", {idle} held but idle", idle=told(max(0.0, has - uses)))
        found.append(_Resource(name, _percent(has, all_), None if uses is None else _percent(uses, all_), text))
    return found


def _percent(part: float, whole: float) -> float:
    return min(100.0, 100 * part / whole)
