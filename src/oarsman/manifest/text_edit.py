"""From one document to another by editing the text: what did not change stays letter by letter.

The documents are compared along the places of the first one; each difference becomes one small edit. The edited text
is read again before it is returned. Where that does not give the wanted document (a text may tie its parts together
by anchors), aliases are written out, and as a last resort the document is written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any

from oarsman.errors import ManifestError, UsageError
from oarsman.manifest.places import look
from oarsman.manifest.source import read
from oarsman.manifest.text_spans import Span, SpanEntry, roots
from oarsman.manifest.write import Manner, block_lines, flow, flow_members, in_style, leaf, to_yaml
from oarsman.text.sentence import Text

_SOURCE = "manifest"
_LINE_BREAK = re.compile(r"[\r\n]")
_MARK = "\ufeff"


def documents(text: str) -> list[Any]:
    """The values of all documents that are not empty. Raises ManifestError where the text cannot be read."""
    found, problems = read(text, _SOURCE)
    if problems:
        raise ManifestError(problems)
    return [document.value for document in found]


def amended(text: str, before: list[Any], which: int, after: Mapping[str, Any]) -> str:
    """The text of the documents `before`, one of which, by its number, has become `after`; empty ones do not count."""
    mark, text = (_MARK, text[1:]) if text.startswith(_MARK) else ("", text)
    if which >= len(before):
        return mark + _appended(text, after)
    if same(before[which], after):
        return mark + text
    wanted = [*before[:which], after, *before[which + 1 :]]
    tree = [span for span in roots(text) if _filled(text, span)][which]
    for attempt in (_Editor(text, tree, after), _Editor(text, tree, after, keep_aliases=False)):
        edited = attempt.run(before[which])
        if edited is not None and _reads_as(edited, wanted):
            return mark + edited
    anew = _Editor(text, tree, after).written_anew()
    if not _reads_as(anew, wanted):
        hint = Text("are there control characters in it?")
        raise UsageError(Text("YAML has no way to write this"), field="manifest", hint=hint)
    return mark + anew


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types: 1 is neither true nor 1.0."""
    return type(one) is type(other) and _key(one) == _key(other)


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _reads_as(text: str, wanted: list[Any]) -> bool:
    found, problems = read(text, _SOURCE)
    return not problems and same([document.value for document in found], wanted)


def _filled(text: str, span: Span) -> bool:
    """Whether it counts as a document: the empty ones are left out by the reader as well."""
    return bool(documents(text[span.start : span.end])) if not span.members and not span.flow else True


