"""Problems with positions, and how they are shown.

A user reads `file:line:column`, the field, one sentence, the line itself with a mark under the
place, and where possible what to write instead. What is shown comes from files of unknown origin:
nothing in it may move the cursor, colour the terminal or reverse the reading direction.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from dataclasses import replace

from oarsman.errors import Problem, did_you_mean
from oarsman.text import sentence
from oarsman.text.sentence import Text, visible

Path = tuple[str | int, ...]

_LINE_WIDTH = 100  # display cells of a source line that are shown
_LONGEST_VALUE = 60  # characters of a user's value repeated in a message


def render(problem: Problem, *, error: str = "error: ", warning: str = "warning: ", hint: str = "hint: ") -> str:
    """One problem as the lines a user sees, without a newline at the end. The words are the reader's."""
    place = f"{problem.source}:{problem.line}:{problem.column}" if problem.line else problem.source
    field = f"{problem.field}: " if problem.field else ""
    lines = [visible(f"{place}: {warning if problem.warning else error}{field}{problem.message}")]
    if problem.line and problem.snippet.strip():
        shown, cell = _window(problem.snippet, problem.column - 1)
        lines += [f"    {shown}", "    " + " " * cell + "^"]
    if problem.hint:
        lines.append(visible(f"    {hint}{problem.hint}"))
    return "\n".join(lines)


def quoted(value: object) -> str:
    """A user's value as a message repeats it: short, on one line, text in quotes."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return Text("a mapping")
    if isinstance(value, list | tuple):
        return Text("a list")
    text = str(value)
    if len(text) > _LONGEST_VALUE:
        text = text[: _LONGEST_VALUE - 1] + "…"
    text = visible(text)
    return sentence.quoted(text) if isinstance(value, str) else text


def quote_hint(value: object) -> str | None:
    """For a value that should be text, and would be in quotes."""
    if not isinstance(value, bool | int | float):
        return None
    return Text('quote it: "{text}"', text=str(value).lower() if isinstance(value, bool) else value)


def dotted(path: Path) -> str:
    """spec.containers[0].resources.limits["nvidia.com/gpu"]: the way users and tools write paths."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif step and all(c.isalnum() or c in "-_" for c in step):
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f'["{visible(step)}"]')
    return "".join(parts)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """A hint for a misspelled word, when something known is close enough to be meant."""
    lowered = {name.lower(): name for name in known}
    close = [word.lower()] if word.lower() in lowered else difflib.get_close_matches(word.lower()[:80], lowered)
    return did_you_mean(lowered[close[0]]) if close else None


# -- problems that other parts know by their words ------------------------------------------------------------
MORE_SLOTS = Text("set slotsPerWorker to {slots}, have {workers} workers, or give {launcher} --oversubscribe")
TOO_LITTLE_MEMORY = Text("{given} is less than 1 MiB: too little memory for any process")


def more_slots(hint: str | None) -> tuple[int, int] | None:
    """Of more ranks than slots: the slots per worker that would do, and the workers that would. Where there is no
    manifest, neither is called so."""
    if not isinstance(hint, Text) or hint.template != MORE_SLOTS:
        return None
    return int(hint.arguments["slots"]), int(hint.arguments["workers"])


def cannot_start(problems: Iterable[Problem]) -> list[Problem]:
    """Those of valid manifests with which no process starts: an API server judges by itself, hosts refuse them."""
    known = (p for p in problems if isinstance(p.message, Text) and p.message.template == TOO_LITTLE_MEMORY)
    return [replace(problem, warning=False) for problem in known]


def _cells(c: str) -> int:
    if unicodedata.combining(c):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(_cells(c) for c in text)


def _window(line: str, index: int) -> tuple[str, int]:
    """The part of the line around `index`, made harmless, and the display cell of the mark in it."""
    index = min(index, len(line))
    start = max(0, index - _LINE_WIDTH) if len(line) > _LINE_WIDTH else 0
    before = visible(line[start:index])
    after = visible(line[index : index + _LINE_WIDTH])
    if start == 0:
        indent = len(before) - len(before.lstrip(" "))
        before = before[indent:]
        if not before:
            after = after.lstrip(" ")
    cut_left = start > 0
    while _width(before) > _LINE_WIDTH * 2 // 3 and cut_left + _width(before) + _width(after) > _LINE_WIDTH:
        before, cut_left = before[1:], True
    if cut_left:
        before = "…" + before
    room = _LINE_WIDTH - _width(before)
    kept = ""
    used = 0
    for c in after:
        if used + _cells(c) > room:
            break
        kept += c
        used += _cells(c)
    if len(kept) < len(after) or index + _LINE_WIDTH < len(line):
        kept += "…"
    return before + kept, _width(before)
