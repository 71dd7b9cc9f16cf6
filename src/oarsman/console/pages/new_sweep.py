"""A new sweep: a manifest with places for values, the parameters, and what comes of them before it is begun."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import Request
from nicegui import background_tasks, ui
from nicegui.elements.mixins.validation_element import ValidationElement
from pydantic import ValidationError

from oarsman.console.pages.create import draft
from oarsman.console.pages.page import Page
from oarsman.console.parts import mistakes, widgets
from oarsman.console.parts.fields import NumberField, TextField, YamlEditor
from oarsman.console.parts.widgets import heading, note, said
from oarsman.errors import OarsmanError, UsageError
from oarsman.job.sweep import text_of, values_of
from oarsman.service.models import SweepPreview, SweepSpec
from oarsman.text.catalogue import N_
from oarsman.text.sentence import Text

PATH = "/sweeps/new"
_PAUSE = 0.3  # seconds without a change before the server looks at it
_FIRST = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: sweep
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: launcher
            command: [mpirun, sh, -c, 'echo "loss: {{lr}}"']
    Worker:
      replicas: 1
      template:
        spec:
          containers:
          - name: worker
"""


class NewSweepPage(Page):
    path, title = PATH, N_("New sweep")

    async def show(self, _: Request) -> None:
        widgets.page_head(self.say(self.title))
        if not self.context.may_change:
            ui.label(self.say("You may look, and not start jobs.")).classes("oarsman-card")
            return
        self.fields: dict[str, ValidationElement[Any]] = {}
        self.touched: set[str] = set()
        self.parameters: list[tuple[TextField, TextField]] = []
        self._looking: asyncio.Task[None] | None = None
        self.firm = ui.element("div").classes("oarsman-nothing")
        await draft.show(self.context, self._begin_with)
        # What is typed before the server listens would be shown and not be known: until then nothing can be typed.
        with ui.element("fieldset").props("disabled").classes("oarsman-create") as form:
            with ui.column().classes("oarsman-card items-stretch"):
                self._form()
            with ui.column().classes("oarsman-create-text"):
                self.editor = YamlEditor(_FIRST, self.say("YAML"), lambda _: self._look_soon())
                note(self.say("{{name}} becomes the value of that parameter; quote it where a number belongs."))
                self.wrong = ui.column().classes("oarsman-outlook").props("role=status aria-live=polite")
        ui.context.client.on_connect(lambda: form.props(remove="disabled"))
        self._look_soon()

    # -- the form ------------------------------------------------------------------------------------
    def _form(self) -> None:
        say = self.say
        self._add("name", TextField(say("Name")), say("lower-case letters, digits and '-'; starts with a letter"))
        heading(say("Parameters"))
        note(say("Every combination of their values is a point: a job of its own."))
        self.rows = ui.column().classes("w-full items-stretch")
        self.grid = ui.label("").classes("is-bad").props("role=alert")
        self._add_parameter("lr", "0.1, 0.01")
        ui.button(say("Another parameter"), icon="add", on_click=self._add_parameter).props(
            "flat dense no-caps"
        ).classes("self-start")
        heading(say("Results"))
        pattern = TextField(say("Metric"), placeholder="loss: ([0-9.]+)")
        self._add("metric", pattern, say("a regular expression; its first group is the number, the last match counts"))
        with ui.element("div").classes("oarsman-fields"):
            self._add("at_once", NumberField(say("Points at a time")), say("empty: as many as fit"))
            self._add("retries", NumberField(say("Retries of a point"), value=0))
        self.outlook = ui.column().classes("w-full items-stretch").props("role=status aria-live=polite")
        self.begin = (
            ui.button(say("Begin"), icon="play_arrow", on_click=self._begin)
            .props("unelevated no-caps")
            .classes("self-start")
        )

    def _add(self, field: str, element: Any, hint: str = "") -> None:
        element.props("outlined dense autocomplete=off spellcheck=false debounce=300").classes("oarsman-field")
        element.props["hint"] = hint
        element.without_auto_validation().on_value_change(self._look_soon)
        element.on_value_change(lambda: self.touched.add(field))
        self.fields[field] = element

    def _add_parameter(self, name: str = "", values: str = "") -> None:
        with self.rows, ui.row().classes("items-start no-wrap w-full") as row:
            pair = (TextField(self.say("Parameter"), value=name), TextField(self.say("Values"), value=values))
            for element, width in zip(pair, ("w-32", "col"), strict=True):
                element.without_auto_validation().on_value_change(self._look_soon).classes(width)
                element.props("outlined dense autocomplete=off spellcheck=false debounce=300")
            pair[1].props["hint"] = self.say("such as 0.1, 0.01 or 1..4")

            def remove() -> None:
                self.parameters.remove(pair)
                row.delete()
                self._look_soon()

            away = ui.button(icon="close", on_click=remove).props("flat round dense")
            away.props["aria-label"] = self.say("Remove")
        self.parameters.append(pair)
        self._look_soon()

    def _begin_with(self, text: str) -> None:
        self.editor.show(text, lambda _: text)
        self._look_soon()

    # -- what it amounts to --------------------------------------------------------------------------
    def _wanted(self) -> SweepSpec:
        """Raises ValidationError and UsageError."""
        grid: dict[str, Any] = {}
        for name, values in self.parameters:
            if not (name.value or values.value):
                continue
            if name.value in grid:
                raise UsageError(Text("{name} was given before", name=name.value), field="grid")
            grid[(name.value or "").strip()] = values_of(values.value.replace(", ", ",")) if values.value else []
        metric, at_once = self.fields["metric"].value, self.fields["at_once"].value
        return SweepSpec(
            name=self.fields["name"].value or "",
            manifest=self.editor.value,
            grid=grid,
            metric=metric or None,
            at_once=at_once if at_once is None else int(at_once),
            retries=int(self.fields["retries"].value or 0),
        )

    def _look_soon(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._looking = background_tasks.create(self._look(), name="look at a sweep")

    async def _look(self) -> None:
        await asyncio.sleep(_PAUSE)
        try:
            found = await self.context.ask(self.service.preview_sweep, self._wanted())
        except ValidationError as error:
            self._show(mistakes.by_field(self.say, error))
        except OarsmanError as error:
            self._show({error.field or "": self.say.of(error.message)})
        else:
            self._show({one.field: self.say.of(one.message) for one in reversed(found.problems)}, found)

    def _show(self, wrong: dict[str, str], found: SweepPreview | None = None) -> None:
        """`wrong`: by field; those of no field of the form are about the manifest, and stand below it."""
        for name, element in self.fields.items():
            told = wrong.pop(name, None)
            element.error = told if name in self.touched else None  # nobody is reproached with what they come to next
        self.grid.set_text(wrong.pop("grid", ""))
        self.wrong.clear()
        with self.wrong:
            for field, text in wrong.items():
                ui.label(self.say("{what}: {why}", what=field, why=text) if field else text).classes("is-bad")
        self.begin.set_enabled(found is not None and not found.problems)
        self.outlook.clear()
        if found is not None and not found.problems:
            with self.outlook:
                self._draw(found)

    def _draw(self, found: SweepPreview) -> None:
        say, shown = self.say, len(found.points)
        ui.label(say("1 point") if found.total == 1 else say("{count} points", count=found.total))
        if found.resumes:
            said(say, Text("This sweep exists; beginning it again resumes it.")).classes("is-wait")
        for warning in found.warnings:
            said(say, warning).classes("is-wait")
        titles = {"point": say("Point"), **{f"p{n}": name for n, name in enumerate(found.parameters)}}
        table = widgets.table(say, "point", titles, sortable=False).props("hide-pagination")
        values = [[text_of(point[name]) for name in found.parameters] for point in found.points]
        table.rows = [{"point": n, **{f"p{k}": one for k, one in enumerate(row)}} for n, row in enumerate(values)]
        if found.total > shown:
            note(say("and {count} more", count=found.total - shown))

    async def _begin(self) -> None:
        self.begin.set_enabled(False)
        with self.firm:
            wanted = self._wanted()
            for made in await self.context.attempt("begin sweep", wanted.name, self.service.create_sweep, wanted):
                ui.navigate.to(f"/sweeps/{made.key}")
        self.begin.set_enabled(True)
