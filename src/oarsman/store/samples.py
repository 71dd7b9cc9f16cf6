"""What the hosts of a job used over time: a file in the job's folder, one line per moment, added to while it runs.

    {"every": 5.0}
    [1763179506.123, {"pi-worker-0": [98.2, 104857600, 1200.0, 800.0, null, null]}]

Its size is bounded: when it has `MOST` moments, each two become one and from then on half as many are taken. A line
torn by a kill is cut off by the next writer and left out by readers.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

FILE = "usage.jsonl"
MOST = 2000


class Sample(NamedTuple):
    """None: not known there."""

    cpu_percent: float
    memory_bytes: int
    received: float | None = None  # bytes a second
    sent: float | None = None
    gpu_percent: float | None = None
    gpu_memory_bytes: int | None = None


class Moment(NamedTuple):
    time: float
    hosts: Mapping[str, Sample]


def read(folder: Path) -> Iterator[Moment]:
    """Oldest first. What cannot be read is left out."""
    try:
        with open(folder / FILE, "rb") as file:
            for line in file:
                moment = _parse(line)
                if moment is not None:
                    yield moment
    except FileNotFoundError:
        return


class Series:
    """The writing side. There is one writer: the supervisor."""

    def __init__(self, folder: Path, every: float) -> None:
        self._folder = folder
        self._path = folder / FILE
        self.every = every
        self._count = 0
        self.last: float | None = None  # when the newest moment was, of those an earlier writer left too
        self._take_up()

    def _take_up(self) -> None:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.truncate(self._path, len(whole))
        lines = whole.splitlines()
        with contextlib.suppress(ValueError, TypeError, LookupError):
            self.every = max(self.every, float(json.loads(lines[0])["every"]))
        moments = [moment for moment in map(_parse, lines) if moment is not None]
        self._count = len(moments)
        self.last = moments[-1].time if moments else None

    def due(self, now: float) -> bool:
        """Clocks are not exact: a little too early is in time."""
        return self.last is None or not 0 <= now - self.last < 0.9 * self.every

    def add(self, moment: Moment) -> None:
        text = _line(moment)
        if self._count == 0:
            text = _head(self.every) + text
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(fd).st_size
            if os.write(fd, text) < len(text):  # the disk is full
                os.ftruncate(fd, size)
                return
        finally:
            os.close(fd)
        self.last = moment.time
        self._count += 1
        if self._count >= MOST:
            self._thin_out()

    def _thin_out(self) -> None:
        moments = list(read(self._folder))
        self.every *= 2
        kept = [_merged(moments[index : index + 2]) for index in range(0, len(moments), 2)]
        scratch = self._path.with_suffix(".new")
        with open(scratch, "wb") as file:
            file.write(_head(self.every))
            file.writelines(map(_line, kept))
        os.replace(scratch, self._path)
        self._count = len(kept)


def _merged(moments: Sequence[Moment]) -> Moment:
    """Means of what is a rate. Of memory the most: a peak is what somebody will look for."""
    hosts = {name: None for moment in moments for name in moment.hosts}
    merged = {}
    for name in hosts:
        samples = [moment.hosts[name] for moment in moments if name in moment.hosts]
        columns = list(zip(*samples, strict=True))
        merged[name] = Sample(
            _mean(columns[0]) or 0.0,
            max(columns[1]),
            _mean(columns[2]),
            _mean(columns[3]),
            _mean(columns[4]),
            max((amount for amount in columns[5] if amount is not None), default=None),
        )
    return Moment(moments[-1].time, merged)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 1) if known else None


def _head(every: float) -> bytes:
    return json.dumps({"every": every}).encode() + b"\n"


def _line(moment: Moment) -> bytes:
    return json.dumps([moment.time, moment.hosts], separators=(",", ":")).encode() + b"\n"


def _parse(line: bytes) -> Moment | None:
    if not line.startswith(b"[") or not line.rstrip().endswith(b"]"):
        return None
    try:
        time, hosts = json.loads(line)
        return Moment(float(time), {str(name): Sample(*values) for name, values in hosts.items()})
    except (ValueError, TypeError, AttributeError):
        return None