def _appended(text: str, after: Mapping[str, Any]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = newline if text and not text.endswith(("\n", "\r")) else ""
    return text + gap + newline.join(to_yaml([after]).split("\n"))


def _manner(text: str, tree: Span) -> Manner:
    """As the text does it where it first does it."""
    newline = "\r\n" if "\r\n" in text else "\n"
    nested = [(column, span) for column, span in _nested(text, tree) if not span.flow]
    step = next((_column(text, span.members[0].start) - column for column, span in nested if span.entries), 2)
    dashes = next((_column(text, span.items[0].start) - column for column, span in nested if span.items), 0)
    return Manner(newline, max(step, 1), max(dashes, 0))


def _nested(text: str, span: Span) -> Iterator[tuple[int, Span]]:
    """Collections that are the value of a key in a block, each with the column of that key."""
    for entry in span.members:
        if entry.value.members:
            if span.entries and not span.flow:
                yield _column(text, entry.start), entry.value
            yield from _nested(text, entry.value)


def _column(text: str, place: int) -> int:
    return place - _line_start(text, place)


def _line_start(text: str, place: int) -> int:
    return max(text.rfind("\n", 0, place), text.rfind("\r", 0, place)) + 1


class _Editor:
    """Collects edits of one document and makes them all at once."""

    def __init__(self, text: str, tree: Span, after: Any, *, keep_aliases: bool = True) -> None:
        self.text = text
        self.tree = tree
        self.after = after
        self.keep_aliases = keep_aliases
        self.manner = _manner(text, tree)
        self.edits: list[tuple[int, int, str]] = []

    def run(self, before: Any) -> str | None:
        """The edited text, or None where two edits are in each other's way."""
        self.compare(self.tree, before, self.after, in_flow=False, column=-1)
        pieces, place = [], 0
        for start, end, new in sorted(self.edits, key=lambda edit: (edit[0], edit[1] > edit[0])):
            if start < place:
                return None
            pieces += [self.text[place:start], new]
            place = end
        return "".join([*pieces, self.text[place:]])

    def written_anew(self) -> str:
        self.edits = []
        self.replace(self.tree, self.after, in_flow=False, column=-1)
        (start, end, new), *_ = self.edits
        return self.text[:start] + new + self.text[end:]

    def edit(self, start: int, end: int, new: str) -> None:
        self.edits.append((start, end, new))

    def line_end(self, place: int) -> int:
        found = _LINE_BREAK.search(self.text, place)
        return found.start() if found is not None else len(self.text)

    # -- comparing -------------------------------------------------------------------------------------
    def compare(self, span: Span, old: Any, new: Any, *, in_flow: bool, column: int) -> None:
        """`column` is that of the key or dash the value belongs to."""
        if span.target is not None:
            if not (self.keep_aliases and same(look(self.after, *span.target.path), new)):
                self.replace(span, new, in_flow=in_flow, column=column)
        elif isinstance(new, dict) and (old or span.flow) and self.editable(span, new):
            self.mapping(span, old, new)
        elif isinstance(old, list) and isinstance(new, list) and new and span.items:
            self.sequence(span, old, new)
        elif not same(old, new):
            self.replace(span, new, in_flow=in_flow, column=column)

    def editable(self, span: Span, new: dict[str, Any]) -> bool:
        """A mapping in a block needs one member that stays; an empty pair of braces becomes a block if it can."""
        return bool(span.entries) if span.flow else any(name in new or name == "<<" for name in span.entries)

    # -- mappings ----------------------------------------------------------------------------------------
    def mapping(self, span: Span, old: dict[str, Any], new: dict[str, Any]) -> None:
        brought = self.brought_in(span)
        gone = {name for name in span.entries if name not in new and not (name == "<<" and span.merges)}
        if span.merges and (not self.keep_aliases or any(name not in new for name in brought)):
            gone.add("<<")
            brought = {}
        stays = [entry for name, entry in span.entries.items() if name not in gone]
        if not stays:
            self.replace(span, new, in_flow=span.flow, column=_column(self.text, span.start))
            return
        self.remove(span, [span.entries[name] for name in gone])
        for name, entry in span.entries.items():
            if name not in gone and not (name == "<<" and span.merges):
                column = _column(self.text, entry.start)
                self.compare(entry.value, old[name], new[name], in_flow=span.flow, column=column)
        own = {name: value for name, value in new.items() if name not in span.entries}
        added = {k: v for k, v in own.items() if not (k in brought and same(brought[k], v))}
        self.insert(span, stays[-1], added)

    def brought_in(self, span: Span) -> dict[str, Any]:
        """What `<<` will bring in once every edit is made; the first that names a key wins."""
        found: dict[str, Any] = {}
        for base in span.merges:
            value = look(self.after, *(base.target or base).path)
            found = {**value, **found} if isinstance(value, dict) else found
        return found

    # -- lists -------------------------------------------------------------------------------------------
    def sequence(self, span: Span, old: list[Any], new: list[Any]) -> None:
        steps = SequenceMatcher(None, [_key(v) for v in old], [_key(v) for v in new], autojunk=False).get_opcodes()
        pairs: dict[int, int] = {}
        added: dict[int, list[Any]] = {}  # behind which item of old
        for _, start, end, first, last in steps:
            common = min(end - start, last - first)
            pairs.update(zip(range(start, start + common), range(first, first + common), strict=True))
            if last - first > common:
                added.setdefault(start + common - 1, []).extend(new[first + common : last])
        first_kept = min(pairs)
        early = [value for at in sorted(added) if at < first_kept for value in added[at]]
        self.insert_before(span, span.items[first_kept], early)
        self.remove(span, [entry for at, entry in enumerate(span.items) if at not in pairs])
        for at, entry in enumerate(span.items):
            if at in pairs:
                column = _column(self.text, entry.start)
                self.compare(entry.value, old[at], new[pairs[at]], in_flow=span.flow, column=column)
            if at in added and at >= first_kept:
                behind = max(kept for kept in pairs if kept <= at)
                self.insert(span, span.items[behind], added[at])

    def insert_before(self, span: Span, entry: SpanEntry, values: list[Any]) -> None:
        if not values:
            return
        if span.flow:
            self.edit(entry.start, entry.start, "".join(f"{piece}, " for piece in self.in_flow(entry, values)))
            return
        column, newline = _column(self.text, entry.start), self.manner.newline
        lines = block_lines(values, column, self.manner)
        self.edit(entry.start, entry.start, newline.join([*lines, " " * column]).removeprefix(" " * column))

    # -- edits ---------------------------------------------------------------------------------------------
    def insert(self, span: Span, behind: SpanEntry, added: dict[str, Any] | list[Any]) -> None:
        """More members of a mapping, or items of a list."""
        if not added:
            return
        if span.flow:
            self.insert_in_flow(behind, self.in_flow(behind, added))
        else:
            self.insert_lines(behind, block_lines(added, _column(self.text, behind.start), self.manner))

    def in_flow(self, beside: SpanEntry, added: dict[str, Any] | list[Any]) -> list[str]:
        """In quotes where the one beside them is: a key, or an item."""
        quoted = beside.quoted if isinstance(added, dict) else beside.value.style == '"'
        return flow_members(added, as_json=quoted or self.is_json())

    def insert_lines(self, behind: SpanEntry, lines: list[str]) -> None:
        place, newline = self.line_end(behind.end), self.manner.newline
        if behind.value.block_text and self.text[: behind.end].endswith(("\n", "\r")):  # it keeps its empty lines
            self.edit(behind.end, behind.end, newline.join([*lines, ""]))
            return
        self.edit(place, place, newline + newline.join(lines))

    def insert_in_flow(self, behind: SpanEntry, pieces: list[str]) -> None:
        start = _line_start(self.text, behind.start)
        alone = not self.text[start : behind.start].strip()
        gap = "," + (self.manner.newline + self.text[start : behind.start] if alone else " ")
        self.edit(behind.end, behind.end, "".join(gap + piece for piece in pieces))

    def remove(self, span: Span, gone: list[SpanEntry]) -> None:
        if not span.flow:
            for entry in gone:
                self.remove_lines(span, entry)
            return
        kept: SpanEntry | None = None
        run: list[SpanEntry] = []
        for entry in span.members:
            if entry in gone:
                run.append(entry)
                continue
            if run:
                self.remove_up_to(run, entry)
            kept, run = entry, []
        if run and kept is not None:
            self.edit(kept.end, run[-1].end, "")

    def remove_up_to(self, run: list[SpanEntry], following: SpanEntry) -> None:
        """Members of {} or [] with their commas; comments between them stay."""
        start, end = run[0].start, following.start
        notes = re.findall(r"(?<=\s)#[^\r\n]*", self.text[run[-1].end : end])
        pad = self.manner.newline + " " * _column(self.text, end)
        self.edit(start, end, "".join(note + pad for note in notes))

    def remove_lines(self, span: Span, entry: SpanEntry) -> None:
        start, end = _line_start(self.text, entry.start), self.line_end(entry.end)
        if self.text[start : entry.start].strip():  # it shares its line with a dash, which the next one takes over
            following = next((other.start for other in span.members if other.start > entry.start), entry.end)
            bare = not self.text[entry.end : following].strip()
            self.edit(entry.start, following if bare else entry.end, "")
            return
        if end < len(self.text):
            end += 2 if self.text.startswith("\r\n", end) else 1
        elif start > 0:  # the text does not end with a line break: the one before goes
            start -= 2 if self.text.endswith("\r\n", 0, start) else 1
        self.edit(start, end, "")

    def replace(self, span: Span, new: Any, *, in_flow: bool, column: int) -> None:
        """Write the value anew, in its place; its anchor stays for those who refer to it."""
        anchor = f"&{span.anchor}" if span.anchor is not None else ""
        if in_flow:
            as_json = span.style == '"' or self.is_json()
            written = in_style(new, span.style) or flow(new, as_json=as_json)
            self.edit(span.start, span.end, f"{anchor} {written}".lstrip())
            return
        if isinstance(new, dict | list) and new:
            self.replace_by_block(span, new, anchor, column)
            return
        as_before = in_style(new, span.style)
        written, *rest = [as_before] if as_before is not None else leaf(new)
        comment = self.header_comment(span)
        before = self.text[span.start - 1 : span.start]
        gap = " " if before and before not in " \n\r\t" else ""
        self.edit(span.start, span.end, gap + f"{anchor} {written}{comment}".lstrip())
        pad, place = " " * max(column, 0), span.end if span.block_text else self.line_end(span.end)
        self.edit(place, place, "".join(self.manner.newline + (pad + line if line else "") for line in rest))

    def replace_by_block(self, span: Span, new: Any, anchor: str, column: int) -> None:
        """The lines of a block begin behind the line of its key, and so behind a comment there."""
        newline, start = self.manner.newline, span.start
        if column < 0 or (span.members and not span.flow and not anchor):
            on_marker = column < 0 and self.text[_line_start(self.text, start) : start].strip()  # behind `---`
            lines = block_lines(new, 0 if on_marker else _column(self.text, start), self.manner)
            self.edit(start, span.end, newline + newline.join(lines) if on_marker else newline.join(lines).lstrip(" "))
            return
        shift = self.manner.dashes if isinstance(new, list) else self.manner.step
        lines = block_lines(new, column + shift, self.manner)
        while not anchor and self.text[start - 1] == " ":
            start -= 1
        place = self.line_end(span.end)
        self.edit(start, span.end, anchor)
        self.edit(place, place, newline + newline.join(lines))

    def is_json(self) -> bool:
        return self.tree.flow and all(entry.quoted for entry in self.tree.entries.values())

    def header_comment(self, span: Span) -> str:
        """A comment behind | or > stays."""
        if not span.block_text:
            return ""
        found = re.search(r"\s#[^\r\n]*", self.text[span.start : self.line_end(span.start)])
        return found[0] if found is not None else ""
