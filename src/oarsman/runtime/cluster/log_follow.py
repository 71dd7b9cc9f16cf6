"""What a job writes, in pages, as it comes. Lines that are there at the same time share a page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Final

from oarsman.engines.kube.client import Kube
from oarsman.runtime.cluster import logs, pods
from oarsman.runtime.cluster.lines import Reader
from oarsman.runtime.cluster.log_pages import given_place, kept_page
from oarsman.runtime.cluster.log_places import LAUNCHER, Place
from oarsman.runtime.cluster.podlog import BEGINNING, PodLog, Written, behind, there
from oarsman.runtime.jobs import JobRecord, LogLine, LogPage, LogQuery, PlacedLine

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
    at = (at or Place(number)).of([LAUNCHER, *(index + 1 for index in query.workers)])
    async with _Ear(kube, record, query, launcher, at) as ear, aclosing(ear.pages()) as found:
        async for page in found:
            yield page


class _Ear:
    """Listens to the launcher, and to the workers that were asked for, while the launcher speaks."""

    def __init__(self, kube: Kube, record: JobRecord, query: LogQuery, launcher: pods.Pod, at: Place) -> None:
        self._kube, self._record, self._query, self._launcher, self._at = kube, record, query, launcher, at
        self._reader = Reader(record, query)
        self._heard: asyncio.Queue[tuple[int, Written | BaseException | None]] = asyncio.Queue(_AHEAD)
        self._tasks: list[asyncio.Task[None]] = []
        self._from = at.spot(LAUNCHER)
        self._passed = BEGINNING  # of what comes before that place and is only listened to

    async def __aenter__(self) -> _Ear:
        job = self._record.job
        launcher = logs.log_of_launcher(self._kube, job, self._launcher, self._at.spot(LAUNCHER))
        self._tasks.append(asyncio.create_task(self._listen(LAUNCHER, launcher)))
        for index in self._query.workers:
            log = logs.log_of_worker(self._kube, job, index, self._at.spot(index + 1))
            self._tasks.append(asyncio.create_task(self._listen(index + 1, log)))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self, source: int, log: PodLog) -> None:
        end: BaseException | None = None
        try:
            skipped = self._skip if source == LAUNCHER else None
            async with aclosing(there(log.read(since=self._query.since, follow=True, skipped=skipped))) as batches:
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
                yield self._page(before, lines)
            if not self._query.workers:
                self._reader.check(over=over)

    def _lines(self, source: int, written: Written) -> list[PlacedLine]:
        self._at = self._at.moved(source, behind(self._at.spot(source), written.stamp))
        if source == LAUNCHER:
            line = self._reader.take(written)
            return self._placed([line] if line is not None else [])
        return self._placed(self._reader.of_worker(self._record.job.worker_host(source - 1), [written]))

    def _rest(self) -> list[PlacedLine]:
        """Places behind the last line: there will be no other."""
        spot = self._at.spot(LAUNCHER)
        stamp, times = self._passed if spot == self._from else spot
        found: list[PlacedLine] = []
        for number, line in enumerate(self._reader.rest(), times + 1):
            if (stamp, number) > self._from:
                self._at = self._at.moved(LAUNCHER, (stamp, number))
                found += self._placed([line])
        return found

    def _placed(self, lines: Iterable[LogLine]) -> list[PlacedLine]:
        return [PlacedLine(self._at.text, line) for line in lines]

    def _page(self, before: Place, lines: list[PlacedLine]) -> LogPage:
        return LogPage(
            lines=tuple(lines), before=None if before.beginning else before.text, after=self._at.text,
            attempt=before.attempt,
        )  # fmt: skip
