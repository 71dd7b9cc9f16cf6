"""Inputs that are typed in while the server answers: an answer to an older text never overwrites a newer one.

The browser counts the reader's changes and sends the count with each; the server says with each value how many it
knows of. A value that knows of fewer than were made is ignored. The YAML editor marks mistakes at their lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import nicegui
from nicegui import events, ui
from nicegui.elements.mixins.value_element import ValueElement

from oarsman.service.models import ProblemView

# The scripts of these elements build on those of NiceGUI's own.
ELEMENTS = {"nicegui-elements": str(Path(nicegui.__file__).parent / "elements")}


class Steady(ValueElement[Any]):
    """What the elements have in common: they remember how many of the reader's changes were heard of."""

    def heard(self, edits: int) -> None:
        with self._props.suspend_updates():
            self._props["known"] = edits


class _SteadyField(Steady):
    VALUE_PROP = "value"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.heard(0)

    def _event_args_to_value(self, e: events.GenericEventArguments) -> Any:
        self.heard(e.args["edits"])
        return super()._event_args_to_value(replace(e, args=e.args["text"]))


class TextField(_SteadyField, ui.input, component="steady_field.js", esm=ELEMENTS):
    """One line."""


class TextArea(_SteadyField, ui.textarea, component="steady_field.js", esm=ELEMENTS):
    """As many lines as are typed."""


class NumberField(_SteadyField, ui.number, component="steady_field.js", esm=ELEMENTS):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        assert self.component is not None
        self.tag = self.component.tag  # NiceGUI's own has no script

    def _handle_value_change(self, value: Any) -> None:
        super()._handle_value_change(value)
        if self._send_update_on_value_change:
            self.run_method("updateValue")  # also where the server says the same as the last time


Edit = Callable[[str], str]


class YamlEditor(Steady, ui.codemirror, component="yaml_editor.js", esm=ELEMENTS):
    def __init__(self, text: str, label: str, typed: Callable[[str], Any]) -> None:
        self._known = text
        self._unseen: list[tuple[int, Edit]] = []  # what was done to the text, until the reader's has it in it
        super().__init__(text, language="YAML", line_wrapping=True, indent="  ")
        self.heard(0)
        self._props["version"] = 0
        self.classes("oarsman-editor").props["label"] = label
        self.on_value_change(lambda event: self._changed(event, typed))

    def show(self, text: str, again: Edit) -> None:
        """Put a text in without being told that it changed; where it did comes into view.

        `again` does the same to a text that the reader goes on with before this one is seen."""
        before, self._known = self._known, text
        if self.value != text:
            self._props["version"] += 1
            self._unseen.append((self._props["version"], again))
            self.value = text
            self.update()
            self.reveal_line(_first_change(before, text))

    def complain(self, problems: Sequence[ProblemView], said: Callable[[str], str]) -> None:
        lines = len(self.value.splitlines()) or 1
        found: dict[int, list[str]] = {}
        for problem in problems:
            if problem.line:
                found.setdefault(min(problem.line, lines), []).append(said(problem.message))
        self.decorations = [{"kind": "line", "line": line, "class": "oarsman-mistake"} for line in found]
        self.line_tooltips = {line: "\n".join(messages) for line, messages in found.items()}
        self.update()  # also where nothing changed: the reader may have typed past what was said before

    def _event_args_to_value(self, e: events.GenericEventArguments) -> str:
        """What was typed, and with it what was done to the text meanwhile."""
        self.heard(e.args["edits"])
        self._unseen = [(version, edit) for version, edit in self._unseen if version > e.args["seen"]]
        text: str = e.args["text"]
        for _, edit in self._unseen:
            text = edit(text)
        if text != e.args["text"]:
            self.update()
        return text

    def _changed(self, event: events.ValueChangeEventArguments[Any], typed: Callable[[str], Any]) -> None:
        if event.value != self._known:
            self._known = event.value
            typed(event.value)


def _first_change(before: str, after: str) -> int:
    """The first line that differs, counted from 1."""
    old, new = before.splitlines(), after.splitlines()
    same = next((line for line, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None)
    return max(1, min(len(old), len(new)) if same is None else same + 1)
