"""A sentence that knows how it was made, so that whoever shows it can say it in the reader's language.

    raise NotFoundError(Text("there is no job {key}", key=key), hint=Text("`oarsman list` shows those there are"))

A `Text` is its own English: it can be compared, written and sent like any other string. What travels as JSON and is
to be shown in another language later is written with `dump` and read with `load`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Self

Argument = str | int | float  # a Text among them is translated too; any other string is kept as it is
_ARGUMENTS = (str, int, float)
_WITH_NAMES_ALONE = re.compile(r"(?:[^{}]|\{\{|\}\}|\{\w+\})*")  # what Python fills in besides leads to all it knows


class Text(str):
    """Made from a template and what stands in its gaps. The template is a literal; translators see no other.

    It stays one under `str()`, so that the sentence an error was made with comes out of `str(error)` whole.
    """

    __slots__ = ("arguments", "template")

    template: str
    arguments: Mapping[str, Argument]

    def __new__(cls, template: str, /, **values: object) -> Self:
        made = super().__new__(cls, template.format(**values) if values else template)
        made.template = template
        given = values.items()
        made.arguments = {name: value if isinstance(value, _ARGUMENTS) else str(value) for name, value in given}
        return made

    def __str__(self) -> str:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return load, (dump(self),)


_SENTENCES = Text("{first}; {rest}")


def dump(text: str) -> Any:
    """For JSON. A sentence without gaps is its own template, and is written as a string like any other."""
    return marked(text) if isinstance(text, Text) and text.arguments else plain(text)


def marked(value: Argument) -> Any:
    """Within a sentence, what is to be translated and what is not have to be told apart; so has what one will hold."""
    if isinstance(value, Text):
        arguments = {name: marked(argument) for name, argument in value.arguments.items()}
        return {"template": value.template, "arguments": arguments}
    return plain(value) if isinstance(value, str) else value


def plain(text: str) -> str:
    """For those who take nothing but a string: some writers of YAML."""
    return str.__str__(text)


def load(written: Any) -> str:
    """What `dump` wrote. Anything else that is read is kept as the string it is, without complaint."""
    match written:
        case {"template": str(template), "arguments": dict(arguments)}:
            if _WITH_NAMES_ALONE.fullmatch(template) is None:
                return template
            try:
                return Text(template, **{name: _argument(value) for name, value in arguments.items()})
            except (LookupError, ValueError, AttributeError, TypeError):  # not written by us, or by a later version
                return template
        case str():
            return written
        case _:
            return str(written)


def _argument(written: Any) -> Argument:
    return written if isinstance(written, int | float) else load(written)


def with_word(text: str, word: re.Pattern[str], other: str) -> str:
    """The same sentence with another word in its gaps; how it was made stays known."""
    if not isinstance(text, Text):
        return word.sub(lambda _: other, text)
    given = {
        name: with_word(said, word, other) if isinstance(said, str) else said for name, said in text.arguments.items()
    }
    return Text(text.template, **given)


def quoted(word: str) -> str:
    return Text("'{word}'", word=word)


def sentences(parts: Iterable[str]) -> str:
    """one; two; three"""
    return _chain(parts, _SENTENCES)


def apart(text: str) -> list[str]:
    """What `sentences` put together, each as it was: a slice of the whole would be English everywhere."""
    if isinstance(text, Text) and text.template == _SENTENCES:
        first, rest = text.arguments["first"], text.arguments["rest"]
        return [str(first), *apart(str(rest))]
    return [text] if isinstance(text, Text) else text.split("; ")


def listed(parts: Iterable[str]) -> str:
    """a, b, c"""
    return _chain(parts, Text("{first}, {rest}"))


def all_of(parts: Sequence[str]) -> str:
    """a, b and c"""
    *others, last = parts or [""]
    return Text("{others} and {last}", others=listed(others), last=last) if others else last


def any_of(parts: Sequence[str]) -> str:
    """a, b or c"""
    *others, last = parts or [""]
    return Text("{others} or {last}", others=listed(others), last=last) if others else last


def cut(text: str, limit: int) -> str:
    """At most so many characters. A sentence that ends with what somebody else said is cut there, and stays one."""
    if len(text) <= limit:
        return text
    if isinstance(text, Text) and text.arguments:
        name = text.template.rpartition("{")[2][:-1]
        last = text.arguments.get(name)
        if isinstance(last, str) and text.template.endswith("}") and (room := limit - len(text) + len(last)) > 3:
            return Text(text.template, **{**text.arguments, name: cut(last, room)})
    return plain(text)[: limit - 3] + "..."


def one_line(text: str) -> str:
    """Without line breaks, and with single spaces."""
    if isinstance(text, Text):
        arguments = {name: one_line(said) if isinstance(said, str) else said for name, said in text.arguments.items()}
        return Text(text.template, **arguments)
    return " ".join(text.split())


def _chain(parts: Iterable[str], template: str) -> str:
    backwards = list(parts)[::-1]
    return reduce(lambda rest, first: Text(template, first=first, rest=rest), backwards) if backwards else ""


def visible(text: str) -> str:
    """The text with every character that could act on a terminal written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(c) for c in text)


def _shown(c: str) -> str:
    if c == "\t":
        return "    "
    category = unicodedata.category(c)
    if category[0] == "C" or category in ("Zl", "Zp"):
        return f"\\x{ord(c):02x}" if ord(c) < 0x100 else f"\\u{ord(c):04x}"
    return c
