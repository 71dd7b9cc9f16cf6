"""Container log lines as log lines of ranks, and positions in the log of a job.

Pod logs have no offsets, so a position is a time and a count. A job may be read from several logs at once (launcher
and workers); a position says for each how far it was read, so that none waits for another, however clocks differ.

Parts of the log of one container: the server can be asked for the last lines or for those since a time, and hung up on;
it can neither be asked for those before a time nor be told a place. So one looks a little further back each time, until
there is enough.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from oarsman import names
from oarsman.backends.base import JobRecord, LogLine, LogQuery
from oarsman.backends.kube.pod_log import BEGINNING, PodLog, Spot, Written, behind, earlier
from oarsman.errors import UnsupportedError, UserError
from oarsman.job import launch
from oarsman.job.job import Implementation, Job
from oarsman.status.tags import Spoken, Tags
from oarsman.text.sentence import Text

_HYDRA: Final = (Implementation.MPICH, Implementation.INTEL)
_HYDRA_OPTIONS: Final = {"-prepend-rank", "--prepend-rank", "-l"}
_ENOUGH: Final = 200  # lines without a single tag: there will be none


class ContainerLogReader:
    """Reads the launcher's lines in their order. Remembers whether any of them said who wrote it."""

    def __init__(self, record: JobRecord, query: LogQuery) -> None:
        job = record.job
        self._job, self._query = job, query
        self._wanted = query.filter(job)
        self._placement = record.status.placement or _expected(job)
        ranks = job.launch.processes if job.launch is not None else None
        words = set(job.launcher.container.argv)
        self._tags = Tags(hydra=job.implementation in _HYDRA or bool(words & _HYDRA_OPTIONS), ranks=ranks)
        self._untagged = 0
        self._newest = ""

    @property
    def takes_all(self) -> bool:
        """No line is left out for what it says, so the server may count them."""
        return not self._query.chooses

    def read(self, written: Iterable[Written]) -> list[LogLine]:
        return [line for one in written if (line := self.take(one)) is not None]

    def take(self, written: Written) -> LogLine | None:
        """The line, if it is wanted."""
        spoken = self._tags.read(written.text)
        self._newest = written.stamp[:26] + "Z"
        if spoken is None:
            return None
        self._untagged += spoken.rank is None
        line = self._line(spoken)
        return line if self._wanted(line) else None

    def rest(self) -> list[LogLine]:
        """What was left without an end of line."""
        return [line for spoken in self._tags.rest() if self._wanted(line := self._line(spoken))]

    def of_worker(self, host: str, written: Iterable[Written]) -> list[LogLine]:
        """A worker's own words."""
        lines = (LogLine(when[:26] + "Z", None, host, "out", text) for when, text in written)
        return [line for line in lines if self._wanted(line)]

    def check(self, *, over: bool = True) -> None:
        """Somebody asked for a rank, and no line says which rank it is from."""
        query = self._query
        if self._tags.seen or not (query.ranks or query.stream) or not self._untagged:
            return
        tagging = self._job.annotation(names.ANNOTATION_TAG_OUTPUT) == "true"
        if not over and (tagging or self._untagged < _ENOUGH):
            return
        if tagging and not query.ranks:
            return  # tagged as asked, and nothing of that kind was written
        template = Text(
            'set the annotation {name}: "true" and run it again; `oarsman submit` and `oarsman run` do so by themselves'
        )
        wrong = Text("the lines of {key} do not say which rank wrote them", key=self._job.key)
        raise UnsupportedError(wrong, hint=Text(template, name=names.ANNOTATION_TAG_OUTPUT))

    def _line(self, spoken: Spoken) -> LogLine:
        launcher = self._job.launcher_host
        host = launcher if spoken.rank is None else self._placement.get(spoken.rank, launcher)
        return LogLine(self._newest, spoken.rank, host, spoken.stream, spoken.text)


def _expected(job: Job) -> Mapping[int, str]:
    """Where ranks are meant to be, while nobody has seen them."""
    if job.launch is None:
        return {}
    hydra = True if job.implementation in _HYDRA else None
    hosts = launch.expected_placement(job.launch, job.hosts, job.slots_per_worker, hydra=hydra)
    return dict(enumerate(hosts or ()))


LAUNCHER: Final = 0  # worker n is n + 1
_FORM: Final = re.compile(r"([1-9][0-9]{0,8})((?:\.[0-9]{1,7}-(?:0|[0-9]{23})-[0-9]{1,15})*)")
_DIGITS: Final = re.compile(r"[^0-9]")
_LONGEST: Final = 100_000


@dataclass(frozen=True, slots=True)
class LogPosition:
    attempt: int
    spots: Mapping[int, Spot] = field(default_factory=dict)

    def spot(self, source: int) -> Spot:
        """How far that log was read. One that was not asked for then goes on where the others are."""
        if source in self.spots:
            return self.spots[source]
        newest = max((stamp for stamp, _ in self.spots.values()), default="")
        return (newest, 0) if newest else BEGINNING

    def moved(self, source: int, spot: Spot) -> LogPosition:
        return LogPosition(self.attempt, {**self.spots, source: spot})

    def of(self, sources: Iterable[int]) -> LogPosition:
        """The same place, for these logs."""
        return LogPosition(self.attempt, {source: self.spot(source) for source in sources})

    @property
    def beginning(self) -> bool:
        return all(spot == BEGINNING for spot in self.spots.values())

    @property
    def text(self) -> str:
        return str(self.attempt) + "".join(
            f".{source}-{_DIGITS.sub('', stamp) or '0'}-{times}" for source, (stamp, times) in self.spots.items()
        )


def place(text: str, *, field: str) -> LogPosition:
    found = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
    try:
        if found is None:
            raise ValueError
        parts = (part.split("-") for part in found[2].split(".")[1:])
        return LogPosition(
            int(found[1]), {int(source): (_stamp(digits), int(times)) for source, digits, times in parts}
        )
    except ValueError:
        wrong = Text("{text} is no place in a log of this job", text=repr(text[:80]))
        raise UserError(wrong, field=field, hint=Text("hand back what an earlier page said")) from None


def _stamp(digits: str) -> str:
    if digits == "0":
        return ""
    moment = datetime.strptime(digits[:14], "%Y%m%d%H%M%S")
    if moment.year < 1970:
        raise ValueError
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{digits[14:]}Z"


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

    async with aclosing(source.open(after).read(skipped=skip)) as batches:
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
        async with aclosing(log.read(tail=tail, since_time=since_time)) as batches:
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
