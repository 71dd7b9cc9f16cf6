"""Where each value of a YAML text begins and ends, so that one of them can be replaced and the rest left alone.

`manifest.source` says what the values are; this tree says which characters they are made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from oarsman.manifest.source import events

_GAP = re.compile(r"(?:\s|#[^\r\n]*|[&!]\S*)*")  # before a dash: white space, comments, anchor and tag of the list


@dataclass(slots=True, eq=False)
class Span:
    start: int  # of its anchor or tag, if it has one
    end: int  # behind its last character; comments that follow are not part of it
    style: str | None = None  # of a scalar: ', ", |, > or None
    flow: bool = False  # of a collection: {} or []
    anchor: str | None = None
    target: Span | None = None  # what an alias stands for
    entries: dict[str, SpanEntry] = field(default_factory=dict)  # of a mapping
    items: list[SpanEntry] = field(default_factory=list)  # of a list
    merges: list[Span] = field(default_factory=list)  # what `<<` brings in
    path: tuple[str | int, ...] = ()

    @property
    def members(self) -> list[SpanEntry]:
        return self.items or list(self.entries.values())

    @property
    def block_text(self) -> bool:
        return self.style in ("|", ">")


@dataclass(slots=True, eq=False)
class SpanEntry:
    """One `key: value` of a mapping or one item of a list."""

    start: int  # of its key or of its dash; in [] of the item itself
    value: Span
    quoted: bool = False  # the key is in double quotes, as in JSON

    @property
    def end(self) -> int:
        return max(self.start, self.value.end)


def roots(text: str) -> list[Span]:
    """One tree per document of a text that is known to be readable; empty documents included."""
    return list(_Walker(text).documents())


class _Walker:
    def __init__(self, text: str) -> None:
        self.text = text
        self.events = events(text)
        self.anchors: dict[str, Span] = {}

    def documents(self) -> Iterator[Span]:
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                yield self.node(next(self.events), ())

    def node(self, event: Any, path: tuple[str | int, ...]) -> Span:
        span = Span(event.start_mark.index, event.end_mark.index, path=path)
        if isinstance(event, yaml.AliasEvent):
            span.target = self.anchors[str(event.anchor)]
            return span
        span.anchor = event.anchor
        if isinstance(event, yaml.ScalarEvent):
            span.style = event.style or None
            if span.block_text:
                span.end = self.trimmed(span)
        elif isinstance(event, yaml.MappingStartEvent):
            self.mapping(event, span)
        else:
            self.sequence(event, span)
        if event.anchor is not None:
            self.anchors[event.anchor] = span
        return span

    def trimmed(self, span: Span) -> int:
        """A block of text ends with its last line, unless it says (+) that empty lines are part of it."""
        written = self.text[span.start : span.end]
        header = written.splitlines()[0] if written else ""
        return span.end if "+" in header.partition("#")[0] else span.start + len(written.rstrip())

    def mapping(self, event: Any, span: Span) -> None:
        span.flow = bool(event.flow_style)
        while not isinstance(key := next(self.events), yaml.MappingEndEvent):
            name = self.anchor_text(key) if isinstance(key, yaml.AliasEvent) else key.value
            if getattr(key, "anchor", None) and not isinstance(key, yaml.AliasEvent):
                self.anchors[key.anchor] = Span(key.start_mark.index, key.end_mark.index)
            value = self.node(next(self.events), (*span.path, name))
            entry = SpanEntry(key.start_mark.index, value, getattr(key, "style", None) == '"')
            span.entries[name] = entry
            if name == "<<" and not getattr(key, "style", None):
                span.merges = [item.value for item in value.items] or [value]
        self.close(key, span)

    def anchor_text(self, alias: Any) -> str:
        """A key that is an alias repeats a scalar; reading it again is rare enough to be simple."""
        target = self.anchors[alias.anchor]
        return str(yaml.safe_load(self.text[target.start : target.end]))

    def sequence(self, event: Any, span: Span) -> None:
        span.flow = bool(event.flow_style)
        place = event.start_mark.index
        while not isinstance(item := next(self.events), yaml.SequenceEndEvent):
            value = self.node(item, (*span.path, len(span.items)))
            start = value.start
            if not span.flow:
                start = _GAP.match(self.text, place).end()  # type: ignore[union-attr]  # it matches everywhere
            span.items.append(SpanEntry(start, value))
            place = value.end
        self.close(item, span)

    def close(self, event: Any, span: Span) -> None:
        """A block ends with its last member: the parser's own mark is behind comments and empty lines."""
        if span.flow:
            span.end = event.end_mark.index
        elif span.members:
            span.end = span.members[-1].end
