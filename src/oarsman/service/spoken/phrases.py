"""Phrases with gaps, and books of them in two languages.

A phrase is written like a format string: "needs {need:amount}, {free} of {whole} are free". A gap without a kind is
foreign text and is kept as it is; a kind says what may stand there and how it is translated; "?" allows it to be empty.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from oarsman.text.catalogue import joined

Translate = Callable[
    [str, int], str | None
]  # the text of a gap, and how deep it lies; None: that does not belong there

_PLAIN: Final = {"": ".", "word": r"\S", "n": r"[-\d.]", "plain": r"[\d.GiB ]"}  # kept as they are; of which characters


@dataclass(frozen=True, slots=True)
class Phrase:
    pattern: re.Pattern[str]
    kinds: tuple[tuple[str, str], ...]  # gap -> kind, of those that are translated
    chinese: tuple[tuple[str, str], ...]  # words, and the gap behind them

    def match(self, text: str, kinds: Mapping[str, Translate], depth: int) -> str | None:
        found = self.pattern.fullmatch(text)
        if found is None:
            return None
        values = found.groupdict()
        for gap, kind in self.kinds:
            translated = kinds[kind](values[gap], depth + 1) if values[gap] else ""
            if translated is None:
                return None
            values[gap] = translated
        return _set(self.chinese, values)


@cache
def phrase(english: str, chinese: str) -> Phrase:
    head, gaps = _parsed(english)
    return Phrase(
        pattern=re.compile(_pattern(head, gaps), re.DOTALL),
        kinds=tuple((gap.name, gap.kind) for gap in gaps if gap.kind not in _PLAIN),
        chinese=tuple((words, gap or "") for words, gap, _, _ in string.Formatter().parse(chinese)),
    )


@dataclass(slots=True)
class _Gap:
    name: str
    kind: str
    optional: bool
    behind: str  # the words up to the next gap


def _parsed(english: str) -> tuple[str, list[_Gap]]:
    head, gaps = "", list[_Gap]()
    for words, name, kind, _ in string.Formatter().parse(english):
        if gaps:
            gaps[-1].behind += words
        else:
            head += words
        if name is not None:
            kind = kind or ""
            gaps.append(_Gap(name, kind.removesuffix("?"), kind.endswith("?"), ""))
    return head, gaps


def _pattern(head: str, gaps: list[_Gap]) -> str:
    """Each gap but the last ends where the words behind it come first: nothing makes the search go back and forth."""
    parts = [re.escape(head)]
    for gap in gaps:
        last = gap is gaps[-1]
        many = ("*" if gap.optional else "+") + ("?" if gap.behind and not last else "")
        part = f"(?P<{gap.name}>{_PLAIN.get(gap.kind, '.')}{many}){re.escape(gap.behind)}"
        parts.append(part if last else f"(?>{part})")
    return "".join(parts)


def _set(chinese: tuple[tuple[str, str], ...], values: Mapping[str, str]) -> str:
    said = ""
    for words, gap in chinese:
        said = joined(said, words)
        said = joined(said, values[gap]) if gap else said
    return said


def _first_word(english: str) -> str:
    """Empty if a gap is part of it."""
    word, space, _ = english.partition("{")[0].partition(" ")
    return word if space else ""


class Book:
    """Phrases that can be looked up by what they begin with; the first that fits is taken.

    Each is compiled when it is first tried: the command says few of them.
    """

    def __init__(self, phrases: Mapping[str, str], kinds: Mapping[str, Translate]) -> None:
        self._kinds = kinds
        self._whole = {english: chinese for english, chinese in phrases.items() if "{" not in english}
        self._by_first: dict[str, list[tuple[str, str]]] = {}
        for english, chinese in phrases.items():
            if "{" in english:
                self._by_first.setdefault(_first_word(english), []).append((english, chinese))

    def __call__(self, text: str, depth: int) -> str | None:
        found = self._whole.get(text)
        return found if found is not None else next(self._matches(text, depth), None)

    def _matches(self, text: str, depth: int) -> Iterator[str]:
        for first in (text.partition(" ")[0], ""):
            for one in self._by_first.get(first, ()):
                translated = phrase(*one).match(text, self._kinds, depth)
                if translated is not None:
                    yield translated
