"""A YAML editor that marks mistakes at their lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nicegui import events, ui

from oarsman.sdk.models import ProblemView


class YamlEditor(ui.codemirror):
    def __init__(self, text: str, label: str, typed: Callable[[str], Any] | None = None) -> None:
        self._known = text
        super().__init__(text, language="YAML", line_wrapping=True, indent="  ")
        self.classes("oarsman-editor").props("role=group").props["aria-label"] = label
        if typed is None:
            self.disable()
        else:
            self.on_value_change(lambda event: self._changed(event, typed))

    def show(self, text: str) -> None:
        """Put a text in without being told that it changed; where it did comes into view."""
        before, self._known = self._known, text
        if self.value != text:
            self.value = text
            self.reveal_line(_first_change(before, text))

    def complain(self, problems: Sequence[ProblemView], said: Callable[[str], str] = str) -> None:
        lines = len(self.value.splitlines()) or 1
        found: dict[int, list[str]] = {}
        for problem in problems:
            if problem.line:
                found.setdefault(min(problem.line, lines), []).append(said(problem.message))
        self.decorations = [{"kind": "line", "line": line, "class": "oarsman-mistake"} for line in found]
        self.line_tooltips = {line: "\n".join(messages) for line, messages in found.items()}

    def _changed(self, event: events.ValueChangeEventArguments[Any], typed: Callable[[str], Any]) -> None:
        if event.value != self._known:
            self._known = event.value
            typed(event.value)


def _first_change(before: str, after: str) -> int:
    """The first line that differs, counted from 1."""
    old, new = before.splitlines(), after.splitlines()
    same = next((line for line, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None)
    return max(1, min(len(old), len(new)) if same is None else same + 1)
