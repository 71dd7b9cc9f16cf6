"""A YAML editor that marks mistakes at their lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nicegui import events, ui

from oarsman.console.parts.steady import ELEMENTS, Steady
from oarsman.sdk.models import ProblemView

Edit = Callable[[str], str]


class YamlEditor(Steady, ui.codemirror, component="yaml_editor.js", esm=ELEMENTS):
    def __init__(self, text: str, label: str, typed: Callable[[str], Any] | None = None) -> None:
        self._known = text
        self._unseen: list[tuple[int, Edit]] = []  # what was done to the text, until the reader's has it in it
        super().__init__(text, language="YAML", line_wrapping=True, indent="  ")
        self.heard(0)
        self._props["version"] = 0
        self.classes("oarsman-editor").props("role=group").props["aria-label"] = label
        if typed is None:
            self.disable()
        else:
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

    def complain(self, problems: Sequence[ProblemView], said: Callable[[str], str] = str) -> None:
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
