"""Recognises a sentence of the engines and says it in Chinese; what it does not know stays as it is."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from oarsman.service.spoken import (
    accounts,
    asking,
    cluster,
    environments,
    failures,
    hosts,
    inventory,
    jobs,
    machine,
    manifest,
    racks,
    room,
    ssh,
    sweeps,
    trust,
)
from oarsman.service.spoken.phrases import Book, Translate

_LONGEST: Final = 4096  # a message has at most 1024 characters; what is longer was not written by us
_DEEPEST: Final = 6  # sentences within sentences
_MOST_PARTS: Final = 12  # of a list of sentences
_FILES: Final = (
    jobs,
    room,
    racks,
    ssh,
    hosts,
    failures,
    machine,
    cluster,
    environments,
    manifest,
    sweeps,
    accounts,
    asking,
    trust,
    inventory,
)


@lru_cache(maxsize=4096)
def in_chinese(sentence: str) -> str:
    if len(sentence) > _LONGEST or not sentence.strip():
        return sentence
    return _known(sentence, 0) or sentence


@lru_cache(maxsize=1024)
def _known(text: str, depth: int) -> str | None:
    """None: this is nothing that an engine says."""
    if depth > _DEEPEST:
        return None
    return _sentences(text, depth) or _together(text, depth, all_known=True)


def _say(text: str, depth: int) -> str:
    """What may be a sentence of ours or anybody's."""
    return _known(text, depth) or text


def _each(text: str, depth: int) -> str | None:
    return _together(text, depth, all_known=False) or _say(text, depth)


def _together(text: str, depth: int, *, all_known: bool) -> str | None:
    """Sentences joined by semicolons, which some of them have themselves: the longest that is one is taken."""
    parts = text.split("; ")
    if not 1 < len(parts) <= _MOST_PARTS:
        return None
    said: list[str] = []
    while parts:
        sizes = range(len(parts) - (not said), 0, -1)  # the whole is no part of itself
        taken = next((n for n in sizes if _sentences("; ".join(parts[:n]), depth + 1)), 0)
        if not taken and all_known:
            return None
        one = "; ".join(parts[: taken or 1])
        said.append((_sentences(one, depth + 1) or one).rstrip("。"))
        parts = parts[taken or 1 :]
    return "；".join(said)


_PLAIN_VALUE: Final = re.compile(r"null|true|false|[-+.\w]+")


def _value(text: str, _: int) -> str | None:
    """A user's value, as problems repeat it: text in quotes, all else short."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return f"“{text[1:-1]}”"
    return {"a mapping": "映射", "a list": "列表"}.get(text) or (text if _PLAIN_VALUE.fullmatch(text) else None)


_LAST: Final = re.compile(r" (or|and) (?=[^,]*\Z)")


def _choice(text: str, _: int) -> str | None:
    """a, b or c."""
    if "(" in text:  # that is more than a list of names
        return None
    head, word, last = next(((text[: m.start()], m[1], text[m.end() :]) for m in _LAST.finditer(text)), (text, "", ""))
    joined = head.replace(", ", "、")
    return joined + (f" {'或' if word == 'or' else '和'} {last}" if word else "")


def _amounts(text: str, depth: int) -> str | None:
    said = [_PIECES["amount"](one, depth) for one in text.split(" and ")]
    return " 和 ".join(one for one in said if one) if all(said) else None


_MORE: Final = re.compile(r" and (\d+) more(?: jobs)?\Z")
_HELD: Final = re.compile(r"(\S+): ([\d.]+(?: GiB)?)")


def _holders(text: str, _: int) -> str | None:
    """Who has how much: a: 1, others: 2 and 3 more."""
    more = _MORE.search(text)
    held = [_HELD.fullmatch(one) for one in (text[: more.start()] if more else text).split(", ")]
    told = [f"{'其他人' if one[1] == 'others' else one[1]} {one[2]}" for one in held if one]
    if len(told) < len(held):
        return None
    return "，".join(told) + (f"，另有 {more[1]} 个作业" if more else "")


def _named(what: str) -> Translate:
    return lambda text, depth: _PIECES[what](text, depth)


_BOOKS: Final = {name: phrases for file in _FILES for name, phrases in getattr(file, "PIECES", {}).items()}
KINDS: Final[dict[str, Translate]] = {
    "say": _say,
    "known": _known,
    "each": _each,
    "value": _value,
    "choice": _choice,
    "amounts": _amounts,
    "holders": _holders,
    **{name: _named(name) for name in _BOOKS},
}
_PIECES: Final = {name: Book(phrases, KINDS) for name, phrases in _BOOKS.items()}
SENTENCES: Final = {english: chinese for file in _FILES for english, chinese in file.SENTENCES.items()}
_sentences: Final = Book(SENTENCES, KINDS)
