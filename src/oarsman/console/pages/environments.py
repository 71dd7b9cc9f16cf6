"""Named sets of packages that jobs run in: what is in each, whether it is built, and how the build went."""

from __future__ import annotations

from fastapi import Request
from nicegui import ui
from pydantic import ValidationError

from oarsman.console.pages.page import Page
from oarsman.console.parts import mistakes
from oarsman.console.parts.widgets import (
    Part,
    answered,
    badge,
    heading,
    moment,
    note,
    page_head,
    said,
    submit_or_cancel,
)
from oarsman.errors import OarsmanError
from oarsman.service.models import EnvironmentSpec, EnvironmentView
from oarsman.text import units
from oarsman.text.catalogue import N_

_LOOK_EVERY = 1.5  # seconds, while something is being built
_BADGES = {
    N_("Waiting"): ("schedule", "is-wait"),
    N_("Building"): ("build", "is-busy"),
    N_("Ready"): ("check_circle", "is-good"),
    N_("Failed"): ("error", "is-bad"),
}
_PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
_IMAGE_NEEDED = "kube"
_FIELD = "outlined dense autocomplete=off"


class EnvironmentsPage(Page):
    path, title = "/environments", N_("Environments")

    async def show(self, _: Request) -> None:
        self.engine = (await self.context.ask(self.service.info)).engine
        self.found: list[EnvironmentView] = []
        self.firm = ui.element("div").classes("oarsman-nothing")
        about = self.say("A set of packages with a name: built once, then attached to any job.")
        with page_head(self.say(self.title), about):
            if self.context.may_change:
                new = ui.button(self.say("New environment"), icon="add", on_click=lambda: self._edit(None))
                new.props("unelevated no-caps")
        self.list = Part(ui.column().classes("w-full items-stretch"), self._draw)
        await self.refresh()
        ui.timer(_LOOK_EVERY, self._look_again)

    async def _look_again(self) -> None:
        """Only while something changes by itself."""
        if any(one.state in ("Waiting", "Building") for one in self.found):
            await self.refresh()

    async def refresh(self) -> None:
        try:
            self.found = list(await self.context.ask(self.service.environments))
        except OarsmanError as error:
            self.list.show(error)
        else:
            self.list.show(self.found)

    def _draw(self, found: list[EnvironmentView] | OarsmanError) -> None:
        if isinstance(found, OarsmanError):
            said(self.say, found.message).classes("oarsman-card")
            return
        if not found:
            with ui.column().classes("oarsman-card w-full"):
                ui.label(self.say("There are no environments yet."))
                ui.label("oarsman env build NAME -r requirements.txt").classes("oarsman-lines")
        for one in found:
            self._card(one)

    def _card(self, one: EnvironmentView) -> None:
        with ui.column().classes("oarsman-card w-full").props("role=article") as card:
            card.props["aria-label"] = one.spec.name
            with ui.row().classes("items-center w-full"):
                heading(one.spec.name)
                badge(self.say, one.state, _BADGES, _BADGES["Waiting"])
                note(one.spec.description)
                ui.space()
                self.button(self.say("Build log"), "article", lambda: self._log(one))
                if self.context.may_change:
                    self.button(self.say("Change"), "edit", lambda: self._edit(one))
                    question = self.say("Delete the environment {name}?", name=one.spec.name)
                    self.offer(self.say("Delete"), "delete", lambda: self._delete(one.spec.name), question, grave=True)
            if one.message:
                said(self.say, one.message).classes("is-bad" if one.state == "Failed" else "oarsman-note")
            with ui.row().classes("oarsman-note items-center"):
                for text in self._facts(one):
                    ui.label(text)
                moment(one.built or one.created)
            if one.packages:
                with ui.expansion(self._count(len(one.packages))).props("dense").classes("w-full"):
                    ui.label("\n".join(one.packages)).classes("oarsman-lines")

    def _count(self, packages: int) -> str:
        return self.say("1 package") if packages == 1 else self.say("{count} packages", count=packages)

    def _facts(self, one: EnvironmentView) -> list[str]:
        facts = [f"Python {one.python or one.spec.python}" if one.python or one.spec.python else "", one.spec.mpi or ""]
        facts += [one.spec.image or "", units.size(one.size_bytes) if one.size_bytes else ""]
        facts.append(one.owner)
        if one.used_by:
            facts.append(self.say("used by {count} jobs", count=len(one.used_by)))
        return [fact for fact in facts if fact]

    async def _log(self, one: EnvironmentView) -> None:
        name, after, ended = one.spec.name, 0, False

        async def read() -> None:
            nonlocal after, ended
            while not ended:
                found = await self.context.ask(self.service.environment_log, name, after=after)
                after, ended = found.after, found.ended and not found.text
                if found.text:
                    lines.push(found.text.rstrip("\n"))
                else:
                    break

        with self.firm, ui.dialog() as dialog, ui.card().classes("oarsman-wide-dialog"):
            heading(f"{name}: {self.say('Build log')}")
            lines = ui.log(max_lines=5000).classes("w-full oarsman-build-log")
            lines.props["aria-label"] = self.say("Build log")
            timer = ui.timer(_LOOK_EVERY, read)
            ui.button(self.say("Close"), on_click=dialog.close).props("flat no-caps")
        await answered(dialog)
        timer.deactivate()

    async def _delete(self, name: str) -> None:
        await self.context.attempt("delete environment", name, self.service.delete_environment, name)
        await self.refresh()

    async def _edit(self, one: EnvironmentView | None) -> None:
        spec = one.spec if one is not None else EnvironmentSpec.model_construct(name="")
        at_hand = self.say("the one at hand")
        with self.firm, ui.dialog().props("persistent") as dialog, ui.card().classes("oarsman-wide-dialog"):
            heading(spec.name or self.say("New environment"))

            def wrong_name(typed: str) -> str | None:
                taken = one is None and any(typed == other.spec.name for other in self.found)
                make.set_enabled(not taken)
                return self.say("there is an environment {name} already", name=typed) if taken else None

            name = ui.input(self.say("Name"), value=spec.name, validation=wrong_name).props(_FIELD)
            name.props["hint"] = self.say("lower-case letters, digits and '-'; starts with a letter")
            name.set_enabled(one is None)
            description = ui.input(self.say("Description"), value=spec.description).props(_FIELD)
            with ui.row().classes("w-full"):
                pythons, known = {"": at_hand, **{each: each for each in _PYTHONS}}, spec.python in _PYTHONS
                python = ui.select(pythons, label="Python", value=spec.python if known else "")
                python.props("outlined dense").classes("w-40")
                mpi = ui.select(
                    {"": at_hand, "openmpi": "Open MPI", "mpich": "MPICH"}, label="MPI", value=spec.mpi or ""
                )
                mpi.props("outlined dense").classes("w-40")
            image = ui.input(self.say("Image"), value=spec.image or "").props(_FIELD)
            image.props["hint"] = self.say("the image of the jobs, which builds it")
            image.set_visibility(self.engine == _IMAGE_NEEDED)
            requirements = ui.textarea(self.say("Requirements"), value=spec.requirements)
            requirements.props("outlined dense spellcheck=false rows=8").classes("oarsman-code")
            requirements.props["hint"] = self.say("as in requirements.txt; a lock file is fine too")
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
                    await self.context.ask(self.service.put_environment, wanted)
                except ValidationError as error:
                    called = (("name", self.say("Name")), ("description", self.say("Description")))
                    wrong.set_text(mistakes.in_one_line(self.say, error, called))
                except OarsmanError as error:
                    await self.context.note("build environment", name.value, error.code)
                    wrong.set_text(self.say.refusal(error))
                else:
                    await self.context.note("build environment", name.value)
                    dialog.submit(True)

            make = submit_or_cancel(self.say, dialog, self.say("Build"), build).props("icon=build")
        with self.firm:
            if await answered(dialog):
                await self.refresh()
