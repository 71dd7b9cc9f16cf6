"""The merged log of an attempt: read whole, filtered, followed, or page by page by byte offsets.

A million lines go through here one by one, so a line is cheap to make: its time stays text until somebody asks for it.
A page costs what it shows; a search looks at no more than `MOST_BYTES` per page and says how far it came. Ranks have
the file open and may write what they like there: what is longer than `_LONGEST` is no line of ours, and passed over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

MERGED = "merged.log"
_BLOCK = 256 << 10  # bytes: few enough lines at a time to stay in the processor's memory
_LONGEST = 256 << 10  # bytes that a line may have
_NEAR = 1 << 16  # bytes: closer than this a place in time is not sought by halving
_OUT_OF_ORDER = timedelta(minutes=1)  # lines get their time before they are written, on hosts whose clocks differ
_TORN_IN_A_ROW = 16


class LogLine(NamedTuple):
    stamp: str  # UTC, always written with the same width, so that text order is time order
    rank: int | None  # None: the launcher's own words
    host: str
    stream: str  # "out" or "err"
    text: str

    @property
    def time(self) -> datetime:
        return datetime.fromisoformat(self.stamp)


Wanted = Callable[[LogLine], bool] | None  # None: every line


def stamp(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def attempts(folder: Path) -> list[int]:
    """The attempts that have a log, oldest first."""
    prefix = "attempt-"
    logs = folder / "logs"
    names = [entry.name for entry in logs.iterdir()] if logs.is_dir() else []
    return sorted(int(name.removeprefix(prefix)) for name in names if name.startswith(prefix))


def merged_path(folder: Path, attempt: int) -> Path:
    return folder / "logs" / f"attempt-{attempt}" / MERGED


def parse(line: str) -> LogLine | None:
    """One merged line; None for one torn by a full disk, or that none of ours wrote."""
    parts = line.split(" ", 4)
    if len(parts) != 5 or not parts[0].endswith("Z"):
        return None
    time, rank, host, stream, text = parts
    try:
        datetime.fromisoformat(time)
    except ValueError:
        return None
    if rank == "-":
        return LogLine(time, None, host, stream, text.rstrip("\r"))
    known = rank.isdecimal() and len(rank) < 10
    return LogLine(time, int(rank), host, stream, text.rstrip("\r")) if known else None


class Search:
    """A text to look for, whatever the case of its letters. Where only those in ASCII have cases, it is sought in the
    bytes: that is several times faster where a log is not in ASCII."""

    def __init__(self, text: str) -> None:
        self._text = text.lower()
        in_bytes = all(letter.isascii() or letter.lower() == letter.upper() for letter in text)
        self._bytes = self._text.encode(errors="replace") if in_bytes else None

    def __call__(self, text: str) -> bool:
        return self.in_block(text.encode(errors="replace")) if self._bytes is not None else self._text in text.lower()

    def in_block(self, block: bytes) -> bool:
        """Whether it is anywhere among these lines, their heads included."""
        if self._bytes is not None:
            return self._bytes in block.lower()
        return self._text in block.decode(errors="replace").lower()


def _opened(path: Path) -> BinaryIO:
    """A log that is not there yet is empty."""
    try:
        return open(path, "rb")
    except FileNotFoundError:
        return BytesIO()


class MergedLogReader:
    """The lines added to a merged log since the last look."""

    def __init__(self, path: Path, *, wanted: Wanted, tail: int | None = None, floor: int = 0) -> None:
        """floor: nothing before it is wanted."""
        self._path = path
        self._wanted = wanted
        self._offset = _start_of_tail(path, wanted, tail, floor) if tail is not None else floor
        self._rest = b""

    def news(self) -> Iterator[list[LogLine]]:
        """Block by block; of one that has nothing wanted, no lines."""
        wanted = self._wanted
        while block := self._read():
            complete, _, self._rest = (self._rest + block).rpartition(b"\n")
            self._rest = self._rest if len(self._rest) <= _LONGEST else b""
            parsed = filter(None, map(parse, complete.decode(errors="replace").split("\n") if complete else ()))
            yield list(filter(wanted, parsed))

    def _read(self) -> bytes:
        with _opened(self._path) as file:
            file.seek(self._offset)
            block = file.read(_BLOCK)
        self._offset += len(block)
        return block


def start_of(path: Path, since: datetime) -> int:
    """A place where a line begins and before which no line is as late as that, found by halving the log."""
    wanted = stamp(since - _OUT_OF_ORDER)
    low = 0
    with _opened(path) as file:
        high = file.seek(0, os.SEEK_END)
        while high - low > _NEAR:
            middle = (low + high) // 2
            place, found = _first_stamp(file, middle)
            low, high = (place, high) if found < wanted and place < high else (low, middle)
    return low


def _first_stamp(file: BinaryIO, offset: int) -> tuple[int, str]:
    """Where the first line behind the offset begins, and its time; where there is none, one that is later than all."""
    file.seek(offset)
    place = offset
    for number in range(_TORN_IN_A_ROW):
        raw = file.readline(_BLOCK)
        if not raw.endswith(b"\n"):
            break
        line = parse(raw.decode(errors="replace")) if number > 0 else None  # the first is half a line, most likely
        if line is not None:
            return place, line.stamp
        place += len(raw)
    return place, "~"


MOST_BYTES = 64 << 20

# Whether a block of whole lines may hold anything wanted; it saves taking it to pieces.
Promising = Callable[[bytes], bool]


class FoundLines(NamedTuple):
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
        return line if line is not None and (self.wanted is None or self.wanted(line)) else None


def is_place(path: Path, offset: int) -> bool:
    """Whether a line begins there, or will."""
    with _opened(path) as file, suppress(OSError):  # beyond what a file of this machine can have there is none
        file.seek(max(0, offset - 1))
        return offset == 0 or file.read(1) == b"\n"
    return False


def down(path: Path, start: int, look: Look) -> FoundLines:
    lines: list[tuple[int, LogLine]] = []
    offset, rest, looked_at = max(start, look.floor), b"", 0
    with _opened(path) as file:
        file.seek(offset)
        while looked_at < MOST_BYTES and (block := file.read(_BLOCK)):
            looked_at += len(block)
            complete, newline, rest = (rest + block).rpartition(b"\n")
            if not newline:
                if len(rest) > _LONGEST:
                    offset, rest = offset + len(rest), b""
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
                        return FoundLines(lines, start, offset)
    return FoundLines(lines, start, offset)


def up(path: Path, end: int | None, look: Look) -> FoundLines:
    """From `end`, or (None) from the end of the last whole line."""
    with _opened(path) as file:
        return _up(file, _end_of_lines(file) if end is None else end, look)


def _up(file: BinaryIO, end: int, look: Look) -> FoundLines:
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
            if len(rest) > _LONGEST:
                offset, rest = offset - len(rest), b""
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
    return FoundLines(lines, offset if offset > look.floor else 0, end)


def _start_of_tail(path: Path, wanted: Wanted, count: int, floor: int) -> int:
    """Where the last `count` wanted lines begin, read from the end: a long log costs no more than a short one."""
    place: int | None = None
    while True:
        found = up(path, place, Look(wanted=wanted, promising=lambda _: True, limit=count, floor=floor))
        place, count = found.start, count - len(found.lines)
        if count <= 0 or place <= floor:
            return max(place, floor)


def _end_of_lines(file: BinaryIO) -> int:
    end = position = file.seek(0, os.SEEK_END)
    while position > 0:
        if end - position > _LONGEST:
            return end
        begin = max(0, position - _BLOCK)
        file.seek(begin)
        newline = file.read(position - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        position = begin
    return 0
