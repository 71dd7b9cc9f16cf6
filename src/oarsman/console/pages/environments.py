"""Named sets of packages that jobs run in: what is in each, whether it is built, and how the build went."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Request
from nicegui import ui
from pydantic import ValidationError

from oarsman.console.console import Console
from oarsman.console.pages import shell
from oarsman.console.pages.context import PageContext
from oarsman.console.parts import words
from oarsman.console.parts.widgets import answered, said, sure
from oarsman.errors import OarsmanError
from oarsman.service.models import EnvironmentSpec, EnvironmentView
from oarsman.text import units
from oarsman.text.catalogue import N_

_LOOK_EVERY = 1.5  # seconds, while something is being built
_COLOURS = {
    N_("Waiting"): ("schedule", "is-wait"),
    N_("Building"): ("build", "is-busy"),
    N_("Ready"): ("check_circle", "is-good"),
    N_("Failed"): ("error", "is-bad"),
}
_PYTHONS = ("", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
_IMAGE_NEEDED = "kube"


def register(console: Console) -> None:
    @shell.page(console, "/environments", N_("Environments"))
    async def page(context: PageContext, _: Request) -> None:
        await _Environments(context).show()


class _Environments:
    def __init__(self, context: PageContext) -> None:
        self.context = context
        self.found: list[EnvironmentView] = []

    async def show(self) -> None:
        say = self.context.say
        self.engine = (await self.context.ask(self.context.request_context.service.info)).engine
        self.firm = ui.element("div")
        with ui.row().classes("items-center w-full"):
            ui.label(say("A set of packages with a name: built once, then attached to any job.")).classes(
                "oarsman-note"
            )
            ui.space()
            if self.context.may_change:
                ui.button(say("New environment"), icon="add", on_click=lambda: self._edit(None)).props(
                    "unelevated no-caps"
                )
        self.place = ui.column().classes("w-full items-stretch")
        await self.refresh()
        ui.timer(_LOOK_EVERY, self._look_again)

    async def _look_again(self) -> None:
        """Only while something changes by itself."""
        if any(one.state in ("Waiting", "Building") for one in self.found):
            await self.refresh()

    async def refresh(self) -> None:
        try:
            found = list(await self.context.ask(self.context.request_context.service.environments))
        except OarsmanError as error:
            self.place.clear()
            with self.place:
                said(self.context.say, error.message).classes("oarsman-card")
            return
        if found != self.found or not found:
            self.found = found
            self._draw()

    def _draw(self) -> None:
        say = self.context.say
        self.place.clear()
        with self.place:
            if not self.found:
                with ui.column().classes("oarsman-card w-full"):
                    ui.label(say("There are no environments yet."))
                    ui.label("oarsman env build NAME -r requirements.txt").classes("oarsman-lines")
            for one in self.found:
                self._card(one)

    def _card(self, one: EnvironmentView) -> None:
        say = self.context.say
        icon, colour = _COLOURS.get(one.state, _COLOURS["Waiting"])
        with ui.column().classes("oarsman-card w-full").props("role=article") as card:
            card.props["aria-label"] = one.spec.name
            with ui.row().classes("items-center w-full"):
                ui.label(one.spec.name).classes("text-subtitle1")
                with ui.element("span").classes(f"oarsman-state {colour}"):
                    ui.icon(icon).props('aria-hidden="true"')
                    ui.label(say(one.state))
                ui.label(one.spec.description).classes("oarsman-note")
                ui.space()
                self._buttons(one)
            if one.message:
                said(say, one.message).classes("is-bad" if one.state == "Failed" else "oarsman-note")
            with ui.row().classes("oarsman-note items-center"):
                for text in self._facts(one):
                    ui.label(text)
            if one.packages:
                with ui.expansion(say("{count} packages", count=len(one.packages))).props("dense").classes("w-full"):
                    ui.label("\n".join(one.packages)).classes("oarsman-lines")

    def _facts(self, one: EnvironmentView) -> list[str]:
        say = self.context.say
        facts = [f"Python {one.python or one.spec.python}" if one.python or one.spec.python else "", one.spec.mpi or ""]
        facts += [one.spec.image or "", units.size(one.size_bytes) if one.size_bytes else ""]
        facts += [one.owner, words.moment(one.built or one.created)]
        if one.used_by:
            facts.append(say("used by {count} jobs", count=len(one.used_by)))
        return [fact for fact in facts if fact]

    def _buttons(self, one: EnvironmentView) -> None:
        say = self.context.say

        def button(word: str, icon: str, act: Callable[[], Any]) -> None:
            ui.button(word, icon=icon, on_click=act).props("outline dense no-caps")

        button(say("Build log"), "article", lambda: self._log(one))
        if self.context.may_change:
            button(say("Change"), "edit", lambda: self._edit(one))
            button(say("Delete"), "delete", lambda: self._delete(one))

    # -- dialogs ---------------------------------------------------------------------------------------
    async def _log(self, one: EnvironmentView) -> None:
        say, name = self.context.say, one.spec.name
        after, ended = 0, False

        async def read() -> None:
            nonlocal after, ended
            while not ended:
                found = await self.context.ask(self.context.request_context.service.environment_log, name, after=after)
                after, ended = found.after, found.ended and not found.text
                if found.text:
                    lines.push(found.text.rstrip("\n"))
                else:
                    break

        with self.firm, ui.dialog() as dialog, ui.card().classes("oarsman-wide-dialog"):
            ui.label(f"{name}: {say('Build log')}").classes("text-subtitle1")
            lines = ui.log(max_lines=5000).classes("w-full oarsman-build-log").props(f'aria-label="{say("Build log")}"')
            timer = ui.timer(_LOOK_EVERY, read)
            ui.button(say("Close"), on_click=dialog.close).props("flat no-caps")
        await answered(dialog)
        timer.deactivate()

    async def _delete(self, one: EnvironmentView) -> None:
        say, name = self.context.say, one.spec.name
        with self.firm:
            if await sure(say, say("Delete the environment {name}?", name=name), say("Delete"), grave=True):
                service = self.context.request_context.service
                await self.context.attempt("delete environment", name, service.delete_environment, name)
                await self.refresh()

    async def _edit(self, one: EnvironmentView | None) -> None:
        say = self.context.say
        spec = one.spec if one is not None else None
        with self.firm, ui.dialog().props("persistent") as dialog, ui.card().classes("oarsman-wide-dialog"):
            ui.label(spec.name if spec is not None else say("New environment")).classes("text-subtitle1")
            wide = "outlined dense autocomplete=off"
            name = ui.input(say("Name"), value=spec.name if spec is not None else "").props(wide)
            name.props["hint"] = say("lower-case letters, digits and '-'; starts with a letter")
            name.set_enabled(spec is None)
            description = ui.input(say("Description"), value=spec.description if spec is not None else "").props(wide)
            with ui.row().classes("w-full"):
                python = (
                    ui.select(
                        {each: each or say("the one at hand") for each in _PYTHONS}, label="Python", value=_known(spec)
                    )
                    .props("outlined dense")
                    .classes("w-40")
                )
                mpi = (
                    ui.select(
                        {"": say("the one at hand"), "openmpi": "Open MPI", "mpich": "MPICH"},
                        label="MPI",
                        value=(spec.mpi if spec is not None else "") or "",
                    )
                    .props("outlined dense")
                    .classes("w-40")
                )
            image = ui.input(say("Image"), value=(spec.image if spec is not None else "") or "").props(wide)
            image.props["hint"] = say("the image of the jobs, which builds it")
            image.set_visibility(self.engine == _IMAGE_NEEDED)
            requirements = (
                ui.textarea(say("Requirements"), value=spec.requirements if spec is not None else "")
                .props("outlined dense spellcheck=false rows=8")
                .classes("oarsman-code")
            )
            requirements.props["hint"] = say("as in requirements.txt; a lock file is fine too")
            wrong = ui.label("").classes("is-bad").props("role=alert")

            async def build() -> None:
                try:
                    wanted = EnvironmentSpec(
                        name=name.value,
                        description=description.value or "",
                        requirements=requirements.value or "",
                        python=python.value or None,
                        mpi=mpi.value or None,
                        image=image.value or None,
                    )
                    await self.context.ask(self.context.request_context.service.put_environment, wanted)
                except ValidationError as error:
                    wrong.set_text("; ".join(f"{e['loc'][0]}: {e['msg']}" for e in error.errors()))
                except OarsmanError as error:
                    await self.context.request_context.note("build environment", name.value, error.code)
                    wrong.set_text(say.refusal(error))
                else:
                    await self.context.request_context.note("build environment", name.value)
                    dialog.submit(True)

            with ui.row():
                ui.button(say("Cancel"), on_click=lambda: dialog.submit(False)).props("flat no-caps")
                ui.button(say("Build"), icon="build", on_click=build).props("unelevated no-caps")
        with self.firm:
            if await answered(dialog):
                await self.refresh()


def _known(spec: EnvironmentSpec | None) -> str:
    return spec.python if spec is not None and spec.python in _PYTHONS else ""
