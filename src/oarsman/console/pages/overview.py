"""Where things stand: what keeps failing, jobs by state, what runs and waits, what is free, what failed lately."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from fastapi import Request
from nicegui import ui

from oarsman.console.pages.page import Page
from oarsman.console.parts import job_rows, words
from oarsman.console.parts.charts import curve, sparkline
from oarsman.console.parts.job_rows import jobs_in
from oarsman.console.parts.widgets import (
    STATES,
    HostAlarm,
    Part,
    Ticking,
    ago,
    badge,
    heading,
    note,
    page_head,
    said,
    ticking,
)
from oarsman.errors import NotFoundError, OarsmanError
from oarsman.service.models import AmountsView, HostView, JobQuery, JobSummary, Overview, QueueEntry, RecentFailure
from oarsman.text import units
from oarsman.text.catalogue import N_

LOOK_AGAIN_SECONDS = 5.0  # what is really used changes though no job does
_USAGE_EVERY_SECONDS = 15.0  # a curve of the last hour hardly changes meanwhile
_MOST_RUNNING = 6
_MOST_WAITING = 5
_MOST_FAILURES = 20


_CURVE_OF = timedelta(hours=1)
_A_LOOP = 3  # attempts, the earlier ones of which failed
_MOST_LOOPS = 5
_GOES_ON = ("Restarting", "Running", "Queued", "Pending")


def keeps_failing(one: JobSummary) -> bool:
    """One that somebody suspends and resumes has many attempts, too, and no cause."""
    return one.attempt >= _A_LOOP and bool(one.cause)


class _Jobs(NamedTuple):
    loops: Sequence[JobSummary]
    running: Sequence[JobSummary]


class OverviewPage(Page):
    path, title = "/", N_("Overview")

    async def show(self, _: Request) -> None:
        page_head(self.say(self.title))
        self.trouble = ui.label("").classes("text-negative oarsman-trouble").props('role="alert"')
        self.curves: dict[str, list[float]] = {}  # key -> what it uses
        self.measured = 0.0  # when
        self.alarm = HostAlarm(self.say)
        self.loops = _part("oarsman-nothing", self._loops)
        self.states = _part("", self._states)
        with ui.element("div").classes("oarsman-board"):
            with ui.column():
                self.running = _part("oarsman-card", self._running)
                self.failures = _part("oarsman-card", self._failures)
            with ui.column():
                self.room = _part("oarsman-card", self._room)
                self.waiting = _part("oarsman-card", self._waiting)
        Ticking(self.say)
        await self.refresh()
        self.context.on_changes(self.refresh)
        ui.timer(LOOK_AGAIN_SECONDS, self.refresh, immediate=False)

    async def refresh(self) -> None:
        try:
            found, queue, hosts = await self.context.ask(self._look)
            jobs = await self.context.ask(self._look_at_jobs)
        except OarsmanError as error:
            self.trouble.set_text(self.say.of(error.message))
            return
        self.trouble.set_text("")
        self.alarm.of(hosts)
        self.loops.show(jobs.loops)
        self.states.show(found.states)
        self.running.show((found.states.get("Running", 0), jobs.running, dict(self.curves)))
        self.room.show((found.total, found.held, found.used))
        self.waiting.show((len(queue), queue[:_MOST_WAITING]))
        self.failures.show(found.failures)

    async def _look(self) -> tuple[Overview, Sequence[QueueEntry], Sequence[HostView]]:
        return await self.service.overview(), list(await self.service.queue()), await self.service.hosts()

    async def _look_at_jobs(self) -> _Jobs:
        newest = await self.service.jobs(JobQuery(states=("Running",), sort="-started", limit=_MOST_RUNNING))
        often = await self.service.jobs(JobQuery(states=_GOES_ON, sort="-attempt", limit=_MOST_LOOPS))
        if time.monotonic() - self.measured >= _USAGE_EVERY_SECONDS and self.context.backend.jobs.place != "kube":
            self.measured = time.monotonic()  # a cluster would begin to measure because it was asked
            self.curves = {one.key: await self._curve(one.key) for one in newest.items}
        return _Jobs([one for one in often.items if keeps_failing(one)], newest.items)

    async def _curve(self, key: str) -> list[float]:
        try:
            return curve(await self.service.usage(key, since=datetime.now(UTC) - _CURVE_OF))
        except NotFoundError:  # it went meanwhile
            return []

    def _loops(self, loops: Sequence[JobSummary]) -> None:
        if not loops:
            return
        with ui.column().classes("oarsman-card oarsman-cause is-bad w-full items-stretch").props("role=alert"):
            heading(self.say("Jobs that fail again and again"))
            for one in loops:
                with self._entry(one.key):
                    note(self.say("attempt {number}", number=one.attempt))
                    self._why(one.cause)

    @contextmanager
    def _entry(self, key: str) -> Iterator[None]:
        with ui.element("div").classes("oarsman-entry"):
            self._link(key)
            yield

    def _link(self, key: str) -> None:
        """Of jobs at home the name is enough."""
        name = key.removeprefix(f"{self.context.backend.jobs.home}/")
        ui.link(name, job_rows.address(key)).classes("oarsman-link")

    def _why(self, cause: str) -> None:
        """In one line, the error first; as it is in English at the pointer."""
        first, rest = words.error_first(self.say, cause)
        with ui.element("div") as line:
            ui.label(first)
            if rest:
                note(rest)
        line.props["title"] = cause

    def _running(self, found: tuple[int, Sequence[JobSummary], dict[str, list[float]]]) -> None:
        count, newest, curves = found
        heading(self.say("Running"))
        if not count:
            note(self.say("Nothing runs."))
        for one in newest:
            with ui.element("div").classes("oarsman-entry is-curve"):
                self._link(one.key)
                sparkline(self.say, curves.get(one.key, []))
                if one.started is not None:
                    ticking("since", one.started).classes("oarsman-note")
        if count > len(newest):
            ui.link(self.say("and {count} more", count=count - len(newest)), jobs_in("Running"))

    def _states(self, states: dict[str, int]) -> None:
        with ui.row().classes("w-full oarsman-tiles"):
            for state in STATES:
                if count := states.get(state, 0):
                    with ui.link(target=jobs_in(state)).classes("oarsman-card oarsman-tile"):
                        ui.label(str(count)).classes("oarsman-figure")
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
                text += say(", at least {idle} held but idle", idle=told(max(0.0, held - used)))
            with ui.element("div").classes("oarsman-room"):
                ui.label(name)
                with ui.element("div").classes("oarsman-bar").props('role="img"') as bar:
                    bar.props["aria-label"] = say("{what}: {why}", what=name, why=text)
                    for kind, amount in (("held", held), ("used", used)):
                        if amount is not None:
                            width = min(100.0, 100 * amount / total)
                            ui.element("div").classes(f"oarsman-bar-{kind}").style(f"width: {width:.1f}%")
                note(text)
        note(say("thin: used by all programs of the hosts, jobs or not; wide: held by jobs"))

    def _waiting(self, found: tuple[int, Sequence[QueueEntry]]) -> None:
        count, first = found
        heading(self.say("Waiting"))
        if not count:
            note(self.say("Nothing waits."))
        for one in first:
            with self._entry(one.key):
                ticking("since", one.since).classes("oarsman-note")
                said(self.say, one.reason)
        if count > len(first):
            ui.link(self.say("and {count} more", count=count - len(first)), "/hosts")

    def _failures(self, failures: Sequence[RecentFailure]) -> None:
        heading(self.say("Failures of the last day"))
        if not failures:
            note(self.say("None."))
        for one in failures[:_MOST_FAILURES]:
            with self._entry(one.key):
                ago(one.ended).classes("oarsman-note")
                self._why(one.cause)
        if len(failures) > _MOST_FAILURES:
            ui.link(self.say("and {count} more", count=len(failures) - _MOST_FAILURES), jobs_in("Failed"))


def _part(classes: str, draw: Callable[[Any], None]) -> Part:
    return Part(ui.column().classes(f"{classes} w-full items-stretch"), draw)
