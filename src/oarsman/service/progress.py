"""How far a job is, from its own log lines.

Each look reads on from where the last one ended; of very much at once, the middle is left out.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from oarsman import names
from oarsman.backends.base import Backend, JobRecord, LogLine, LogPage, LogQuery, PlacedLine
from oarsman.errors import NotFoundError
from oarsman.service import views
from oarsman.service.models import MetricPoint, MetricSeries, Progress, RankProgress, RankView
from oarsman.status.log_metrics import EPOCH, STEP, told
from oarsman.status.stragglers import Pace, behind

OLDEST: Final = 60_000  # lines of one look that are read in their order
NEWEST: Final = 40_000  # and, where that was not all, the last ones
_PAGE: Final = 10_000


class LogReading:
    """Of one attempt. `complete`: no line was left out so far."""

    def __init__(self, jobs: Backend, key: str) -> None:
        self._jobs, self._key = jobs, key
        self._place: str | None = None
        self._stamp = ""  # of the last line read
        self.attempt: int | None = None
        self.complete = True

    async def news(self) -> AsyncGenerator[Sequence[LogLine], None]:
        """Lines that were not there before, oldest first, a page at a time."""
        if self._place is None:
            yield await self._beginning()
        left = OLDEST
        while left > 0:
            page = await self._jobs.log_page(self._key, self._query, after=self._place, limit=min(left, _PAGE))
            if not page.lines:
                return
            left -= len(page.lines)
            yield self._read(page)
        for lines in await self._newest():
            yield lines

    @property
    def _query(self) -> LogQuery:
        return LogQuery(attempt=self.attempt)

    def _read(self, page: LogPage) -> Sequence[LogLine]:
        self._place = page.after
        if page.lines:
            self._stamp = page.lines[-1].line.stamp
        return [placed.line for placed in page.lines]

    async def _beginning(self) -> Sequence[LogLine]:
        """A place is needed to ask for a page from above, and only the first page of those that follow gives one."""
        last = await self._jobs.log_page(self._key, self._query, limit=1)
        self.attempt = last.attempt
        if last.before is None:
            return self._read(last)
        async with aclosing(self._jobs.log_follow(self._key, self._query)) as pages:
            async for page in pages:
                if page.lines:
                    return self._read(page)
        return self._read(last)

    async def _newest(self) -> Sequence[Sequence[LogLine]]:
        """From the end upwards, until something known is met or it is enough."""
        found: list[Sequence[LogLine]] = []
        page = await self._jobs.log_page(self._key, self._query, limit=_PAGE)
        end, left = page.after, NEWEST
        while True:
            lines, met = self._unknown(page.lines)
            found.append([placed.line for placed in lines])
            left -= len(page.lines)
            if met or page.before in (None, self._place):
                break
            if left <= 0 or not page.lines:
                self.complete = False
                break
            page = await self._jobs.log_page(self._key, self._query, before=page.before, limit=min(left, _PAGE))
        self._place = end
        self._stamp = next((lines[-1].stamp for lines in found if lines), self._stamp)
        return found[::-1]

    def _unknown(self, lines: Sequence[PlacedLine]) -> tuple[Sequence[PlacedLine], bool]:
        """Those behind the last one read, and whether that one was among them."""
        for index, placed in enumerate(lines):
            if placed.after == self._place:
                return lines[index + 1 :], True
        if lines and lines[0].line.stamp <= self._stamp:  # clocks decide where places are written in another way
            return [placed for placed in lines if placed.line.stamp > self._stamp], True
        return lines, False


MOST_POINTS: Final = 500
MOST_SERIES: Final = 12
_MOST_NAMES: Final = 24
_MOST_RANKS: Final = 10_000
_MOST_JOBS: Final = 32  # whose reading is kept
_SECOND: Final = len("2026-01-01T00:00:00")


class _Point(NamedTuple):
    stamp: str
    value: float
    step: float | None

    @property
    def model(self) -> MetricPoint:
        return MetricPoint(time=datetime.fromisoformat(self.stamp), value=self.value, step=self.step)


@dataclass(slots=True)
class _Thinned:
    """Every point while they are few; then every second one, every fourth, and always the last."""

    rank: int | None
    points: list[_Point] = field(default_factory=list)
    last: _Point | None = None
    count: int = 0
    stride: int = 1

    def add(self, point: _Point) -> None:
        if self.count % self.stride == 0:
            self.points.append(point)
            if len(self.points) > 2 * MOST_POINTS:
                self.points = self.points[::2]
                self.stride *= 2
        self.last = point
        self.count += 1

    def thin(self) -> Sequence[_Point]:
        points = self.points if self.last is self.points[-1] or self.last is None else [*self.points, self.last]
        if len(points) <= MOST_POINTS:
            return points
        apart = (len(points) - 1) / (MOST_POINTS - 1)
        return [points[round(number * apart)] for number in range(MOST_POINTS)]


@dataclass(slots=True)
class _Rank:
    """What one rank wrote."""

    host: str
    lines: int = 0
    first: str = ""
    last: str = ""
    beats: int = 0  # seconds in which it wrote anything
    longest_gap: float = 0.0
    step: float | None = None
    round: int = 0

    def heard(self, stamp: str) -> None:
        self.lines += 1
        if stamp[:_SECOND] == self.last[:_SECOND]:
            self.last = stamp
            return
        if self.last:
            gap = (datetime.fromisoformat(stamp) - datetime.fromisoformat(self.last)).total_seconds()
            self.longest_gap = max(self.longest_gap, gap)
        self.first = self.first or stamp
        self.last = stamp
        self.beats += 1

    def reached(self, step: float) -> None:
        if self.step is not None and step < self.step:
            self.round += 1
        self.step = step

    @property
    def pace(self) -> Pace:
        return Pace(
            step=self.step,
            round=self.round,
            first=_time(self.first),
            last=_time(self.last),
            beats=self.beats,
            longest_gap=self.longest_gap,
        )


def _time(stamp: str) -> datetime | None:
    return datetime.fromisoformat(stamp) if stamp else None


class LogAccount:
    """What the lines of one attempt added up to. Its size does not grow with the log."""

    def __init__(self) -> None:
        self._series: dict[str, _Thinned] = {}
        self._ranks: dict[int, _Rank] = {}

    def note(self, lines: Sequence[LogLine]) -> None:
        for line in lines:
            rank = self._rank(line)
            if rank is not None:
                rank.heard(line.stamp)
            found = told(line.text)
            if found is None:
                continue
            if rank is not None and found.step is not None:
                rank.reached(found.step)
            for name, value in found.values.items():
                series = self._series_of(name, line.rank)
                if series is not None:
                    series.add(_Point(line.stamp, value, found.step if name != STEP else None))

    def _rank(self, line: LogLine) -> _Rank | None:
        if line.rank is not None and line.rank not in self._ranks and len(self._ranks) < _MOST_RANKS:
            self._ranks[line.rank] = _Rank(line.host)
        return self._ranks.get(line.rank) if line.rank is not None else None

    def _series_of(self, name: str, rank: int | None) -> _Thinned | None:
        """Where every rank says the same thing, the lowest one speaks for all."""
        known = self._series.get(name)
        lower = known is not None and rank is not None and (known.rank is None or rank < known.rank)
        if lower or (known is None and len(self._series) < _MOST_NAMES):
            known = self._series[name] = _Thinned(rank)
        return known if known is not None and known.rank == rank else None

    # -- as models -----------------------------------------------------------------------------------
    def series(self) -> Sequence[MetricSeries]:
        """A number that came once is no series. What says most comes first."""
        often = [(name, found) for name, found in self._series.items() if found.count > 1]
        often.sort(key=lambda one: one[0] in (STEP, EPOCH))
        return [
            MetricSeries(name=name, rank=found.rank, points=[point.model for point in found.thin()])
            for name, found in often[:MOST_SERIES]
        ]

    def ranks(self, planned: Sequence[RankView], now: datetime, *, running: bool) -> Sequence[RankProgress]:
        """`running`: the job is. A rank that nobody has seen may have tagged lines all the same, as on Kubernetes."""
        places = {one.rank: one for one in planned}
        for number, rank in self._ranks.items():
            places.setdefault(number, RankView(rank=number, host=rank.host))
        nothing = _Rank("")
        reasons = behind({number: self._ranks.get(number, nothing).pace for number in places if running}, now)
        return [
            RankProgress(
                rank=number,
                host=place.host,
                state=place.state,
                exit_code=place.exit_code,
                lines=rank.lines,
                last_output=_time(rank.last),
                step=rank.step,
                behind=reasons.get(number, ""),
            )
            for number, place in sorted(places.items())
            for rank in [self._ranks.get(number, nothing)]
        ]


class _Followed:
    """One job as far as it was read."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._reading: LogReading | None = None
        self._account = LogAccount()
        self._over = False  # it had ended when it was last read: nothing can follow

    async def look(self, jobs: Backend, record: JobRecord, key: str, now: datetime) -> Progress:
        async with self._lock:
            if not self._over:
                with suppress(NotFoundError):  # the log went with its pod; what was read of it stays
                    await self._read(jobs, record, key)
                    self._over = record.status.finished
            running = record.status.phase == names.RUNNING
            return Progress(
                series=self._account.series(),
                ranks=self._account.ranks(tuple(views.ranks(record)), now, running=running),
                complete=self._reading is None or self._reading.complete,
            )

    async def _read(self, jobs: Backend, record: JobRecord, key: str) -> None:
        if self._reading is None or await self._began_again(jobs, record, key, self._reading):
            self._reading, self._account = LogReading(jobs, key), LogAccount()
        async with aclosing(self._reading.news()) as pages:
            async for lines in pages:  # looking at ten thousand takes too long for the event loop
                await asyncio.to_thread(self._account.note, lines)

    @staticmethod
    async def _began_again(jobs: Backend, record: JobRecord, key: str, reading: LogReading) -> bool:
        """Whether another attempt writes now. Its log comes a moment after its number."""
        newest = max((attempt.number for attempt in record.status.attempts), default=1)
        if reading.attempt is None or newest <= reading.attempt:
            return False
        return (await jobs.log_page(key, limit=1)).attempt != reading.attempt


class ProgressKept:
    """What was read of the logs of the jobs looked at last, for one backend."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Followed] = OrderedDict()

    async def of(self, jobs: Backend, record: JobRecord, now: datetime, *, key: str = "") -> Progress:
        """key: what the backend calls it, where that is an earlier run."""
        name = record.job.uid or record.job.key
        followed = self._kept.setdefault(name, _Followed())
        self._kept.move_to_end(name)
        while len(self._kept) > _MOST_JOBS:
            self._kept.popitem(last=False)
        # Whoever goes away while lines are read leaves the reading to the next one, not half of it.
        return await asyncio.shield(followed.look(jobs, record, key or record.job.key, now))
