"""Patterns that users write: every one is compiled here, by an engine whose time grows with the text and no faster.

Python's own engine goes back and tries again: one pattern, or one line of a log, can hold the whole process for hours.
What only such engines can do (to repeat what a group matched, to look ahead or behind) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from oarsman.errors import UsageError
from oarsman.text.sentence import Text

LONGEST: Final = 500  # characters; nobody reads a longer one, and each costs time per letter of a log
_MEMORY: Final = 1 << 20  # bytes of one compiled pattern: a{0,1000} written in a few letters is large, and slow
# What the engine does not have, in the order in which it is looked for: how it is written, and what it is called.
_ONLY_ELSEWHERE: Final = (
    (re.compile(r"\\[1-9]|\(\?P="), Text("to repeat what a group matched (\\1) is not supported")),
    (re.compile(r"\(\?<?[=!]"), Text("to look ahead or behind, as (?=...) does, is not supported")),
    (re.compile(r"\(\?>|[*+?}]\+"), Text("to hold on to what was matched, as (?>...) and a++ do, is not supported")),
    (re.compile(r"\(\?\("), Text("to ask whether a group matched, as (?(1)...) does, is not supported")),
    (re.compile(r"\(\?[a-zA-Z]*[xuaL]"), Text("of the flags in (?...) only i, m, s and U are supported")),
    (re.compile(r"\\Z"), Text("\\Z is not supported; write \\z")),
)
# A path may hold bytes that are no text, which Python keeps as lone surrogates. The engine takes whole letters only, so
# each becomes one that nobody uses.
_STAND_INS: Final = {code: 0x100000 + code for code in range(0xD800, 0xE000)}


class Pattern:
    """A pattern that was compiled. Letters count as letters, \\d \\w \\s as in ASCII, $ is the end and nothing else."""

    __slots__ = ("_engines", "pattern")

    def __init__(self, pattern: str, engines: Any) -> None:
        self.pattern = pattern
        self._engines = engines

    @property
    def groups(self) -> int:
        return int(self._engines.groups)

    def fits(self, text: str) -> bool:
        """Whether it matches the whole text."""
        return self._engines.fullmatch(_letters(text)) is not None

    def first_groups(self, text: str) -> Iterator[str | None]:
        """What the first group is in every match, one after another."""
        for match in self._engines.finditer(_letters(text)):
            yield match[1]


def compiled(pattern: str, *, field: str, longest: int = LONGEST) -> Pattern:
    """Raises UsageError that names the field and says what is not supported, or what is wrong."""
    import re2  # late: most calls of the command have no pattern

    if len(pattern) > longest:
        wrong = Text("the pattern is longer than {most} characters", most=longest)
        raise UsageError(wrong, field=field)
    options = re2.Options()
    options.log_errors = False  # they are raised
    options.max_mem = _MEMORY
    options.dot_nl = True
    try:
        return Pattern(pattern, re2.compile(_letters(pattern), options))
    except re2.error as error:
        said = error.args[0].decode(errors="replace") if error.args else ""
        raise UsageError(_why(pattern, said), field=field) from error


def _why(pattern: str, said: str) -> str:
    if said.startswith("pattern too large"):
        return Text("the pattern is too large: it repeats too much")
    bare = re.sub(r"\\[^1-9Z]", "", pattern)
    for form, why in _ONLY_ELSEWHERE:
        if form.search(bare):
            return Text("not a pattern that can be used here: {why}", why=why)
    return Text("not a pattern that can be used here: {why}", why=said)


def _letters(text: str) -> str:
    return text if text.isascii() else text.translate(_STAND_INS)
