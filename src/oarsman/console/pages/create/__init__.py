"""A new job: a form and its YAML side by side, each an editor of the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from fastapi import Request
from nicegui import background_tasks, events, ui

from oarsman.console.pages.create import controls, draft, outlook
from oarsman.console.pages.create.controls import Control
from oarsman.console.pages.create.draft import LARGEST, Draft, with_change
from oarsman.console.pages.create.outlook import Outlook
from oarsman.console.pages.page import Page, run_asked_for
from oarsman.console.parts.fields import TextField, YamlEditor
from oarsman.console.parts.widgets import facts, heading, note, page_head
from oarsman.errors import OarsmanError
from oarsman.service.models import Create, PreviewView, ProblemView, ServerInfo
from oarsman.text.catalogue import N_

_PAUSE = 0.3  # seconds without a change before the server looks at the text
_DRAFT = "oarsman-draft"  # where the browser keeps what is not submitted yet
_ANSWERS_WITHIN = 15.0  # seconds; the page is held until then
_FIRST = "command"  # the template for those who chose none
_STEPS = (N_("Basics"), N_("Run"), N_("Resources"), N_("Advanced"), N_("Review"))


class CreatePage(Page):
    path, title = "/create", N_("New job")

    async def show(self, request: Request) -> None:
        page_head(self.say(self.title))
        if not self.context.may_change:
            ui.label(self.say("You may look, and not start jobs.")).classes("oarsman-card")
            return
        self.controls: dict[str, Control] = {}
        self.first_folder = ""
        self.folder: TextField | None = None  # on engines that use the server's machine
        self.replace = False
        self._looking: asyncio.Task[None] | None = None
        asked = request.query_params
        template, earlier = asked.get("template"), asked.get("from")
        run = run_asked_for(asked)
        self.info = await self.context.ask(self.service.info)
        if self.info.refusal:  # before anybody fills in a form for nothing
            self._refusal(self.info)
        self.environments = await self._environments()
        self.first_text = text = await self._first_text(template, earlier, asked.get("name"), run)
        self.draft = Draft(text)
        self.firm = ui.element("div").classes("oarsman-nothing")
        await draft.show(self.context, self._begin_with)
        # What is typed before the server listens would be shown and not be known: until then nothing can be typed.
        with ui.element("fieldset").props("disabled").classes("oarsman-create") as form:
            with ui.column().classes("oarsman-create-form"):
                self._stepper()
            with ui.column().classes("oarsman-create-text"):
                self.editor = YamlEditor(text, self.say("YAML"), self._text_typed)
                note(self.say("In the editor Tab indents; Esc, then Tab, leaves it."))
                self.outlook = Outlook(self.say, self.editor, self.info.engine, self._mend)
        self._show_values()
        self._look_soon()
        ui.context.client.on_connect(lambda: form.props(remove="disabled"))
        if template is None and earlier is None:
            await self._offer_draft()

    def _refusal(self, info: ServerInfo) -> None:
        with ui.column().classes("oarsman-card w-full gap-0").props("role=alert"):
            ui.label(self.say("Your jobs cannot run here: {why}", why=self.say.of(info.refusal))).classes("is-bad")
            if info.refusal_hint:
                note(self.say.of(info.refusal_hint))

    async def _first_text(
        self, template: str | None, earlier: str | None, name: str | None, run: int | None = None
    ) -> str:
        try:
            if earlier:
                self.first_folder = (await self.context.ask(self.service.job, earlier, run=run)).folder or ""
                return await self.context.ask(draft.like, self.service, earlier, name, run)
            return await self.context.ask(draft.template, self.service, template or _FIRST, self.context.home)
        except OarsmanError as error:
            ui.notify(self.say.of(error.message), type="negative")
            return await self.context.ask(draft.template, self.service, _FIRST, self.context.home)

    async def _environments(self) -> Sequence[str]:
        try:
            found = await self.context.ask(self.service.environments)
        except OarsmanError:  # a cluster that has none, or does not show them: a name can still be written in the YAML
            return ()
        return [one.spec.name for one in found]

    async def _offer_draft(self) -> None:
        """What somebody left unfinished in this browser is not lost."""
        client = ui.context.client
        try:
            await client.connected(timeout=_ANSWERS_WITHIN)
            kept = await client.run_javascript(f"localStorage.getItem('{_DRAFT}')", timeout=_ANSWERS_WITHIN)
        except TimeoutError:  # somebody who has gone on to another page meanwhile
            return
        if kept and kept != self.draft.text:
            with self.firm, ui.row().classes("oarsman-card items-center w-full") as offer:
                ui.label(self.say("There is a draft that was not submitted."))

                def go_on() -> None:
                    self._begin_with(str(kept))
                    offer.delete()

                ui.button(self.say("Go on with it"), on_click=go_on).props("outline dense no-caps")

    def _begin_with(self, text: str) -> None:
        self.draft.take(text)
        self.editor.show(text, lambda _: text)
        self._show_values()
        self._look_soon()

    def _stepper(self) -> None:
        self.steps = steps = ui.stepper(keep_alive=True).props("flat header-nav animated=false")
        self.step: dict[str, ui.step] = {}
        self.step_of: dict[str, str] = {}  # field -> the step that asks for it
        with steps.classes("oarsman-steps w-full"):
            for position, name in enumerate(_STEPS):
                title = f"{position + 1}. {self.say(name)}"
                with ui.step(name, title=title).props("error-color=negative") as self.step[name]:
                    self.building = name
                    getattr(self, f"_{name.lower()}")()
                    with ui.stepper_navigation():
                        if position + 1 < len(_STEPS):
                            go_on = ui.button(self.say("Next"), on_click=steps.next).props("unelevated no-caps")
                            go_on.on("click", js_handler="oarsman.focusFirstField")
                        else:
                            self.submit = ui.button(self.say("Run"), icon="play_arrow", on_click=self._submit)
                            self.submit.props("unelevated no-caps")
                        if position:
                            ui.button(self.say("Back"), on_click=steps.previous).props("flat no-caps")

    def _questions(self, questions: Sequence[controls.Question], title: str = "") -> None:
        if title:
            heading(self.say(title))
        with ui.element("div").classes("oarsman-fields"):
            for question in questions:
                if not question.only_on or self.info.engine in question.only_on:
                    choices = None
                    if question.field == "environment":
                        choices = {"": self.say("not said"), **{name: name for name in self.environments}}
                    self.controls[question.field] = Control(
                        question, self.say, self._form_changed, self._look_soon, choices
                    )
                    self.step_of[question.field] = self.building

    def _basics(self) -> None:
        with ui.row().classes("items-center"):
            ui.label(self.say("{what}: {why}", what=self.say("Where"), why=self.say.engine(self.info.engine)))
            self.free = note("")
        self._questions(controls.BASICS)

    def _run(self) -> None:
        self._questions(controls.RUN)
        if self.info.engine in controls.HOSTS:
            title = self.say("Folder on this machine")
            self.folder = TextField(title, value=self.first_folder, on_change=self._look_soon).without_auto_validation()
            self.folder.props("outlined dense debounce=300 autocomplete=off spellcheck=false")
            self.folder.props["hint"] = (
                self.say("copied to hosts that do not share it; empty: the server's own")
                if self.info.engine == "ssh"
                else self.say("where the job starts; empty: the server's own")
            )
            self.folder.classes("oarsman-field is-wide")

    def _resources(self) -> None:
        self.arithmetic = note("").props("role=status")
        self._questions(controls.WORKERS, N_("Worker"))
        self._questions(controls.LAUNCHER, N_("Launcher"))

    def _advanced(self) -> None:
        self._questions(controls.ENDING, N_("End"))
        self._questions(controls.SCHEDULING, N_("Scheduling"))
        self._questions(controls.SURROUNDINGS, N_("Variables, volumes and labels"))

    def _review(self) -> None:
        self.review = ui.column().classes("w-full items-stretch")
        replace = ui.checkbox(self.say("Replace an ended job of the same name"))
        replace.bind_value_to(self, "replace").on_value_change(self._look_soon)

    def _form_changed(self, field: str, value: Any) -> str | None:
        complaint = self.draft.change(field, value)
        self.editor.show(self.draft.text, lambda text: with_change(text, field, value))
        if complaint is None:
            self._show_values(but=field)  # -np may have followed the workers
        self._look_soon()
        return self.say.refusal(complaint) if complaint is not None else None

    def _text_typed(self, text: str) -> None:
        if len(text) > LARGEST:
            ui.notify(self.say("The file is empty, or too large for a manifest."), type="warning")
            return
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

    def _look_soon(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._looking = background_tasks.create(self._look(), name="look at a draft")

    async def _look(self) -> None:
        await asyncio.sleep(_PAUSE)
        text = self.draft.text
        try:
            found = await self.context.ask(self.service.preview, self._wanted())
        except OarsmanError as error:
            self.outlook.trouble(self.say.of(error.message))
            return
        if text == self.draft.text:
            self._show(found)

    def _show(self, found: PreviewView) -> None:
        self.outlook.show(found, self.draft.values)
        self.arithmetic.set_text(self.outlook.arithmetic)
        self.free.set_text(self.outlook.free)
        mistaken = [control for control in self.controls.values() if control.mistaken]
        self.submit.set_enabled(not found.problems and not mistaken)
        complaints = {field: self.say.of(one.message) for one in found.problems for field in self._fields(one)}
        if found.fit is not None and not found.fit.ever:
            complaints |= dict.fromkeys(controls.too_large(found.fit, self.draft.values), self.say.of(found.fit.reason))
        warned = {field: self.say.of(one) for one in found.warnings if (field := controls.warned(one)) in self.controls}
        for field, control in self.controls.items():
            control.complain(complaints.get(field))
            control.warn(warned.get(field))
        wrong = {self.step_of[field] for field in (*complaints, *(control.question.field for control in mistaken))}
        for name, step in self.step.items():
            if step.props.get("error", False) != (name in wrong):
                step.props["error"] = name in wrong
        if self.folder is not None:
            self.folder.error = next((self.say.of(p.message) for p in found.problems if p.field == "folder"), None)
        self.review.clear()
        with self.review:
            if mistaken:
                labels = ", ".join(self.say(control.question.label) for control in mistaken)
                ui.label(self.say("Correct these fields first: {fields}", fields=labels)).classes("is-bad")
                for control in mistaken:
                    outlook.jump(self.say(control.question.label), partial(self._show_field, control.question.field))
            self.outlook.problems(found)
            if not (mistaken or found.problems):
                self._draw_review(found)
        if self.draft.text != self.first_text:  # one that nobody touched must not take the place of one that matters
            self.editor.client.run_javascript(f"localStorage.setItem('{_DRAFT}', {json.dumps(self.draft.text)})")

    def _draw_review(self, found: PreviewView) -> None:
        """Everything that was asked and answered, and then what follows from it."""
        folder = self.folder.value if self.folder is not None else ""
        for name in _STEPS:
            asked = [one for field, one in self.controls.items() if self.step_of[field] == name]
            answers = [(self.say(one.question.label), one.said(self.say)) for one in asked]
            answers += [(self.say("Folder"), folder)] if name == "Run" else []
            if any(value for _, value in answers):
                heading(self.say(name))
                facts(answers, of_value="oarsman-answer")
        heading(self.say("What follows from that"))
        self.outlook.review(found)

    def _fields(self, problem: ProblemView) -> Sequence[str]:
        """Those that a mistake in the text is about, of what the form asks for."""
        return [field for field in controls.mistaken(problem) if field in self.controls]

    def _mend(self, problem: ProblemView) -> None:
        if problem.line:
            self.editor.reveal_line(problem.line)
        if fields := self._fields(problem):
            self._show_field(fields[0])

    def _show_field(self, field: str) -> None:
        self.steps.set_value(self.step_of[field])
        ui.run_javascript(f"oarsman.focusField('{field}')")

    def _wanted(self) -> Create:
        folder = self.folder.value if self.folder is not None else None
        return Create(manifest=self.draft.text, folder=(folder or "").strip() or None, replace=self.replace)

    async def _submit(self, event: events.ClickEventArguments) -> None:
        wanted, name = self._wanted(), str(self.draft.values.get("name") or "")
        self.submit.set_enabled(False)
        with self.firm:
            for made in await self.context.attempt("submit", name, self.service.create, wanted):
                ui.run_javascript(f"localStorage.removeItem('{_DRAFT}')")
                ui.navigate.to(f"/jobs/{made.summary.key}")
        self.submit.set_enabled(True)
