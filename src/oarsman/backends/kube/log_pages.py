"""Pages of a job's log: after a position, before one, the last ones, or as lines come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final, Unpack

from oarsman.backends.base import JobRecord, LogPage, LogQuery, PlacedLine, Where
from oarsman.backends.kube import log_lines, logs, lookups
from oarsman.backends.kube.log_lines import LAUNCHER, LogPosition, LogSource
from oarsman.backends.kube.pod_log import BEGINNING, Spot, Written, behind
from oarsman.engines.kube.client import Kube
from oarsman.errors import UserError
from oarsman.portal import running
from oarsman.text.sentence import Text

MOST_LINES = 10_000


async def page(kube: Kube, record: JobRecord, query: LogQuery, **where: Unpack[Where]) -> LogPage:
    after, before, limit = where.get("after"), where.get("before"), where.get("limit", 500)
    if after is not None and before is not None:
        raise UserError(Text("a page is after a place or before one, not both"), field="before")
    if limit < 1:
        raise UserError(Text("{limit} lines are no page", limit=limit), field="limit")
    limit = min(limit, MOST_LINES)
    field = "after" if after is not None else "before"
    at = given_place(after if after is not None else before, query, field=field)
    number = at.attempt if at is not None else query.attempt
    launcher = await logs.launcher_of(kube, record.job, number)
    if launcher is None and not query.workers:
        if at is None:
            return kept_page(record, query.attempt)
        return LogPage(lines=(), before=None, after=at.text, attempt=at.attempt)
    sources = _sources(kube, record, query, launcher)
    attempt = number or (lookups.attempt_of(launcher) if launcher is not None else 1)
    at = None if at is None else at.of(sources)
    if at is not None and after is not None:
        return _onwards(at, {s: await log_lines.onwards(m, at.spot(s), limit) for s, m in sources.items()}, limit)
    found = {
        source: await (log_lines.last(m, limit) if at is None else log_lines.back(m, at.spot(source), limit))
        for source, m in sources.items()
    }
    return _back(attempt, found, limit)


def given_place(text: str | None, query: LogQuery, *, field: str) -> LogPosition | None:
    if text is None:
        return None
    found = log_lines.place(text, field=field)
    if query.attempt not in (None, found.attempt):
        template = Text("that is a place in the log of attempt {theirs}, not {asked}")
        raise UserError(Text(template, theirs=found.attempt, asked=query.attempt), field=field)
    return found


def _sources(kube: Kube, record: JobRecord, query: LogQuery, launcher: lookups.Pod | None) -> dict[int, LogSource]:
    job = record.job

    def reader() -> log_lines.ContainerLogReader:
        return log_lines.ContainerLogReader(record, query)

    found = {}
    if launcher is not None:
        container = job.launcher.container.name
        found[LAUNCHER] = LogSource(
            partial(logs.log_of_launcher, kube, job, launcher),
            reader,
            None,
            lookups.began(launcher, container),
            lookups.ended(launcher, container),
        )
    for index in query.workers:
        began = f"{record.created_at:%Y-%m-%dT%H:%M:%SZ}"
        found[index + 1] = LogSource(
            partial(logs.log_of_worker, kube, job, index), reader, job.worker_host(index), began, False
        )
    return found


def _onwards(at: LogPosition, found: Mapping[int, log_lines.Stretch], limit: int) -> LogPage:
    merged = _merged(found)
    lines, behind = _placed(at, merged[:limit])
    left = {source for source, _ in merged[limit:]}
    for source, stretch in found.items():
        if source not in left:
            behind = behind.moved(source, stretch.end)
    return _page(at, lines, behind)


def _back(attempt: int, found: Mapping[int, log_lines.Stretch], limit: int) -> LogPage:
    merged = _merged(found)
    kept = merged[-limit:]
    start = LogPosition(attempt, {source: _start(source, stretch, merged, kept) for source, stretch in found.items()})
    lines, _ = _placed(start, kept)
    end = LogPosition(attempt, {source: stretch.end for source, stretch in found.items()})
    return _page(start, lines, end)


def _page(start: LogPosition, lines: Iterable[PlacedLine], end: LogPosition) -> LogPage:
    before = None if start.beginning else start.text
    return LogPage(lines=tuple(lines), before=before, after=end.text, attempt=start.attempt)


def _start(
    source: int,
    stretch: log_lines.Stretch,
    merged: Sequence[tuple[int, log_lines.StretchLine]],
    kept: Sequence[tuple[int, log_lines.StretchLine]],
) -> Spot:
    """Where the next page above has to end, in one log: before what is shown of it."""
    shown = [placed for one, placed in kept if one == source]
    if not stretch.cut and len(shown) == sum(one == source for one, _ in merged):
        return stretch.start  # nothing was left out, so nothing has to be looked at again
    return shown[0].before if shown else stretch.end


def _merged(found: Mapping[int, log_lines.Stretch]) -> list[tuple[int, log_lines.StretchLine]]:
    """By time, and each log in its own order."""
    lines = [(source, placed) for source, stretch in found.items() for placed in stretch.lines]
    return sorted(lines, key=lambda one: one[1].after[0])


def _placed(
    start: LogPosition, lines: Sequence[tuple[int, log_lines.StretchLine]]
) -> tuple[tuple[PlacedLine, ...], LogPosition]:
    found = []
    for source, placed in lines:
        start = start.moved(source, placed.after)
        found.append(PlacedLine(start.text, placed.line))
    return tuple(found), start


def kept_page(record: JobRecord, attempt: int | None) -> LogPage:
    """What the status kept of a pod that is gone; an empty page where there was no pod yet."""
    lines = logs.kept(record, attempt)
    if lines == []:
        raise logs.gone(record, lines)
    number = attempt or max((one.number for one in record.status.attempts), default=1)
    behind = LogPosition(number).text
    found = tuple(PlacedLine(behind, line) for line in lines or ())
    return LogPage(lines=found, before=None, after=behind, attempt=number)


_LINES: Final = 500
_AHEAD: Final = 4 * _LINES  # lines held that nobody has taken yet


async def pages(kube: Kube, record: JobRecord, query: LogQuery, after: str | None) -> AsyncGenerator[LogPage]:
    """From a place, or the beginning, until the attempt is over."""
    at = given_place(after, query, field="after")
    number = at.attempt if at is not None else query.attempt or await logs.newest_attempt(kube, record)
    launcher = await logs.begun(kube, record, number)
    record = await logs.as_it_is_now(kube, record)
    if launcher is None:
        if at is None and (page := kept_page(record, number)).lines:
            yield page
        return
    at = (at or LogPosition(number)).of([LAUNCHER, *(index + 1 for index in query.workers)])
    ear = _Ear(_sources(kube, record, query, launcher), log_lines.ContainerLogReader(record, query), query, at)
    async with aclosing(ear.pages()) as found:
        async for page in found:
            yield page


class _Ear:
    """Listens to the launcher, and to the workers that were asked for, while the launcher speaks."""

    def __init__(
        self, sources: Mapping[int, LogSource], reader: log_lines.ContainerLogReader, query: LogQuery, at: LogPosition
    ) -> None:
        self._sources, self._reader, self._query, self._at = sources, reader, query, at
        self._heard: asyncio.Queue[tuple[int, Written | BaseException | None]] = asyncio.Queue(_AHEAD)
        self._from = at.spot(LAUNCHER)
        self._passed = BEGINNING  # of what comes before that place and is only listened to

    async def _listen(self, source: int) -> None:
        end: BaseException | None = None
        try:
            log = self._sources[source].open(self._at.spot(source))
            skipped = self._skip if source == LAUNCHER else None
            async with aclosing(log.read(since=self._query.since, follow=True, skipped=skipped)) as batches:
                async for batch in batches:
                    for written in batch:
                        await self._heard.put((source, written))
        except Exception as error:
            end = error
        if source == LAUNCHER or end is not None:
            await self._heard.put((source, end))

    def _skip(self, written: Written) -> None:
        self._passed = behind(self._passed, written.stamp)
        self._reader.take(written)

    async def pages(self) -> AsyncGenerator[LogPage]:
        async with running(*map(self._listen, self._sources)):
            over = False
            while not over or not self._heard.empty():
                heard = [await self._heard.get()]
                while len(heard) < _LINES and not self._heard.empty():
                    heard.append(self._heard.get_nowait())
                before, lines = self._at, []
                for source, said in heard:
                    if isinstance(said, Written):
                        lines += self._lines(source, said)
                    elif said is not None:
                        raise said
                    else:
                        over = True
                if over and self._heard.empty():
                    lines += self._rest()
                if lines:
                    yield _page(before, lines, self._at)
                if not self._query.workers:
                    self._reader.check(over=over)

    def _lines(self, source: int, written: Written) -> list[PlacedLine]:
        self._at = self._at.moved(source, behind(self._at.spot(source), written.stamp))
        line = self._sources[source].take(self._reader, written)
        return [PlacedLine(self._at.text, line)] if line is not None else []

    def _rest(self) -> list[PlacedLine]:
        """Places behind the last line: there will be no other."""
        spot = self._at.spot(LAUNCHER)
        stamp, times = self._passed if spot == self._from else spot
        found: list[PlacedLine] = []
        for number, line in enumerate(self._reader.rest(), times + 1):
            if (stamp, number) > self._from:
                self._at = self._at.moved(LAUNCHER, (stamp, number))
                found.append(PlacedLine(self._at.text, line))
        return found
