"""Parts of the log of one container: from a place on, up to a place, or the end. No more is read than is needed.

The server can be asked for the last lines or for those since a time, and hung up on; it can neither be asked for
those before a time nor be told a place. So one looks a little further back each time, until there is enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from oarsman.backends.base import LogLine
from oarsman.backends.kube.log_lines import ContainerLogReader
from oarsman.backends.kube.pod_log import BEGINNING, PodLog, Spot, Written, behind, earlier, there

MOST_BYTES: Final = 64 * 2**20  # read for one page, whatever it looks for
_GROWTH: Final = 8
_MARGIN: Final = 32  # lines read before those that are shown: they say how tags look, and may begin what others end
_FIRST_SECONDS: Final = 8.0
_LONG: Final = 4096  # kubelets cut long lines, and count the parts as lines


class StretchLine(NamedTuple):
    before: Spot
    after: Spot
    line: LogLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Wanted lines, oldest first, and from where to where was looked. `cut`: there are wanted ones before them."""

    lines: list[StretchLine]
    start: Spot
    end: Spot
    cut: bool = False


@dataclass(slots=True)
class LogSource:
    """Whose log it is: how it is opened at a place, how its lines are read, when it began and whether it is over."""

    open: Callable[[Spot], PodLog]
    reader: Callable[[], ContainerLogReader]
    host: str | None  # None: the launcher's
    began: str
    over: bool

    def take(self, reader: ContainerLogReader, written: Written) -> LogLine | None:
        if self.host is None:
            return reader.take(written)
        return next(iter(reader.of_worker(self.host, [written])), None)

    def rest(self, reader: ContainerLogReader, spot: Spot) -> Iterator[StretchLine]:
        """What was left without an end of line, once there will be none."""
        for line in reader.rest() if self.host is None and self.over else ():
            before, spot = spot, (spot[0], spot[1] + 1)
            yield StretchLine(before, spot, line)


async def onwards(source: LogSource, after: Spot, limit: int) -> Stretch:
    """Lines from a place on."""
    reader, lines, spot, size = source.reader(), [], after, 0
    passed = BEGINNING

    def skip(written: Written) -> None:
        nonlocal passed
        passed = behind(passed, written.stamp)
        source.take(reader, written)

    async with aclosing(there(source.open(after).read(skipped=skip))) as batches:
        async for batch in batches:
            for written in batch:
                before, spot = spot, behind(spot, written.stamp)
                size += len(written.text)
                line = source.take(reader, written)
                if line is not None:
                    lines.append(StretchLine(before, spot, line))
                if len(lines) == limit or size > MOST_BYTES:
                    return Stretch(lines=lines, start=after, end=spot)
    rest = [one for one in source.rest(reader, passed if spot == after else spot) if one.after > after]
    lines += rest[: limit - len(lines)]
    if source.host is None:
        reader.check(over=source.over)
    return Stretch(lines=lines, start=after, end=lines[-1].after if rest else spot)


async def last(source: LogSource, limit: int) -> Stretch:
    """The end of the log."""
    asked = (limit if source.reader().takes_all else 4 * limit) + _MARGIN + 1
    previous, spent = -1, 0
    while True:
        look = _Look(source, limit)
        await look.at(source.open(BEGINNING), tail=asked)
        whole = look.count < asked and (look.longest < _LONG or look.count == previous)
        spent += look.size
        if whole or look.enough or (look.sure and spent + look.size * _GROWTH > MOST_BYTES):
            return look.stretch(whole)
        previous, asked = look.count, asked * _GROWTH


async def back(source: LogSource, until: Spot, limit: int) -> Stretch:
    """Lines up to a place."""
    if not until[0]:
        return Stretch(lines=[], start=BEGINNING, end=BEGINNING)
    window, spent = _FIRST_SECONDS, 0
    good: _Look | None = None
    while True:
        since = earlier(until[0], window)
        whole = since < source.began
        look = _Look(source, limit, until, None if good is None else MOST_BYTES - spent)
        await look.at(source.open(BEGINNING), since_time=None if whole else since)
        spent += look.size
        if look.too_much and good is not None:
            return good.stretch(False)
        if whole or look.enough or (look.sure and spent + look.size * _GROWTH > MOST_BYTES):
            return look.stretch(whole)
        good = look if look.sure else None
        window *= _GROWTH


@dataclass(slots=True)
class _Look:
    """One reading of a part of the log; the first lines of a part are not all known for what they are."""

    source: LogSource
    limit: int
    until: Spot | None = None
    most: int | None = None
    count: int = 0
    size: int = 0
    longest: int = 0
    wanted: int = 0
    too_much: bool = False
    spot: Spot = BEGINNING
    _first: str = ""
    _doubtful: int = _MARGIN  # so many lines at the start are only listened to, unless it is the whole log
    _sure_from: Spot | None = None
    _found: deque[tuple[int, StretchLine]] = field(default_factory=deque)

    async def at(self, log: PodLog, *, tail: int | None = None, since_time: str | None = None) -> None:
        self._found = deque(maxlen=self.limit)
        reader = self.source.reader()
        async with aclosing(there(log.read(tail=tail, since_time=since_time))) as batches:
            async for batch in batches:
                for written in batch:
                    if not self._take(reader, written):
                        return
        for placed in self.source.rest(reader, self.spot):
            if self.until is None or placed.after <= self.until:
                self._keep(placed)
                self.spot = placed.after
        if self.source.host is None:
            reader.check(over=self.source.over and self.until is None)

    def _take(self, reader: ContainerLogReader, written: Written) -> bool:
        before, after = self.spot, behind(self.spot, written.stamp)
        if self.until is not None and after > self.until:
            return False
        self.spot = after
        self._first = self._first or written.stamp
        if written.stamp == self._first:  # how many of them there were before is not known
            self._doubtful = max(self._doubtful, self.count + 2)
        if self.count == self._doubtful:
            self._sure_from = before
        line = self.source.take(reader, written)
        if line is not None:
            self._keep(StretchLine(before, after, line))
        self.count += 1
        self.size += len(written.text) + len(written.stamp)
        self.longest = max(self.longest, len(written.text))
        self.too_much = self.most is not None and self.size > self.most
        return not self.too_much

    def _keep(self, placed: StretchLine) -> None:
        self.wanted += 1
        self._found.append((self.count, placed))

    @property
    def sure(self) -> bool:
        """Whether anything can be said at all."""
        return self._sure_from is not None

    @property
    def enough(self) -> bool:
        return len(self._found) == self.limit and self._found[0][0] >= self._doubtful

    def stretch(self, whole: bool) -> Stretch:
        found = [placed for number, placed in self._found if whole or number >= self._doubtful]
        start = BEGINNING if whole else self._sure_from
        end = self.until if self.until is not None else self.spot
        return Stretch(lines=found, start=end if start is None else start, end=end, cut=self.wanted > len(self._found))
