"""What the jobs of this machine wrote: all of it, page by page, or as it comes.

A place is "attempt:offset" in the attempt's merged log, always where a line begins. Nobody else takes it to pieces.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator
from contextlib import nullcontext
from pathlib import Path

from oarsman.backends.base import LogLine, LogPage, LogQuery, PlacedLine
from oarsman.backends.local.follow import Listening
from oarsman.errors import UserError
from oarsman.job.job import Job
from oarsman.status.codec import from_wire
from oarsman.store import logs
from oarsman.store.jobs import JobStore, StoredJob
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text

_PLACE = re.compile(r"([1-9][0-9]{0,8}):([0-9]{1,18})", re.ASCII)
_MOST_LINES = 10_000
_FOLLOWED_LINES = 1000
_GATHER = 0.05  # lines that come this close together make one page


class LocalLogs:
    def __init__(self, paths: Paths, store: JobStore, listening: Listening) -> None:
        self._paths = paths
        self._store = store
        self._listening = listening

    # -- everything ----------------------------------------------------------------------------------
    async def lines(self, stored: StoredJob, job: Job, query: LogQuery) -> AsyncGenerator[list[LogLine], None]:
        """What is there; with `follow` every line until the attempt is over, whose last lines are written before its
        end is on record."""
        attempt, path, reader = await asyncio.to_thread(self._reader, stored.uid, job, query)
        async with self._listening(path.parent) if query.follow else nullcontext() as changes:
            while True:
                over = changes is None or await asyncio.to_thread(self._attempt_over, stored.uid, attempt)
                blocks = reader.news()
                while (batch := await asyncio.to_thread(next, blocks, None)) is not None:
                    if batch:
                        yield batch
                if changes is None or over:
                    return
                await changes.wait()

    def _reader(self, uid: str, job: Job, query: LogQuery) -> tuple[int, Path, logs.MergedLogReader]:
        attempt = query.attempt or self._newest(uid)
        path = logs.merged_path(self._paths.job(uid), attempt)
        wanted = _filter(job, query)
        return attempt, path, logs.MergedLogReader(path, wanted=wanted, tail=query.tail, floor=_floor(path, query))

    def _attempt_over(self, uid: str, number: int) -> bool:
        stored = self._store.by_uid(uid)
        if stored is None:
            return True
        status = from_wire(stored.status)
        ended = any(attempt.number == number and attempt.ended is not None for attempt in status.attempts)
        return ended or status.finished

    # -- pages ---------------------------------------------------------------------------------------
    def page(
        self, stored: StoredJob, job: Job, query: LogQuery, *, after: str | None, before: str | None, limit: int
    ) -> LogPage:
        if after is not None and before is not None:
            raise UserError(Text("a page is after a place or before one, not both"), field="before")
        if not 1 <= limit <= _MOST_LINES:
            raise UserError(
                Text("a page has 1 to {most} lines, not {given}", most=_MOST_LINES, given=limit), field="limit"
            )
        if after is not None:
            attempt, path, offset = self._place(stored.uid, query, after, "after")
            return _page(attempt, logs.down(path, offset, _look(path, job, query, limit)))
        if before is not None:
            attempt, path, offset = self._place(stored.uid, query, before, "before")
            return _page(attempt, logs.up(path, offset, _look(path, job, query, limit)))
        attempt = query.attempt or self._newest(stored.uid)
        path = logs.merged_path(self._paths.job(stored.uid), attempt)
        return _page(attempt, logs.up(path, None, _look(path, job, query, limit)))

    async def follow_pages(
        self, stored: StoredJob, job: Job, query: LogQuery, after: str | None
    ) -> AsyncGenerator[LogPage, None]:
        """All there is by now, and what comes. A page without lines only says how far it has come."""
        uid = stored.uid
        attempt, path, offset = await asyncio.to_thread(self._start, uid, query, after)
        look = await asyncio.to_thread(_look, path, job, query, _FOLLOWED_LINES)
        over = await asyncio.to_thread(self._attempt_over, uid, attempt)  # then nothing is set up to wait for anything
        async with nullcontext() if over else self._listening(path.parent) as changes:
            while True:
                over = changes is None or await asyncio.to_thread(self._attempt_over, uid, attempt)
                shown = time.monotonic()
                while (found := await asyncio.to_thread(logs.down, path, offset, look)).end != offset:
                    offset, shown = found.end, time.monotonic()
                    yield _page(attempt, found)
                if changes is None or over:
                    return
                await changes.wait()
                await asyncio.sleep(shown + _GATHER - time.monotonic())

    def _start(self, uid: str, query: LogQuery, after: str | None) -> tuple[int, Path, int]:
        if after is not None:
            return self._place(uid, query, after, "after")
        attempt = query.attempt or self._newest(uid)
        return attempt, logs.merged_path(self._paths.job(uid), attempt), 0

    def _newest(self, uid: str) -> int:
        return max(logs.attempts(self._paths.job(uid)), default=1)

    def _place(self, uid: str, query: LogQuery, text: str, field: str) -> tuple[int, Path, int]:
        match = _PLACE.fullmatch(text)
        if match is not None:
            attempt, offset = int(match[1]), int(match[2])
            path = logs.merged_path(self._paths.job(uid), attempt)
            if query.attempt in (None, attempt) and logs.is_place(path, offset):
                return attempt, path, offset
        raise UserError(
            Text("{text} is no place in this log", text=f"{text!r}"),
            field=field,
            hint=Text("begin anew, and hand places back as you got them"),
        )


def _page(attempt: int, found: logs.FoundLines) -> LogPage:
    return LogPage(
        lines=tuple(PlacedLine(f"{attempt}:{offset}", line) for offset, line in found.lines),
        before=f"{attempt}:{found.start}" if found.start > 0 else None,
        after=f"{attempt}:{found.end}",
        attempt=attempt,
    )


def _look(path: Path, job: Job, query: LogQuery, limit: int) -> logs.Look:
    return logs.Look(
        wanted=_filter(job, query), promising=_promising(job, query), limit=limit, floor=_floor(path, query)
    )


def _floor(path: Path, query: LogQuery) -> int:
    """Where lines begin that may be late enough: what is older is never read."""
    return logs.start_of(path, query.since) if query.since is not None else 0


def _promising(job: Job, query: LogQuery) -> logs.Promising:
    """Most blocks of a long log hold nothing of what is rare, and one look at the whole block shows it."""
    marks = [
        [f"Z {rank} ".encode() for rank in query.ranks],
        [f" {job.worker_host(index)} ".encode() for index in query.workers],
        [b"Z - "] if query.launcher_only else [],
        [f" {query.stream} ".encode()] if query.stream is not None else [],
    ]
    needed = [group for group in marks if group]
    search = logs.Search(query.search) if query.search else None

    def promising(block: bytes) -> bool:
        there = all(any(mark in block for mark in group) for group in needed)
        return there and (search is None or search.in_block(block))

    return promising


def _filter(job: Job, query: LogQuery) -> logs.Wanted:
    if query == LogQuery(attempt=query.attempt, follow=query.follow, tail=query.tail):
        return None
    hosts = {job.worker_host(index) for index in query.workers}
    since = logs.stamp(query.since) if query.since is not None else ""
    search = logs.Search(query.search or "")

    def wanted(line: LogLine) -> bool:
        return (
            (not query.ranks or line.rank in query.ranks)
            and (not hosts or line.host in hosts)
            and (not query.launcher_only or line.rank is None)
            and (query.stream is None or line.stream == query.stream)
            and line.stamp >= since
            and search(line.text)
        )

    return wanted
