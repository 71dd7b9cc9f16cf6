"""Documents as YAML again, whole or value by value, so that reading them back gives the same values.

A word that any reader, old or new, could take for a number, a truth or a date is quoted. Nothing is
folded, sorted or replaced by an alias: a manifest is for people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

from oarsman.manifest.scalars import ScalarError, resolve
from oarsman.text.sentence import Text


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    block = "\n" in value and not value[:1].isspace()
    if block and all(line.isprintable() and line == line.rstrip() for line in value.split("\n")):
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|")
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if _is_text(value) else '"')


def _is_text(value: str) -> bool:
    try:
        return isinstance(resolve(value), str)
    except ScalarError:
        return False


_Dumper.add_representer(str, _text)
_Dumper.add_representer(Text, _text)


def to_yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    """The documents as one YAML text, `---` between them."""
    return yaml.dump_all(
        [dict(document) for document in documents],
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=1_000_000,
        default_flow_style=False,
    )


# -- single values ------------------------------------------------------------------------------------------
# What YAML does not take as it is, or nobody would see; all of it is within four digits.
_HIDDEN = re.compile("[\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Manner:
    """How the text at hand is written, so that what is added looks like its neighbours."""

    newline: str = "\n"
    step: int = 2  # columns by which a block is indented
    dashes: int = 0  # columns by which a list is indented under its key


def scalar(value: Any) -> list[str]:
    """A scalar as lines of block style; those after the first are indented by two."""
    if (isinstance(value, str) and value.endswith(("\n\n", "\n\r"))) or value == "\n":
        return [quoted(value)]  # a block would have to keep empty lines, which then depend on what follows
    lines = to_yaml([{"k": value}])[3:].rstrip("\n").split("\n")
    return lines if len(lines) == 1 or lines[0].startswith("|") else [quoted(value)]


def quoted(text: str) -> str:
    """In double quotes, as both YAML and JSON read them."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def in_style(value: Any, style: str | None) -> str | None:
    """Text in the quotes that stood there before, if it was in quotes and still is text."""
    if not isinstance(value, str) or style not in ("'", '"'):
        return None
    if style == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if style == "'" and "\n" in value:
        return None
    return quoted(value)


def block_lines(value: dict[str, Any] | list[Any], indent: int, manner: Manner) -> list[str]:
    """The lines of a collection that is not empty and begins on a line of its own."""
    if isinstance(value, dict):
        return [line for key, part in value.items() for line in entry_lines(key, part, indent, manner)]
    return [line for part in value for line in item_lines(part, indent, manner)]


@lru_cache(maxsize=256)  # most texts have the same ones
def name(key: str) -> str:
    """A key, which has to stay on its line."""
    lines = scalar(key)
    return lines[0] if len(lines) == 1 else quoted(key)


def entry_lines(key: str, value: Any, indent: int, manner: Manner) -> list[str]:
    """`key: value`, on as many lines as it takes."""
    head = " " * indent + name(key) + ":"
    if isinstance(value, dict | list) and value:
        inner = indent + (manner.step if isinstance(value, dict) else manner.dashes)
        return [head, *block_lines(value, inner, manner)]
    first, *rest = leaf(value)
    return [f"{head} {first}", *_indented(rest, indent)]


def item_lines(value: Any, indent: int, manner: Manner) -> list[str]:
    """`- value`, on as many lines as it takes."""
    pad = " " * indent
    if isinstance(value, dict | list) and value:
        first, *rest = block_lines(value, indent + 2, manner)
        return [f"{pad}- {first.lstrip(' ')}", *rest]
    first, *rest = leaf(value)
    return [f"{pad}- {first}", *_indented(rest, indent)]


def leaf(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        return ["{}" if isinstance(value, dict) else "[]"]
    return scalar(value)


def _indented(lines: list[str], indent: int) -> Iterator[str]:
    for line in lines:
        yield " " * indent + line if line else ""


def flow_members(value: dict[str, Any] | list[Any], *, as_json: bool) -> list[str]:
    """What stands between {} or [], each on one line."""
    if isinstance(value, list):
        return [flow(part, as_json=as_json) for part in value]
    return [f"{flow(key, as_json=as_json)}: {flow(part, as_json=as_json)}" for key, part in value.items()]


def flow(value: Any, *, as_json: bool) -> str:
    """The value on one line, between others in {} or []."""
    if isinstance(value, dict | list):
        members = ", ".join(flow_members(value, as_json=as_json))
        return f"{{{members}}}" if isinstance(value, dict) else f"[{members}]"
    if not isinstance(value, str):
        return json.dumps(value)
    written = name(value)
    hazard = any(sign in value for sign in ",[]{}:") and written[:1] not in "'\""
    return quoted(value) if as_json or hazard else written
