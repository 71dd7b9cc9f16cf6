"""What can be done to a job, each with the question it deserves."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

from nicegui import ui

from oarsman.console.pages.context import PageContext
from oarsman.console.parts.widgets import answered, sure
from oarsman.errors import ManifestError
from oarsman.manifest import load
from oarsman.service.models import Clone, JobView
from oarsman.status.words import ENDED

_NAME = r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"
_QUIET, _LOUD = "flat no-caps", "unelevated no-caps"


class Actions:
    """`firm` is a place that is not drawn anew: what a handler says or opens goes there. `changed` is called after."""

    def __init__(
        self, context: PageContext, key: str, firm: ui.element, changed: Callable[[], Awaitable[None]]
    ) -> None:
        self.context = context
        self.key = key
        self.firm = firm
        self.changed = changed
        self.busy = False  # while something is done to the job, it may be gone for a moment: it runs again
        self.job: JobView

    def buttons(self, job: JobView) -> None:
        self.job = job
        say, service, state = self.context.say, self.context.request_context.service, job.summary.state
        if state == "Deleting":
            return
        if state in ENDED:
            self._button(say("Run again"), "replay", self._rerun)
        else:
            if state == "Suspended":
                self._button(say("Resume"), "play_arrow", lambda: self._do("resume", service.resume))
            elif state != "Stopping":
                self._button(say("Suspend"), "pause", self._suspend)
            if job.summary.workers and state != "Stopping":
                self._button(say("Scale"), "open_in_full", self._scale)
            self._button(say("Stop"), "stop", self._stop)
        self._button(say("Clone"), "content_copy", self._clone)
        self._button(say("Delete"), "delete", self._delete, "color=negative")

    def _button(self, word: str, icon: str, act: Callable[[], Awaitable[object]], more: str = "") -> None:
        async def within() -> None:
            with self.firm:
                await act()

        ui.button(word, icon=icon, on_click=within).props(f"outline dense no-caps {more}")

    async def _do(self, what: str, act: Callable[[str], Any], detail: str = "") -> bool:
        self.busy = True
        try:
            done = await self.context.attempt(what, f"{self.key}{detail}", act, self.key)
        finally:
            self.busy = False
        if done:
            await self.changed()
        return done

    # -- questions -------------------------------------------------------------------------------------
    async def _stop(self) -> None:
        say = self.context.say
        question = say("Stop {name} for good? Its log stays.", name=self.job.summary.name)
        if await sure(say, question, say("Stop"), grave=True):
            await self._do("stop", self.context.request_context.service.stop)

    async def _suspend(self) -> None:
        say = self.context.say
        question = say(
            "Suspend {name}? Its ranks end, and start from the beginning when it is resumed.",
            name=self.job.summary.name,
        )
        if await sure(say, question, say("Suspend")):
            await self._do("suspend", self.context.request_context.service.suspend)

    async def _rerun(self) -> None:
        say = self.context.say
        question = say(
            "Run {name} again? Logs and events of this run are deleted; a clone keeps them.", name=self.job.summary.name
        )
        if await sure(say, question, say("Run again")):
            await self._do("rerun", self.context.request_context.service.rerun)

    async def _delete(self) -> None:
        say, name = self.context.say, self.job.summary.name
        with ui.dialog() as dialog, ui.card():
            ui.label(say("Type the name of the job to delete it with its logs: {name}", name=name))
            typed = ui.input(say("Name")).props("outlined dense autofocus")
            with ui.row():
                ui.button(say("Cancel"), on_click=lambda: dialog.submit(False)).props(_QUIET)
                ui.button(say("Delete"), on_click=lambda: dialog.submit(True)).props(
                    f"{_LOUD} color=negative"
                ).bind_enabled_from(typed, "value", lambda value: value == name)
        if await answered(dialog) and await self.context.attempt(
            "delete", self.key, self.context.request_context.service.delete, self.key
        ):
            ui.navigate.to("/jobs")

    async def _scale(self) -> None:
        say, service = self.context.say, self.context.request_context.service

        async def scale() -> None:
            workers = int(number.value)
            if await self._do("scale", lambda key: service.scale(key, workers), f" to {workers}"):
                dialog.submit(True)

        with ui.dialog() as dialog, ui.card():
            number = ui.number(
                say("Number of workers"), value=self.job.summary.workers, min=1, max=100_000, precision=0
            )
            number.props("outlined dense autofocus").classes("w-full")
            ui.label(self._what_scaling_does()).classes("oarsman-note oarsman-explained")
            with ui.row():
                ui.button(say("Cancel"), on_click=lambda: dialog.submit(False)).props(_QUIET)
                ui.button(say("Scale"), on_click=scale).props(_LOUD).bind_enabled_from(number, "value", bool)
        await answered(dialog)

    def _what_scaling_does(self) -> str:
        say = self.context.say
        if self.job.summary.state == "Suspended":
            return say("The job starts with this number when it is resumed.")
        if _elastic(self.job):
            return say("The job is elastic: its launcher is told of workers that come and go.")
        return say(
            "The launcher of this job reads its hosts only when it starts: new workers are used by the next attempt, "
            "and taking away workers that carry ranks ends this one."
        )

    async def _clone(self) -> None:
        say, service, summary = self.context.say, self.context.request_context.service, self.job.summary
        made: list[JobView] = []

        async def clone() -> None:
            wanted = Clone(name=name.value or None)
            about = f"{self.key} as {wanted.name}" if wanted.name else self.key

            async def submit() -> None:
                made.append(await service.clone(self.key, wanted))

            if await self.context.attempt("clone", about, submit):
                dialog.submit(True)

        with ui.dialog() as dialog, ui.card():
            name = (
                ui.input(
                    say("New name"),
                    value=f"{summary.name[:200]}-copy",
                    validation=lambda typed: _wrong_name(typed, say),
                )
                .props("outlined dense autofocus")
                .classes("w-full")
            )
            with ui.row().classes("items-center"):
                ui.button(say("Cancel"), on_click=lambda: dialog.submit(False)).props(_QUIET)
                ui.button(say("Edit before it runs"), on_click=lambda: self._edit(name.value)).props("outline no-caps")
                ui.button(say("Run"), on_click=clone).props(_LOUD).bind_enabled_from(
                    name, "value", lambda typed: _wrong_name(typed, say) is None
                )
        if await answered(dialog) and made:
            ui.navigate.to(f"/jobs/{made[0].summary.key}")

    def _edit(self, name: str | None) -> None:
        asked = {"from": self.key, **({"name": name} if name else {})}
        ui.navigate.to(f"/create?{urlencode(asked, safe='/')}")


def _wrong_name(typed: str | None, say: Callable[[str], str]) -> str | None:
    """None: it can be a name; nothing at all lets the server choose one."""
    if not typed or re.fullmatch(_NAME, typed):
        return None
    return say("Small letters, digits, - and . between them.")


def _elastic(job: JobView) -> bool:
    try:
        return any(found.elastic for found in load(job.manifest))
    except ManifestError:  # taken when rules were laxer; then nobody can say
        return False
