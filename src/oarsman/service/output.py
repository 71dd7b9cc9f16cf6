"""The part of the service that is about what a job said and did: events, log, usage, progress, who looks after it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from oarsman.backends.base import Backend, HasOperator, JobRecord, KeepsWorkers, LogLine, LogQuery, Where, run_key
from oarsman.errors import OarsmanError, UsageError
from oarsman.plan.policies import cleanup
from oarsman.service import models, views
from oarsman.text.sentence import Text

if TYPE_CHECKING:
    from oarsman.service.progress import ProgressKept

T = TypeVar("T")


class OutputService:
    _jobs: Backend
    _progress: ProgressKept | None
    _now: Callable[[], datetime]

    if TYPE_CHECKING:  # what the rest of the service has

        async def _seen(self, key: str, run: int | None = None) -> JobRecord: ...
        async def _may_see(self, key: str, run: int | None = None) -> tuple[str, str]: ...

    async def events(self, key: str, *, run: int | None = None) -> Sequence[models.EventView]:
        key, _ = await self._may_see(key, run)
        return [models.EventView.of(found) for found in await self._jobs.events(key)]

    async def log(
        self, key: str, only: models.LogFilter = models.ALL_LINES, **where: Unpack[Where]
    ) -> models.LogPageView:
        if where.get("after") is not None and where.get("before") is not None:
            raise UsageError(Text("lines come after a place or before one, not both"), field="before")
        key, query = await self.log_query(key, only, live=True)
        return views.log_page(await self._jobs.log_page(key, query, **where))

    async def log_query(self, key: str, only: models.LogFilter, **more: Any) -> tuple[str, LogQuery]:
        """Of which run, and what is asked for of it: of another job that gets its name meanwhile nothing is read."""
        key, uid = await self._may_see(key, only.run)
        return key, replace(views.log_query(only), uid=uid, **more)

    async def follow_log(
        self, key: str, only: models.LogFilter = models.ALL_LINES, *, after: str | None = None
    ) -> AsyncGenerator[models.LogPageView, None]:
        key, query = await self.log_query(key, only)
        async with aclosing(self._jobs.log_follow(key, query, after=after)) as pages:
            async for page in pages:
                if page.lines:
                    yield views.log_page(page)

    async def lines(
        self,
        key: str,
        only: models.LogFilter = models.ALL_LINES,
        *,
        since: datetime | None = None,
        tail: int | None = None,
        follow: bool = False,
        live: bool = False,
    ) -> AsyncGenerator[Sequence[LogLine], None]:
        key, query = await self.log_query(key, only, since=since, tail=tail, follow=follow, live=live)
        async with aclosing(self._jobs.logs(key, query)) as blocks:
            async for lines in blocks:
                yield lines

    async def download_log(self, key: str, only: models.LogFilter = models.ALL_LINES) -> AsyncGenerator[bytes, None]:
        """Plain text: time, rank and the line, for people and their tools."""
        key, query = await self.log_query(key, only)
        async with aclosing(self._jobs.logs(key, query)) as blocks:
            async for lines in blocks:
                said = (
                    f"{line.stamp} {'-' if line.rank is None else line.rank} {line.host} {line.stream} {line.text}\n"
                    for line in lines
                )
                yield "".join(said).encode("utf-8", "replace")

    async def usage(
        self, key: str, *, since: datetime | None = None, run: int | None = None
    ) -> Sequence[models.UsagePoint]:
        key, _ = await self._may_see(key, run)
        if since is not None and since.tzinfo is None:  # a time that mentions no zone is meant in UTC
            since = since.replace(tzinfo=UTC)
        return [models.UsagePoint.of(sample) for sample in await self._jobs.usage_series(key, since=since)]

    async def usage_now(self, key: str) -> Sequence[models.HostUsageView]:
        await self._may_see(key)
        return [models.HostUsageView.of(found) for found in await self._jobs.usage(key)]

    async def attention(self, key: str) -> models.Attention:
        record, jobs = await self._seen(key), self._jobs
        if record.status.finished:
            if not isinstance(jobs, KeepsWorkers) or not cleanup.living_stay(record.job, record.status):
                return models.Attention()
            return models.Attention(workers_left=await _if_known(jobs.workers_left(record.job)) or 0)
        if not isinstance(jobs, HasOperator):
            return models.Attention()
        served = await _if_known(jobs.served(record.job.namespace))
        return models.Attention(silence=await _if_known(jobs.silence(key)), served=served)

    async def progress(self, key: str, *, run: int | None = None) -> models.Progress:
        if self._progress is None:
            from oarsman.service.progress import ProgressKept  # late: it looks for many things in a log

            self._progress = ProgressKept()
        record = await self._seen(key, run)
        return await self._progress.of(self._jobs, record, self._now(), key=run_key(key, run))


async def _if_known(asked: Awaitable[T]) -> T | None:
    """What is not known, because nobody answers or the caller may not ask, is left out."""
    with suppress(OarsmanError, OSError):
        return await asked
    return None
