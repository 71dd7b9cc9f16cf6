"""One job, and what can be done with it, for programs with an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from oarsman.client import job_view
from oarsman.client.handle import PAGE, usage_frame
from oarsman.client.job_view import SeenJob, Wish
from oarsman.client.threads import Carrier
from oarsman.errors import ConflictError, NotFoundError
from oarsman.service import operations
from oarsman.service.models import (
    EventView,
    JobSummary,
    JobView,
    LogFilter,
    LogLineView,
    LogPageView,
    Progress,
    UsagePoint,
)
from oarsman.service.operations import Call

if TYPE_CHECKING:
    import pandas


class AsyncJobHandle(SeenJob):
    """Made by an `AsyncClient`. What it says is what was last seen; `await refresh()` looks again."""

    def __init__(
        self, carrier: Carrier, key: str, *, job: JobView | None = None, summary: JobSummary | None = None
    ) -> None:
        super().__init__(key, job=job, summary=summary)
        self._carrier = carrier

    async def _changed(self, call: Call[JobView]) -> AsyncJobHandle:
        self._see(await self._carrier.do(call))
        return self

    async def refresh(self) -> AsyncJobHandle:
        return await self._changed(operations.job(self._key))

    # -- waiting -----------------------------------------------------------------------------------
    async def wait(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the same as without an event loop
        until: Wish = "finished",
        *,
        check: bool = True,
        seeing: Callable[[JobView], None] = lambda _: None,
    ) -> AsyncJobHandle:
        """Return when the job is as wished. See `JobHandle.wait`."""
        job_view.check_wish(until)
        try:
            async with asyncio.timeout(timeout) as limit:
                await self._wait(until, check, seeing)
        except TimeoutError:
            if not limit.expired():
                raise
            state = self._summary.state if self._summary is not None else "not there"
            raise TimeoutError(f"{self._key} is {state} after {timeout:g} seconds") from None
        return self

    async def _wait(self, until: Wish, check: bool, seeing: Callable[[JobView], None]) -> None:
        try:
            async with aclosing(self._carrier.stream(operations.watch(self._key))) as states:
                async for job in states:
                    if self._is_another(job):
                        break
                    self._see(job)
                    seeing(job)
                    if job_view.settled(job, until, check=check):
                        return
        except NotFoundError:
            if until != "deleted":
                raise
            return
        job_view.gone(self._key, until, check=check)

    async def wait_or_stop(
        self,
        timeout: float | None,  # noqa: ASYNC109 - the same as without an event loop
        *,
        check: bool,
        seeing: Callable[[JobView], None],
    ) -> AsyncJobHandle:
        """Wait for the end; if that is cancelled, stop the job first."""
        try:
            return await self.wait(timeout, check=check, seeing=seeing)
        except asyncio.CancelledError:
            with suppress(ConflictError, NotFoundError):
                await self.stop()
                await self.wait(check=False)
            raise

    # -- what it said and did ------------------------------------------------------------------------
    def logs(
        self,
        rank: int | Sequence[int] | None = None,
        follow: bool = False,
        search: str | None = None,
        tail: int | None = None,
        *,
        worker: int | Sequence[int] | None = None,
        launcher: bool = False,
        stream: str | None = None,
        attempt: int | None = None,
    ) -> AsyncGenerator[LogLineView, None]:
        """The lines of one attempt, oldest first. See `JobHandle.logs`."""
        only = job_view.log_filter(rank, worker, launcher, stream, search, attempt)
        if tail is not None:
            return self._tail(only, tail, follow)
        return self._followed(only, None) if follow else self._until_now(only)

    async def _pages_upwards(self, only: LogFilter, limit: int) -> AsyncGenerator[LogPageView, None]:
        page = await self._carrier.do(operations.log(self._key, only, limit=limit))
        yield page
        while page.before is not None:
            page = await self._carrier.do(operations.log(self._key, only, before=page.before, limit=limit))
            yield page

    async def _tail(self, only: LogFilter, count: int, follow: bool) -> AsyncGenerator[LogLineView, None]:
        pages: list[LogPageView] = []
        async with aclosing(self._pages_upwards(only, min(max(count, 1), PAGE))) as upwards:
            async for page in upwards:
                pages.append(page)
                if sum(len(found.lines) for found in pages) >= count:
                    break
        for line in job_view.last_lines(pages, count):
            yield line
        if follow:
            async with aclosing(self._followed(job_view.pinned(only, pages[0]), pages[0].after)) as lines:
                async for line in lines:
                    yield line

    async def _until_now(self, only: LogFilter) -> AsyncGenerator[LogLineView, None]:
        """From the beginning up to the line that is the last one at this moment."""
        last: LogPageView | None = None
        async with aclosing(self._pages_upwards(only, 1)) as upwards:
            async for page in upwards:
                if page.lines:
                    last = page
                    break
        if last is None:
            return
        async with aclosing(self._followed(job_view.pinned(only, last), None)) as lines:
            async for line in lines:
                yield line
                if line.after == last.lines[-1].after:
                    return

    async def _followed(self, only: LogFilter, after: str | None) -> AsyncGenerator[LogLineView, None]:
        async with aclosing(self._carrier.stream(operations.follow_log(self._key, only, after=after))) as pages:
            async for page in pages:
                for line in page.lines:
                    yield line

    async def events(self) -> Sequence[EventView]:
        return await self._carrier.do(operations.events(self._key))

    async def usage(self, since: datetime | None = None) -> Sequence[UsagePoint]:
        """What each host used, sampled while the job ran; oldest first."""
        return await self._carrier.do(operations.usage(self._key, since=since))

    async def usage_frame(self, since: datetime | None = None) -> pandas.DataFrame:
        """The same as a table with a time index. Needs pandas."""
        return usage_frame(await self.usage(since))

    async def progress(self) -> Progress:
        """The numbers its lines name (loss, images/sec, step), and how far each rank is; `behind` says why it lags."""
        return await self._carrier.do(operations.progress(self._key))

    # -- what becomes of it --------------------------------------------------------------------------
    async def scale(self, workers: int) -> AsyncJobHandle:
        return await self._changed(operations.scale(self._key, workers))

    async def suspend(self) -> AsyncJobHandle:
        return await self._changed(operations.suspend(self._key))

    async def resume(self) -> AsyncJobHandle:
        return await self._changed(operations.resume(self._key))

    async def stop(self) -> AsyncJobHandle:
        """End it for good. Returns at once; `wait(check=False)` until nothing of it is left."""
        return await self._changed(operations.stop(self._key))

    async def rerun(self) -> AsyncJobHandle:
        """An ended job once more, under its own name; what it left is deleted first."""
        return await self._changed(operations.rerun(self._key))

    async def clone(self, name: str | None = None, **changes: Any) -> AsyncJobHandle:
        """A new job like this one, submitted at once. `changes` are those of `MPIJob.changed`."""
        if self._job is None:
            await self.refresh()
        wanted = job_view.clone_of(self._details(), name, changes)
        job = await self._carrier.do(operations.clone(self._key, wanted))
        return AsyncJobHandle(self._carrier, job.summary.key, job=job)

    async def delete(self) -> None:
        """Delete the job with its logs; a running one is stopped first."""
        await self._carrier.do(operations.delete(self._key))
