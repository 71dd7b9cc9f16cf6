"""What the jobs of this machine wrote: all of it, page by page, or as it comes.

A place is "attempt:offset" in the attempt's merged log, always where a line begins. Nobody else takes it to pieces.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from oarsman.backends.base import EVERYTHING, LogLine, LogPage, LogQuery, PlacedLine
from oarsman.backends.local.follow import Listening
from oarsman.errors import NotFoundError, UserError
from oarsman.job.job import Job
from oarsman.portal import in_thread
from oarsman.status.codec import from_wire
from oarsman.store import logs
from oarsman.store.jobs import JobStore, StoredJob
from oarsman.store.live_lines import LiveLines, LiveReader
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text

_PLACE = re.compile(r"([1-9][0-9]{0,8}):([0-9]{1,18})", re.ASCII)
_MOST_LINES = 10_000
_FOLLOWED_LINES = 1000
_GATHER = 0.05  # lines that come this close together make one page
_LIVE_SECONDS = 0.1  # how often lines that have not ended yet are looked at


class LocalLogs:
    def __init__(
        self, paths: Paths, store: JobStore, find: Callable[[str], tuple[StoredJob, Job]], listening: Listening
    ) -> None:
        self._paths = paths
        self._store = store
        self._find = find
        self._listening = listening

    async def lines(self, key: str, query: LogQuery = EVERYTHING) -> AsyncGenerator[Sequence[LogLine], None]:
        """What is there; with `follow` every line until the attempt is over, whose last lines are written before its
        end is on record."""

        def opened() -> tuple[str, int, Path, logs.MergedLogReader]:
            stored, job = self._of(key, query)
            attempt, path, _ = self._start(stored.uid, query)
            wanted, floor = _wanted(job, query), _floor(path, query)
            return stored.uid, attempt, path, logs.MergedLogReader(path, wanted=wanted, tail=query.tail, floor=floor)

        uid, attempt, path, reader = await asyncio.to_thread(opened)
        live = _Live(self._find, key, query, path.parent) if query.live else None
        async with self._listening(path.parent) if query.follow else nullcontext() as changes:
            while True:
                over = changes is None or await asyncio.to_thread(self._attempt_over, uid, attempt)
                blocks = reader.news()
                while (batch := await asyncio.to_thread(next, blocks, None)) is not None:
                    if batch:
                        yield batch
                if live is not None and (begun := await asyncio.to_thread(live.news, over)) is not None:
                    yield begun
                if changes is None or over:
                    return
                await changes.wait()
                if live is not None:
                    await asyncio.sleep(live.pause())

    def _attempt_over(self, uid: str, number: int) -> bool:
        stored = self._store.by_uid(uid)
        if stored is None:
            return True
        status = from_wire(stored.status)
        ended = any(attempt.number == number and attempt.ended is not None for attempt in status.attempts)
        return ended or status.finished

    # -- pages ---------------------------------------------------------------------------------------
    @in_thread
    def page(
        self,
        key: str,
        query: LogQuery = EVERYTHING,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int = 500,
    ) -> LogPage:
        """With filters or a search it looks at a bounded part of the log: a page may have fewer lines than `limit`, or
        none, and still have a `before`; one after a place is at the end only if `after` stays the same."""
        stored, job = self._of(key, query)
        if after is not None and before is not None:
            raise UserError(Text("a page is after a place or before one, not both"), field="before")
        if not 1 <= limit <= _MOST_LINES:
            wrong = Text("a page has 1 to {most} lines, not {given}", most=_MOST_LINES, given=limit)
            raise UserError(wrong, field="limit")
        attempt, path, offset = self._start(stored.uid, query, after=after, before=before)
        look = _look(path, job, query, limit)
        if after is not None:
            return _page(attempt, logs.down(path, offset, look))
        page = _page(attempt, logs.up(path, offset if before is not None else None, look))
        if before is not None or not query.live or self._attempt_over(stored.uid, attempt):
            return page
        return replace(page, live=tuple(_Live(self._find, key, query, path.parent).news(over=False) or ()))

    async def follow(
        self, key: str, query: LogQuery = EVERYTHING, *, after: str | None = None
    ) -> AsyncGenerator[LogPage, None]:
        """All there is by now, and what comes. A page without lines only says how far it has come."""

        def opened() -> tuple[str, int, Path, int, logs.Look]:
            stored, job = self._of(key, query)
            attempt, path, offset = self._start(stored.uid, query, after=after)
            return stored.uid, attempt, path, offset, _look(path, job, query, _FOLLOWED_LINES)

        uid, attempt, path, offset, look = await asyncio.to_thread(opened)
        live = _Live(self._find, key, query, path.parent) if query.live else None
        over = await asyncio.to_thread(self._attempt_over, uid, attempt)  # then nothing is set up to wait for anything
        async with nullcontext() if over else self._listening(path.parent) as changes:
            while True:
                over = changes is None or await asyncio.to_thread(self._attempt_over, uid, attempt)
                shown = time.monotonic()
                while (found := await asyncio.to_thread(logs.down, path, offset, look)).end != offset:
                    offset, shown = found.end, time.monotonic()
                    yield _page(attempt, found)
                if live is not None and (begun := await asyncio.to_thread(live.news, over)) is not None:
                    place = f"{attempt}:{offset}"
                    yield LogPage(lines=(), before=None, after=place, attempt=attempt, live=tuple(begun))
                if changes is None or over:
                    return
                await changes.wait()
                await asyncio.sleep(max(shown + _GATHER - time.monotonic(), live.pause() if live is not None else 0.0))

    def _of(self, key: str, query: LogQuery) -> tuple[StoredJob, Job]:
        stored, job = self._find(key)
        if query.uid not in ("", stored.uid):
            raise NotFoundError(Text("there is no job {key}", key=key))
        return stored, job

    def _start(
        self, uid: str, query: LogQuery, *, after: str | None = None, before: str | None = None
    ) -> tuple[int, Path, int]:
        """The attempt, its log, and where in it that place is; the beginning of what is asked for, if none is given."""
        text, folder = after if after is not None else before, self._paths.job(uid)
        if text is None:
            attempt = query.attempt or max(logs.attempts(folder), default=1)
            return attempt, logs.merged_path(folder, attempt), 0
        match = _PLACE.fullmatch(text)
        if match is not None:
            attempt, offset = int(match[1]), int(match[2])
            path = logs.merged_path(folder, attempt)
            if query.attempt in (None, attempt) and logs.is_place(path, offset):
                return attempt, path, offset
        field = "after" if after is not None else "before"
        hint = Text("start again, and pass positions back unchanged")
        raise UserError(Text("{text} is no place in this log", text=f"{text!r}"), field=field, hint=hint)


class _Live:
    """The lines of a job that have not ended yet, as far as they are asked for."""

    def __init__(self, find: Callable[[str], tuple[StoredJob, Job]], key: str, query: LogQuery, folder: Path) -> None:
        self._find, self._key, self._query = find, key, query
        self._reader = LiveReader(folder)
        self._last, self._looked = LiveLines(), 0.0

    def news(self, over: bool) -> LiveLines | None:
        """None if they are as before. When the attempt is over there are none."""
        self._looked = time.monotonic()
        now = LiveLines() if over else self._now()
        if now.same(self._last):
            return None
        self._last = now
        return now

    def _now(self) -> LiveLines:
        try:
            stored, job = self._find(self._key)
        except NotFoundError:
            return LiveLines()
        hosts: dict[int | None, str] = {None: job.launcher_host}
        hosts.update(from_wire(stored.status).placement.items())
        found = self._reader.now(logs.stamp(datetime.now(UTC)), hosts)
        return LiveLines(filter(self._query.filter(job), found))

    def pause(self) -> float:
        """Until they are looked at again."""
        return self._looked + _LIVE_SECONDS - time.monotonic()


def _page(attempt: int, found: logs.FoundLines) -> LogPage:
    return LogPage(
        lines=tuple(PlacedLine(f"{attempt}:{offset}", line) for offset, line in found.lines),
        before=f"{attempt}:{found.start}" if found.start > 0 else None,
        after=f"{attempt}:{found.end}",
        attempt=attempt,
    )


def _look(path: Path, job: Job, query: LogQuery, limit: int) -> logs.Look:
    return logs.Look(
        wanted=_wanted(job, query), promising=_promising(job, query), limit=limit, floor=_floor(path, query)
    )


def _wanted(job: Job, query: LogQuery) -> logs.Wanted:
    return query.filter(job) if query.chooses or query.since is not None else None


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
