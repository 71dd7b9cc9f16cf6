"""Where things stand: jobs by state, what is free, held and idle, and what failed in the last day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Request
from fastapi.responses import RedirectResponse
from nicegui import ui

from oarsman.console.pages import shell
from oarsman.console.pages.guest import Guest, welcome
from oarsman.console.parts import amounts
from oarsman.console.parts.state import state_badge
from oarsman.console.parts.style import STATES
from oarsman.errors import OarsmanError, UnauthenticatedError
from oarsman.sdk.models import AmountsView, Overview

if TYPE_CHECKING:
    from oarsman.console.server import Console


def register(console: Console) -> None:
    @ui.page("/")
    async def page(request: Request) -> RedirectResponse | None:
        try:
            guest = welcome(console, request)
        except UnauthenticatedError:
            return RedirectResponse("/login")
        with shell.frame(guest, "/", guest.say("Overview")):
            await _Overview(guest).show()
        return None


class _Overview:
    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.seen: Overview | None = None

    async def show(self) -> None:
        self.place = ui.column().classes("w-full items-stretch")
        await self.refresh()
        self.guest.on_changes(self.refresh)

    async def refresh(self) -> None:
        try:
            found = await self.guest.ask(self.guest.visit.desk.overview)
        except OarsmanError as error:
            ui.notify(error.message, type="negative")
            return
        if found == self.seen:
            return
        self.seen = found
        self.place.clear()
        with self.place:
            self._states(found)
            self._room(found)
            self._failures(found)

    def _states(self, found: Overview) -> None:
        with ui.row().classes("w-full q-gutter-md"):
            for state in STATES:
                if count := found.states.get(state, 0):
                    with ui.link(target="/jobs").classes("oarsman-card oarsman-tile"):
                        ui.label(str(count)).classes("text-h4")
                        state_badge(self.guest.say, state)
            if not found.states:
                ui.label(self.guest.say("There are no jobs yet.")).classes("oarsman-note")

    def _room(self, found: Overview) -> None:
        say = self.guest.say
        with ui.column().classes("oarsman-card w-full"):
            ui.label(say("Capacity")).classes("text-subtitle1")
            for name, total, held, used, shown in _resources(found):
                if not total:
                    continue
                with ui.row().classes("items-center w-full no-wrap"):
                    ui.label(say(name)).classes("w-24")
                    with ui.element("div").classes("oarsman-bar").props('role="img"'):
                        ui.element("div").classes("oarsman-bar-held").style(
                            f"width: {min(100.0, 100 * held / total):.1f}%"
                        )
                        if used is not None:
                            ui.element("div").classes("oarsman-bar-used").style(
                                f"width: {min(100.0, 100 * used / total):.1f}%"
                            )
                    ui.label(shown).classes("oarsman-note")
            ui.label(say("dark: really used; light: held by jobs")).classes("oarsman-note")

    def _failures(self, found: Overview) -> None:
        say = self.guest.say
        with ui.column().classes("oarsman-card w-full"):
            ui.label(say("Failures of the last day")).classes("text-subtitle1")
            if not found.failures:
                ui.label(say("None.")).classes("oarsman-note")
            for one in found.failures:
                with ui.row().classes("items-baseline w-full"):
                    ui.link(one.key, f"/jobs/{one.key}")
                    ui.label(amounts.moment(one.ended)).classes("oarsman-note")
                    ui.label(one.cause)


def _resources(found: Overview) -> list[tuple[str, float, float, float | None, str]]:
    total, held = found.total, found.held
    used = found.used or AmountsView()
    known = found.used is not None
    cpu = f"{held.cpus:g} / {total.cpus:g}" + (f" · {used.cpus:.1f}" if known else "")
    memory = f"{amounts.size(held.memory_bytes)} / {amounts.size(total.memory_bytes)}" + (
        f" · {amounts.size(used.memory_bytes)}" if known else ""
    )
    return [
        ("CPU", total.cpus, held.cpus, used.cpus if known else None, cpu),
        ("Memory", total.memory_bytes, held.memory_bytes, used.memory_bytes if known else None, memory),
        ("GPU", total.gpus, held.gpus, None, f"{held.gpus} / {total.gpus}"),
    ]
