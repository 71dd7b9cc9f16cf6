"""The lines of a job at a server, by what it offers: the whole log as a file, pages of it, and pages as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime

from oarsman.service.contract import Service
from oarsman.service.models import LogFilter, LogPageView
from oarsman.store.logs import LogLine, parse, stamp

_MOST_LINES = 10_000  # of a page


async def lines(
    service: Service, key: str, only: LogFilter, *, since: datetime | None, tail: int | None, follow: bool
) -> AsyncGenerator[Sequence[LogLine], None]:
    oldest = stamp(since) if since is not None else ""
    if tail is not None:
        last, end = await _last(service, key, only, oldest, tail)
        yield last
        if follow:
            pinned = only.model_copy(update={"attempt": end.attempt})
            async with aclosing(service.follow_log(key, pinned, after=end.after)) as pages:
                async for page in pages:
                    yield _lines(page)
        return
    async with aclosing(_followed(service, key, only) if follow else _downloaded(service, key, only)) as blocks:
        async for block in blocks:
            yield [line for line in block if line.stamp >= oldest]


async def _last(
    service: Service, key: str, only: LogFilter, oldest: str, tail: int
) -> tuple[Sequence[LogLine], LogPageView]:
    """The last lines, and the page that ends with them. A page of a search may be short and still have one before."""
    end = page = await service.log(key, only, limit=min(max(tail, 1), _MOST_LINES))
    found = deque(_lines(page))
    while len(found) < tail and page.before is not None and not (found and found[0].stamp < oldest):
        page = await service.log(key, only, before=page.before, limit=min(tail, _MOST_LINES))
        found.extendleft(reversed(_lines(page)))
    wanted = [line for line in found if line.stamp >= oldest]
    return wanted[-tail:] if tail else [], end


def _lines(page: LogPageView) -> list[LogLine]:
    return [LogLine(stamp(line.time), line.rank, line.host, line.stream, line.text) for line in page.lines]


async def _followed(service: Service, key: str, only: LogFilter) -> AsyncGenerator[list[LogLine], None]:
    async with aclosing(service.follow_log(key, only)) as pages:
        async for page in pages:
            yield _lines(page)


async def _downloaded(service: Service, key: str, only: LogFilter) -> AsyncGenerator[list[LogLine], None]:
    rest = b""
    async with aclosing(service.download_log(key, only)) as blocks:
        async for block in blocks:
            *whole, rest = (rest + block).split(b"\n")
            found = map(parse, (one.decode("utf-8", "replace") for one in whole))
            yield [line for line in found if line is not None]
