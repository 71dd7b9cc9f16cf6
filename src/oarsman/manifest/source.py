"""YAML text to plain values, each with its place in the text.

The tree is built from the C parser's events rather than from its composed nodes: the walk can then
stop at a depth or size limit before memory or the stack is spent, one bad scalar does not hide the
next one, and repeated keys are seen. A text that cannot be read is a list of problems, never an
exception of the YAML library.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import yaml

from oarsman.errors import Problem
from oarsman.manifest.problems import Path, dotted, quoted
from oarsman.manifest.scalars import ScalarError, resolve, resolve_tagged
from oarsman.text.sentence import Text

MAX_BYTES = 3 * 1024 * 1024  # what a Kubernetes API server takes in one request
MAX_DEPTH = 100
MAX_NODES = 200_000  # with every alias written out
MAX_PROBLEMS = 100  # that anybody reads; no more are looked for
_LONGEST_LINE = 2000  # of those that are shown

# The line breaks the parser itself counts.
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# Everything outside YAML's printable set, surrogates included.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Node:
    """A value and where it stands (lines and columns from 1). Aliases share their node."""

    value: Any
    line: int
    column: int
    size: int = 1
    height: int = 1
    children: dict[str | int, Node] = field(default_factory=dict)
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Doubts:
    """What of a document is known to be wrong, so that nothing more is said about it or concluded from it."""

    broken: set[Path] = field(default_factory=set)
    above: set[Path] = field(default_factory=set)  # what holds something broken
    strays: set[str] = field(default_factory=set)  # names of fields that do not belong where they are
    spelling: dict[Path, str] = field(default_factory=dict)  # the last step of a path as the text has it
    paths: dict[str, Path] = field(default_factory=dict)  # of the fields that problems name
    noted: dict[tuple[str, str], Problem] = field(default_factory=dict)  # by field and message

    def add(self, path: Path) -> None:
        self.broken.add(path)
        self.above.update(path[:end] for end in range(len(path)))


class EnoughError(Exception):
    """There are as many problems as anybody reads."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its value, and the way from a field path to a problem at the right place.

    A document that never was text (it comes from a store) has no root; its problems have no position.
    """

    value: Any
    source: str
    lines: tuple[str, ...] = ()
    root: Node | None = None
    doubts: Doubts = field(default_factory=Doubts)

    def sound(self, *paths: Path) -> bool:
        """Whether nothing at, above or below these paths is broken; of what is absent, that it is not elsewhere."""
        return not any(self._doubtful(path) for path in paths)

    def _doubtful(self, path: Path) -> bool:
        doubts, value = self.doubts, self.value
        if path in doubts.above or path in doubts.spelling:
            return True
        for end, step in enumerate(path, 1):
            if path[:end] in doubts.broken:
                return True
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return step in doubts.strays
        return False

    def problem(self, path: Path, message: str, *, hint: str | None = None, on_key: bool = False) -> Problem:
        return self._problem(self._place(path, on_key), path, message, hint)

    def stray(self, path: Path, message: str, *, hint: str | None = None) -> Problem:
        """A problem about a field that is there but should not be."""
        return replace(self.problem(path, message, hint=hint, on_key=True), stray=True)

    def unknown(self, path: Path, message: str, *, hint: str | None = None) -> Problem:
        """About a field that is not known here, but may be to others."""
        return replace(self.stray(path, message, hint=hint), warning=True)

    def missing(self, path: Path, message: str) -> Problem:
        """A problem about a field that is not there, shown at the key of what should hold it."""
        return self._problem(self._place(path[:-1], on_key=True), path, message)

    def _problem(self, place: tuple[int, int], path: Path, message: str, hint: str | None = None) -> Problem:
        name = dotted(self._as_written(path))
        self.doubts.paths[name] = path
        noted = self.doubts.noted
        if len(noted) >= MAX_PROBLEMS and (name, message) not in noted:
            raise EnoughError
        found = noted[name, message] = _problem(self.source, self.lines, place, name, message, hint)
        return found

    def path(self, problem: Problem) -> Path:
        """The path of a problem of this document, in the words the document should use."""
        return self.doubts.paths[problem.field]

    def _as_written(self, path: Path) -> Path:
        if not self.doubts.spelling:
            return path
        return tuple(self.doubts.spelling.get(path[:end], step) for end, step in enumerate(path, 1))

    def _place(self, path: Path, on_key: bool) -> tuple[int, int]:
        node = self.root
        if node is None:
            return 0, 0
        place = (node.line, node.column)
        for number, step in enumerate(self._as_written(path)):
            child = node.children.get(step)
            if child is None:
                break
            last = number == len(path) - 1
            key = node.keys.get(step) if isinstance(step, str) else None
            place = key if key is not None and (on_key or not last) else (child.line, child.column)
            node = child
        return place


def _problem(
    source: str, lines: tuple[str, ...], place: tuple[int, int], field: str, message: str, hint: str | None = None
) -> Problem:
    line, column = place
    snippet = lines[line - 1][:_LONGEST_LINE] if 0 < line <= len(lines) and column <= _LONGEST_LINE else ""
    return Problem(source=source, line=line, column=column, field=field, message=message, hint=hint, snippet=snippet)


@dataclass(slots=True)
class _Frame:
    """A list or mapping that is still open."""

    node: Node
    anchor: str | None
    is_map: bool
    key: str | None = None
    key_place: tuple[int, int] = (0, 0)
    has_key: bool = False
    merges: list[Node] = field(default_factory=list)


class _Stop(Exception):
    """Reading on makes no sense; the problem is already noted."""


def read(text: str | bytes, source: str) -> tuple[list[Document], list[Problem]]:
    """All documents of a text, empty ones left out, and everything wrong with it as text."""
    decoded, problems = decode(text, source)
    if decoded is None:
        return [], problems
    reader = _Reader(decoded, source)
    try:
        reader.run()
    except _Stop:
        pass
    except yaml.MarkedYAMLError as error:
        reader.syntax_error(error)
    except yaml.YAMLError as error:  # a reader error; control characters were found before
        reader.note(1, 1, Text("not readable as YAML: {why}", why=error))
    lines = reader.lines
    documents = [Document(root.value, source, lines, root) for root in reader.roots if root.value is not None]
    return documents, reader.problems


def decode(text: str | bytes, source: str) -> tuple[str | None, list[Problem]]:
    """The text, without a byte order mark, and what is wrong with its letters."""
    if len(text) > MAX_BYTES:
        size = MAX_BYTES // 1024 // 1024
        message = Text("the text is larger than {size} MiB, the most a manifest may have", size=size)
        return None, [_problem(source, (), (1, 1), "", message)]
    if isinstance(text, bytes):
        raw = text
        wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        try:
            text = raw.decode("utf-16" if wide else "utf-8")
        except UnicodeDecodeError as error:
            good = "" if wide else raw[: error.start].decode("utf-8")
            what = Text("the text is not valid UTF-16; save the file as UTF-8")
            if not wide:
                what = Text("byte {byte} is not UTF-8; save the file as UTF-8", byte=f"0x{raw[error.start]:02x}")
            return None, [_at(good, len(good), source, what)]
    text = text.removeprefix("\ufeff")
    bad = _UNPRINTABLE.search(text)
    if bad is not None:
        code = ord(bad.group())
        what = Text("the control character {code} is not allowed in YAML", code=f"U+{code:04X}")
        what = what if code else Text("a NUL character is not allowed in YAML")
        return None, [_at(text, bad.start(), source, what)]
    return text, []


def _at(text: str, index: int, source: str, message: str) -> Problem:
    """A problem at a character index, for what is found before the parser runs."""
    breaks = list(_BREAK.finditer(text, 0, index))
    start = breaks[-1].end() if breaks else 0
    line = _BREAK.split(text[start : index + 200])[0]
    column = index - start + 1
    shown = line if column <= _LONGEST_LINE else ""
    return replace(_problem(source, (), (len(breaks) + 1, column), "", message), snippet=shown)


class _Reader:
    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.lines = tuple(_BREAK.split(text))
        self.roots: list[Node] = []
        self.problems: list[Problem] = []
        self.stack: list[_Frame] = []
        self.anchors: dict[str, Node | None] = {}

    def run(self) -> None:
        for event in events(self.text):
            if len(self.problems) >= MAX_PROBLEMS:
                return
            line, column = event.start_mark.line + 1, event.start_mark.column + 1
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self.scalar(event, line, column)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self.open(event, line, column)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self.close()
            elif kind is yaml.AliasEvent:
                self.alias(event.anchor, line, column)
            elif kind is yaml.DocumentStartEvent:
                self.anchors = {}

    def note(self, line: int, column: int, message: str, hint: str | None = None) -> None:
        field = dotted(tuple(self.path()))
        self.problems.append(_problem(self.source, self.lines, (line, column), field, message, hint))

    def stop(self, line: int, column: int, message: str) -> NoReturn:
        self.note(line, column, message)
        raise _Stop

    def path(self) -> Iterator[str | int]:
        for frame in self.stack:
            if not frame.is_map:
                yield len(frame.node.children)
            elif frame.has_key and frame.key is not None:
                yield frame.key

    def syntax_error(self, error: yaml.MarkedYAMLError) -> None:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        self.stack = []
        if text[column - 1 : column] == "\t" or text[: len(text) - len(text.lstrip())].count("\t"):
            self.note(line, column, Text("a tab cannot indent YAML"), Text("use spaces"))
            return
        context = f" {error.context}" if error.context else ""
        self.note(line, column, Text("not readable as YAML: {why}", why=f"{error.problem}{context}"))

    def scalar(self, event: Any, line: int, column: int) -> None:
        plain = not event.style and event.implicit[0]
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.is_map and not frame.has_key:
            self.key(event.value, plain, event.tag, line, column)
            return
        value: object = event.value
        try:
            if event.tag is not None:
                value = resolve_tagged(event.value, event.tag)
            elif plain:
                value = resolve(event.value, field=(frame.key or "") if frame is not None else "")
        except ScalarError as error:
            self.note(line, column, str(error))
        self.add(Node(value, line, column), event.anchor)

    def key(self, text: str, plain: bool, tag: str | None, line: int, column: int) -> None:
        frame = self.stack[-1]
        if plain and tag is None:
            meant: object = None
            unclear = ""
            try:
                meant = resolve(text)
            except ScalarError:
                unclear = text[:40]
            if not isinstance(meant, str):
                shown = unclear or (quoted(meant) if text else Text("nothing"))
                hint = Text("write '{word}' in quotes", word=text[:40]) if text else None
                self.note(line, column, Text("a field name must be text, not {given}", given=shown), hint)
        if text in frame.node.keys and not (plain and text == "<<"):
            frame.key, frame.has_key = text, True
            name, first = quoted(text), frame.node.keys[text][0]
            twice = Text("the field {name} is given twice; the first is on line {line}", name=name, line=first)
            self.note(line, column, twice)
        frame.key, frame.key_place, frame.has_key = text, (line, column), True
        if plain and text == "<<":
            frame.key_place = (0, 0)

    def open(self, event: Any, line: int, column: int) -> None:
        frame = self.stack[-1] if self.stack else None
        is_map = type(event) is yaml.MappingStartEvent
        if event.tag is not None and event.tag not in ("!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            self.note(line, column, Text("a tag has no meaning here; leave it out"))
        if frame is not None and frame.is_map and not frame.has_key:
            given = Text("a mapping") if is_map else Text("a list")
            self.stop(line, column, Text("a field name must be text, not {given}", given=given))
        if len(self.stack) >= MAX_DEPTH:
            self.limit(line, column, Text("nested more than {most} levels deep", most=MAX_DEPTH))
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.stack.append(_Frame(Node({} if is_map else [], line, column), event.anchor, is_map))

    def close(self) -> None:
        frame = self.stack.pop()
        node = frame.node
        for base in frame.merges:
            for name, child in base.children.items():
                if isinstance(name, str) and name not in node.children:
                    node.children[name] = child
                    node.keys[name] = base.keys[name]
                    node.value[name] = child.value
                    self._count(node, child, node.line, node.column)
        self.add(node, frame.anchor)

    def alias(self, anchor: str, line: int, column: int) -> None:
        frame = self.stack[-1] if self.stack else None
        if anchor not in self.anchors:
            self.stop(line, column, Text("the alias *{anchor} names no anchor before it", anchor=anchor))
        node = self.anchors[anchor]
        if node is None:
            self.stop(line, column, Text("the alias *{anchor} stands inside the value it repeats", anchor=anchor))
        if frame is not None and frame.is_map and not frame.has_key:
            if isinstance(node.value, str):
                self.key(node.value, False, None, line, column)
                return
            self.stop(line, column, Text("a field name must be text"))
        self.add(node, None, (line, column))

    def add(self, node: Node, anchor: str | None, place: tuple[int, int] | None = None) -> None:
        """Put a finished value where it belongs: into what is open, or at the top."""
        line, column = place or (node.line, node.column)
        if anchor is not None:
            self.anchors[anchor] = node
        if not self.stack:
            self.roots.append(node)
            return
        frame = self.stack[-1]
        parent = frame.node
        if not frame.is_map:
            parent.children[len(parent.value)] = node
            parent.value.append(node.value)
        elif frame.key == "<<" and frame.key_place == (0, 0):
            self.merge(frame, node)
        elif frame.key is not None:
            parent.children[frame.key] = node
            parent.keys[frame.key] = frame.key_place
            parent.value[frame.key] = node.value
        self._count(parent, node, line, column)
        frame.key, frame.has_key = None, False

    def merge(self, frame: _Frame, node: Node) -> None:
        bases = list(node.children.values()) if isinstance(node.value, list) else [node]
        if not all(isinstance(base.value, dict) for base in bases):
            self.note(node.line, node.column, Text("<< merges mappings; this is not one"))
            return
        frame.merges += bases

    def _count(self, parent: Node, child: Node, line: int, column: int) -> None:
        parent.size += child.size
        parent.height = max(parent.height, child.height + 1)
        if parent.size > MAX_NODES:
            self.limit(line, column, Text("more than {most} values once every alias is written out", most=MAX_NODES))
        if len(self.stack) + child.height > MAX_DEPTH + 1:
            self.limit(line, column, Text("nested more than {most} levels deep", most=MAX_DEPTH))

    def limit(self, line: int, column: int, message: str) -> NoReturn:
        self.stack = []  # a path a hundred steps long helps nobody
        self.stop(line, column, message)


def events(text: str) -> Iterator[Any]:
    """What the parser sees, with the places of everything, for those who edit the text itself."""
    loader = _LOADER(text)
    try:
        while loader.check_event():
            yield loader.get_event()
    finally:
        loader.dispose()
