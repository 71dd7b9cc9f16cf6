"""Reading a log once: each look goes on behind the last one, and of very much at once the middle is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from oarsman.runtime.jobs import Jobs, LogLine, LogPage, LogQuery, PlacedLine

OLDEST: Final = 60_000  # lines of one look that are read in their order
NEWEST: Final = 40_000  # and, where that was not all, the last ones
_PAGE: Final = 10_000


class LogReading:
    """Of one attempt. `complete`: no line was left out so far."""

    def __init__(self, jobs: Jobs, key: str) -> None:
        self._jobs, self._key = jobs, key
        self._place: str | None = None
        self._stamp = ""  # of the last line read
        self.attempt: int | None = None
        self.complete = True

    def news(self) -> Iterator[LogLine]:
        """Lines that were not there before, oldest first."""
        if self._place is None:
            yield from self._beginning()
        left = OLDEST
        while left > 0:
            page = self._jobs.log_page(self._key, self._query, after=self._place, limit=min(left, _PAGE))
            if not page.lines:
                return
            left -= len(page.lines)
            yield from self._read(page)
        yield from self._newest()

    @property
    def _query(self) -> LogQuery:
        return LogQuery(attempt=self.attempt)

    def _read(self, page: LogPage) -> Iterator[LogLine]:
        self._place = page.after
        if page.lines:
            self._stamp = page.lines[-1].line.stamp
        return (placed.line for placed in page.lines)

    def _beginning(self) -> Iterator[LogLine]:
        """A place is needed to ask for a page from above, and only the first page of those that follow gives one."""
        last = self._jobs.log_page(self._key, self._query, limit=1)
        self.attempt = last.attempt
        if last.before is None:
            return self._read(last)
        pages = self._jobs.log_follow(self._key, self._query)
        try:
            return self._read(next((page for page in pages if page.lines), last))
        finally:
            if (close := getattr(pages, "close", None)) is not None:
                close()

    def _newest(self) -> Iterator[LogLine]:
        """From the end upwards, until something known is met or it is enough."""
        found: list[Sequence[PlacedLine]] = []
        page = self._jobs.log_page(self._key, self._query, limit=_PAGE)
        end, left = page.after, NEWEST
        while True:
            lines, met = self._unknown(page.lines)
            found.append(lines)
            left -= len(page.lines)
            if met or page.before in (None, self._place):
                break
            if left <= 0 or not page.lines:
                self.complete = False
                break
            page = self._jobs.log_page(self._key, self._query, before=page.before, limit=min(left, _PAGE))
        self._place = end
        for lines in reversed(found):
            for placed in lines:
                self._stamp = placed.line.stamp
                yield placed.line

    def _unknown(self, lines: Sequence[PlacedLine]) -> tuple[Sequence[PlacedLine], bool]:
        """Those behind the last one read, and whether that one was among them."""
        for index, placed in enumerate(lines):
            if placed.after == self._place:
                return lines[index + 1 :], True
        if lines and lines[0].line.stamp <= self._stamp:  # clocks decide where places are written in another way
            return [placed for placed in lines if placed.line.stamp > self._stamp], True
        return lines, False
