"""What the jobs of this machine wrote: all of it, page by page, or as it comes.

A place is "attempt:offset" in the attempt's merged log, always where a line begins. Nobody else takes it to pieces.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path

from oarsman.backends.base import LogLine, LogPage, LogQuery, PlacedLine
from oarsman.backends.local.follow import LocalChanges
from oarsman.backends.local.supervisor_link import SupervisorLink
from oarsman.backends.stoppable import Stop, readable
from oarsman.errors import UserError
from oarsman.job.job import Job
from oarsman.status.codec import from_wire
from oarsman.store import logs
from oarsman.store import logs as stored_logs
from oarsman.store.jobs import JobStore, StoredJob
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text

_PLACE = re.compile(r"([1-9][0-9]{0,8}):([0-9]{1,18})", re.ASCII)
_MOST_LINES = 10_000
_FOLLOWED_LINES = 1000
_GATHER = 0.05  # lines that come this close together make one page
_LOOK_AGAIN = 0.25  # where the system does not tell when a file grows


class LocalLogs:
    def __init__(self, paths: Paths, store: JobStore) -> None:
        self._paths = paths
        self._store = store

    # -- everything ----------------------------------------------------------------------------------
    def lines(self, stored: StoredJob, job: Job, query: LogQuery) -> Iterator[LogLine]:
        attempt = query.attempt or self._newest(stored.uid)
        path = stored_logs.merged_path(self._paths.job(stored.uid), attempt)
        reader = stored_logs.MergedLogReader(
            path, wanted=_filter(job, query), tail=query.tail, floor=_floor(path, query)
        )
        return self._follow(stored.uid, reader, attempt) if query.follow else reader.news()

    def _follow(self, uid: str, reader: stored_logs.MergedLogReader, attempt: int) -> Iterator[LogLine]:
        """Every line until the attempt is over. Its last lines are written before its end is on record."""
        try:
            with SupervisorLink(self._paths).watching() as changes:
                while True:
                    over = self._attempt_over(uid, attempt)
                    yield from reader.news()
                    if over:
                        return
                    self._await_news(reader, changes.fileno())
                    changes.drain()
        finally:
            reader.close()

    @staticmethod
    def _await_news(reader: stored_logs.MergedLogReader, changes: int) -> None:
        descriptor = reader.fileno()
        if descriptor is None:
            readable(changes, timeout=_LOOK_AGAIN)
        elif descriptor in readable(descriptor, changes):
            reader.acknowledge()

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
        path = stored_logs.merged_path(self._paths.job(stored.uid), attempt)
        return _page(attempt, logs.up(path, None, _look(path, job, query, limit)))

    def check(self, stored: StoredJob, query: LogQuery, after: str) -> None:
        """A wrong place is said at once, not when the first page is asked for."""
        self._place(stored.uid, query, after, "after")

    def follow_pages(
        self, stored: StoredJob, job: Job, query: LogQuery, after: str | None, stop: Stop
    ) -> Generator[LogPage, None, None]:
        if after is not None:
            attempt, path, offset = self._place(stored.uid, query, after, "after")
        else:
            attempt, offset = query.attempt or self._newest(stored.uid), 0
            path = stored_logs.merged_path(self._paths.job(stored.uid), attempt)
        look = _look(path, job, query, _FOLLOWED_LINES)
        uid = stored.uid
        if self._attempt_over(uid, attempt):  # nothing to wait for, so nothing is set up for it
            yield from _down_to_the_end(attempt, path, offset, look, stop)
            return
        with closing(LocalChanges(self._paths, stop, self._store.anything_unfinished, folder=path.parent)) as news:
            while not stop.told:
                over = self._attempt_over(uid, attempt)
                shown = time.monotonic()
                for page in _down_to_the_end(attempt, path, offset, look, stop):
                    offset = int(page.after.rpartition(":")[2])
                    shown = time.monotonic()
                    yield page
                if over:
                    return
                news.wait()
                stop.pause(shown + _GATHER - time.monotonic())

    def _newest(self, uid: str) -> int:
        return max(stored_logs.attempts(self._paths.job(uid)), default=1)

    def _place(self, uid: str, query: LogQuery, text: str, field: str) -> tuple[int, Path, int]:
        match = _PLACE.fullmatch(text)
        if match is not None:
            attempt, offset = int(match[1]), int(match[2])
            path = stored_logs.merged_path(self._paths.job(uid), attempt)
            if query.attempt in (None, attempt) and logs.is_place(path, offset):
                return attempt, path, offset
        raise UserError(
            Text("{text} is no place in this log", text=f"{text!r}"),
            field=field,
            hint=Text("begin anew, and hand places back as you got them"),
        )


def _down_to_the_end(
    attempt: int, path: Path, offset: int, look: logs.Look, stop: Stop
) -> Generator[LogPage, None, None]:
    """All there is by now. A page without lines only says how far it has come."""
    while not stop.told:
        found = logs.down(path, offset, look)
        if found.end == offset:
            return
        offset = found.end
        yield _page(attempt, found)


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
    return stored_logs.start_of(path, query.since) if query.since is not None else 0


def _promising(job: Job, query: LogQuery) -> logs.Promising:
    """Most blocks of a long log hold nothing of what is rare, and one look at the whole block shows it."""
    marks = [
        [f"Z {rank} ".encode() for rank in query.ranks],
        [f" {job.worker_host(index)} ".encode() for index in query.workers],
        [b"Z - "] if query.launcher_only else [],
        [f" {query.stream} ".encode()] if query.stream is not None else [],
    ]
    needed = [group for group in marks if group]
    search = stored_logs.Search(query.search) if query.search else None

    def promising(block: bytes) -> bool:
        there = all(any(mark in block for mark in group) for group in needed)
        return there and (search is None or search.in_block(block))

    return promising


def _filter(job: Job, query: LogQuery) -> stored_logs.Wanted:
    if query == LogQuery(attempt=query.attempt, follow=query.follow, tail=query.tail):
        return lambda _line: True
    hosts = {job.worker_host(index) for index in query.workers}
    since = stored_logs.stamp(query.since) if query.since is not None else ""
    search = stored_logs.Search(query.search or "")

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
