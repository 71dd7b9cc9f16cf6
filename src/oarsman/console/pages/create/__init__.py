"""A new job: a form and its YAML side by side, each an editor of the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from fastapi import Request
from nicegui import background_tasks, events, ui

from oarsman.console.console import Console
from oarsman.console.pages import shell
from oarsman.console.pages.context import PageContext
from oarsman.console.pages.create import controls, draft
from oarsman.console.pages.create.controls import Control
from oarsman.console.pages.create.draft import Draft, with_change
from oarsman.console.pages.create.outlook import Outlook
from oarsman.console.parts.fields import TextField, YamlEditor
from oarsman.errors import OarsmanError
from oarsman.service.models import Create, JobView, PreviewView
from oarsman.text.catalogue import N_

_PAUSE = 0.3  # seconds without a change before the server looks at the text
_DRAFT = "oarsman-draft"  # where the browser keeps what is not submitted yet
_FIRST = "command"  # the template for those who chose none
_STEPS = (N_("Basics"), N_("Run"), N_("Resources"), N_("Advanced"), N_("Review"))
# The next question, not the top of the page, is what a keyboard wants after "Next".
_FOCUS = """() => setTimeout(() => {
    const fields = [...document.querySelectorAll('.oarsman-steps input, .oarsman-steps textarea')];
    const field = controls.find((one) => one.offsetParent !== null);
    if (field) field.focus();
}, 350)"""


class CreatePage:
    def __init__(self, context: PageContext) -> None:
        self.context = context
        self.draft = Draft("")
        self.controls: dict[str, Control] = {}
        self.first_folder = ""
        self.folder: TextField | None = None  # on engines that use the server's machine
        self.replace = False
        self._looking: asyncio.Task[None] | None = None

    async def show(self, template: str | None, earlier: str | None, name: str | None = None) -> None:
        service = self.context.request_context.service
        self.info = await self.context.ask(service.info)
        self.environments = await self._environments()
        self.first_text = text = await self._first_text(template, earlier, name)
        self.draft.take(text)
        self.firm = ui.element("div")
        await draft.show(self.context, self._begin_with)
        # What is typed before the server listens would be shown and not be known: until then nothing can be typed.
        with ui.element("fieldset").props("disabled").classes("oarsman-create") as form:
            with ui.column().classes("oarsman-create-form"):
                self._stepper()
            with ui.column().classes("oarsman-create-text"):
                self.editor = YamlEditor(text, self.context.say("YAML"), self._text_typed)
                ui.label(self.context.say("In the editor Tab indents; Esc, then Tab, leaves it.")).classes(
                    "oarsman-note"
                )
                self.outlook = Outlook(self.context.say, self.editor, self.info.engine)
        self._show_values()
        self._look_soon()
        ui.context.client.on_connect(lambda: form.props(remove="disabled"))
        if template is None and earlier is None:
            await self._offer_draft()

    # -- where the text comes from ---------------------------------------------------------------------
    async def _first_text(self, template: str | None, earlier: str | None, name: str | None) -> str:
        service = self.context.request_context.service
        try:
            if earlier:
                self.first_folder = (await self.context.ask(service.job, earlier)).folder or ""
                return await self.context.ask(draft.like, service, earlier, name)
            return await self.context.ask(draft.template, service, template or _FIRST)
        except OarsmanError as error:
            ui.notify(self.context.say.of(error.message), type="negative")
            return await self.context.ask(draft.template, service, _FIRST)

    async def _environments(self) -> Sequence[str]:
        try:
            found = await self.context.ask(self.context.request_context.service.environments)
        except OarsmanError:  # a cluster that has none, or does not show them: a name can still be written in the YAML
            return ()
        return [one.spec.name for one in found]

    async def _offer_draft(self) -> None:
        """What somebody left unfinished in this browser is not lost."""
        client = ui.context.client
        await client.connected(timeout=30)
        kept = await client.run_javascript(f"localStorage.getItem('{_DRAFT}')", timeout=30)
        if kept and kept != self.draft.text:
            with self.firm, ui.row().classes("oarsman-card items-center w-full") as offer:
                ui.label(self.context.say("There is a draft that was not submitted."))

                def go_on() -> None:
                    self._begin_with(str(kept))
                    offer.delete()

                ui.button(self.context.say("Go on with it"), on_click=go_on).props("outline dense no-caps")

    def _begin_with(self, text: str) -> None:
        self.draft.take(text)
        self.editor.show(text, lambda _: text)
        self._show_values()
        self._look_soon()

    # -- the form --------------------------------------------------------------------------------------
    def _stepper(self) -> None:
        say = self.context.say
        with (
            ui.stepper(keep_alive=True).props("flat header-nav animated=false").classes("oarsman-steps w-full") as steps
        ):
            for position, name in enumerate(_STEPS):
                with ui.step(name, title=say(name)):
                    getattr(self, f"_{name.lower()}")()
                    with ui.stepper_navigation():
                        if position + 1 < len(_STEPS):
                            ui.button(say("Next"), on_click=steps.next).props("unelevated no-caps").on(
                                "click", js_handler=_FOCUS
                            )
                        else:
                            self.submit = ui.button(say("Run"), icon="play_arrow", on_click=self._submit)
                            self.submit.props("unelevated no-caps")
                        if position:
                            ui.button(say("Back"), on_click=steps.previous).props("flat no-caps")

    def _questions(self, questions: Sequence[controls.Question], title: str = "") -> None:
        if title:
            ui.label(self.context.say(title)).classes("text-subtitle1")
        with ui.element("div").classes("oarsman-fields"):
            for question in questions:
                if not question.only_on or self.info.engine in question.only_on:
                    choices = self._environment_choices() if question.field == "environment" else None
                    self.controls[question.field] = Control(
                        question, self.context.say, self._form_changed, self._look_soon, choices
                    )

    def _environment_choices(self) -> dict[str, str]:
        return {"": self.context.say("not said"), **{name: name for name in self.environments}}

    def _basics(self) -> None:
        say = self.context.say
        with ui.row().classes("items-center"):
            ui.label(f"{say('Where')}: {say.engine(self.info.engine)}")
            self.free = ui.label("").classes("oarsman-note")
        self._questions(controls.BASICS)

    def _run(self) -> None:
        self._questions(controls.RUN)
        if self.info.engine in controls.HOSTS:
            self.folder = folder = TextField(
                self.context.say("Folder on this machine"), value=self.first_folder, on_change=self._look_soon
            )
            folder.props("outlined dense debounce=300 autocomplete=off spellcheck=false").without_auto_validation()
            folder.props["hint"] = self._folder_hint()
            folder.classes("oarsman-field is-wide")

    def _folder_hint(self) -> str:
        say = self.context.say
        if self.info.engine == "ssh":
            return say("copied to hosts that do not share it; empty: the server's own")
        return say("where the job starts; empty: the server's own")

    def _resources(self) -> None:
        self.arithmetic = ui.label("").classes("oarsman-note").props("role=status")
        self._questions(controls.WORKERS, N_("Worker"))
        self._questions(controls.LAUNCHER, N_("Launcher"))

    def _advanced(self) -> None:
        self._questions(controls.ENDING, N_("End"))
        self._questions(controls.SCHEDULING, N_("Scheduling"))
        self._questions(controls.SURROUNDINGS, N_("Surroundings"))

    def _review(self) -> None:
        self.review = ui.column().classes("w-full items-stretch")
        ui.checkbox(self.context.say("Take the place of an ended job of the same name")).bind_value_to(self, "replace")

    # -- form and text, each from the other ------------------------------------------------------------
    def _form_changed(self, field: str, value: Any) -> str | None:
        complaint = self.draft.change(field, value)
        self.editor.show(self.draft.text, lambda text: with_change(text, field, value))
        if complaint is None:
            self._show_values(but=field)  # -np may have followed the workers
        self._look_soon()
        return self.context.say.refusal(complaint) if complaint is not None else None

    def _text_typed(self, text: str) -> None:
        was_readable = self.draft.readable
        self.draft.take(text)
        if self.draft.readable:
            self._show_values()
            if not was_readable:
                for control in self.controls.values():
                    control.try_again()
        self._look_soon()

    def _show_values(self, but: str | None = None) -> None:
        for field, control in self.controls.items():
            if field != but:
                control.show(self.draft.values.get(field))

    # -- what the server says of it ----------------------------------------------------------------------
    def _look_soon(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._looking = background_tasks.create(self._look(), name="look at a draft")

    async def _look(self) -> None:
        await asyncio.sleep(_PAUSE)
        text = self.draft.text
        try:
            found = await self.context.ask(self.context.request_context.service.preview, self._wanted())
        except OarsmanError as error:
            self.outlook.trouble(self.context.say.of(error.message))
            return
        if text == self.draft.text:
            self._show(found)

    def _show(self, found: PreviewView) -> None:
        self.outlook.show(found, self.draft.values)
        self.arithmetic.set_text(self.outlook.arithmetic)
        self.free.set_text(self.outlook.free)
        mistaken = [control for control in self.controls.values() if control.mistaken]
        self.submit.set_enabled(not found.problems and not mistaken)
        for control in self.controls.values():
            control.complain(None)
        for problem in found.problems:
            field = next((to for end, to in controls.PLACES.items() if problem.field.endswith(end)), None)
            if field in self.controls:
                self.controls[field].complain(self.context.say.of(problem.message))
        self._show_folder(next((p.message for p in found.problems if p.field == "folder"), None))
        self.review.clear()
        with self.review:
            if mistaken:
                labels = ", ".join(self.context.say(control.question.label) for control in mistaken)
                ui.label(self.context.say("Mend first what is marked: {fields}", fields=labels)).classes("is-bad")
            else:
                self.outlook.review(found, self.draft.values, self.folder.value if self.folder is not None else "")
        if self.draft.text != self.first_text:  # one that nobody touched must not take the place of one that matters
            self.editor.client.run_javascript(f"localStorage.setItem('{_DRAFT}', {json.dumps(self.draft.text)})")

    def _show_folder(self, complaint: str | None) -> None:
        if self.folder is not None:
            self.folder.error = self.context.say.of(complaint) if complaint is not None else None

    def _wanted(self) -> Create:
        folder = self.folder.value if self.folder is not None else None
        return Create(manifest=self.draft.text, folder=(folder or "").strip() or None, replace=self.replace)

    async def _submit(self, event: events.ClickEventArguments) -> None:
        made: list[JobView] = []
        wanted = self._wanted()
        name = str(self.draft.values.get("name") or "")

        async def create() -> None:
            made.append(await self.context.request_context.service.create(wanted))

        self.submit.set_enabled(False)
        with self.firm:
            if await self.context.attempt("submit", name, create):
                ui.run_javascript(f"localStorage.removeItem('{_DRAFT}')")
                ui.navigate.to(f"/jobs/{made[0].summary.key}")
        self.submit.set_enabled(True)


def register(console: Console) -> None:
    @shell.page(console, "/create", N_("New job"))
    async def page(context: PageContext, request: Request) -> None:
        if not context.may_change:
            ui.label(context.say("You may look, and not start jobs.")).classes("oarsman-card")
            return
        asked = request.query_params
        await CreatePage(context).show(
            template=asked.get("template"), earlier=asked.get("from"), name=asked.get("name")
        )
