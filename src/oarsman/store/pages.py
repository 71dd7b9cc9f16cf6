"""Pages of a merged log, by byte offsets: down from a place, up from a place, or up from the end.

A page costs what it shows. Where lines are sought for, it looks at no more than `MOST_BYTES` and says how far it
came: the next page goes on from there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from oarsman.store.logs import LogLine, Wanted, parse

MOST_BYTES = 64 << 20
_BLOCK = 256 << 10

# Whether a block of whole lines may hold anything wanted; it saves taking it to pieces.
Promising = Callable[[bytes], bool]


class Found(NamedTuple):
    lines: list[tuple[int, LogLine]]  # with the offset after each, oldest first
    start: int  # what was looked at
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    wanted: Wanted
    promising: Promising
    limit: int
    floor: int = 0  # where a line begins; nothing before it is wanted

    def line(self, raw: bytes) -> LogLine | None:
        line = parse(raw.decode(errors="replace"))
        return line if line is not None and self.wanted(line) else None


def is_place(path: Path, offset: int) -> bool:
    """Whether a line begins there, or will."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, offset - 1))
            return offset == 0 or file.read(1) == b"\n"
    except FileNotFoundError:
        return offset == 0


def down(path: Path, start: int, look: Look) -> Found:
    try:
        with open(path, "rb") as file:
            return _down(file, start, look)
    except FileNotFoundError:
        return Found([], start, start)


def _down(file: BinaryIO, start: int, look: Look) -> Found:
    lines: list[tuple[int, LogLine]] = []
    offset, rest, looked_at = max(start, look.floor), b"", 0
    file.seek(offset)
    while looked_at < MOST_BYTES and (block := file.read(_BLOCK)):
        looked_at += len(block)
        complete, newline, rest = (rest + block).rpartition(b"\n")
        if not newline:
            continue
        if not look.promising(complete):
            offset += len(complete) + 1
            continue
        for raw in complete.split(b"\n"):
            offset += len(raw) + 1
            line = look.line(raw)
            if line is not None:
                lines.append((offset, line))
                if len(lines) == look.limit:
                    return Found(lines, start, offset)
    return Found(lines, start, offset)


def up(path: Path, end: int | None, look: Look) -> Found:
    """From `end`, or (None) from the end of the last whole line."""
    try:
        with open(path, "rb") as file:
            return _up(file, _end_of_lines(file) if end is None else end, look)
    except FileNotFoundError:
        return Found([], 0, 0)


def _up(file: BinaryIO, end: int, look: Look) -> Found:
    lines: list[tuple[int, LogLine]] = []
    position, rest = end, b""  # rest: the end of a line that begins further up
    offset = end  # where the topmost line looked at begins
    while position > look.floor and end - position < MOST_BYTES and len(lines) < look.limit:
        begin = max(look.floor, position - _BLOCK)
        file.seek(begin)
        data = file.read(position - begin) + rest
        position, rest = begin, b""
        if begin > look.floor:
            head, newline, data = data.partition(b"\n")
            rest = head + newline
        if not data:
            continue
        if not look.promising(data):
            offset -= len(data)
            continue
        for raw in reversed(data[:-1].split(b"\n")):
            line = look.line(raw)
            if line is not None:
                lines.append((offset, line))
            offset -= len(raw) + 1
            if len(lines) == look.limit:
                break
    lines.reverse()
    return Found(lines, offset if offset > look.floor else 0, end)


def _end_of_lines(file: BinaryIO) -> int:
    position = file.seek(0, os.SEEK_END)
    while position > 0:
        begin = max(0, position - _BLOCK)
        file.seek(begin)
        newline = file.read(position - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        position = begin
    return 0
