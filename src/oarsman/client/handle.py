"""One job, and what can be done with it: for programs with an event loop, and for those without."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, closing, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from oarsman.client import job_view, notebook
from oarsman.client.face import Face, becomes, itself, like, waits
from oarsman.client.job_view import Seen, SeenJob, Until, Wish
from oarsman.errors import ConflictError, NotFoundError, UnsupportedError, UsageError
from oarsman.portal import PortalIterator, shared
from oarsman.service.contract import Service
from oarsman.service.models import (
    CauseView,
    Clone,
    EventView,
    JobSummary,
    JobView,
    LogFilter,
    LogLineView,
    LogPageView,
    Progress,
    UsagePoint,
)

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")
_PAGE = 500  # log lines asked for at a time
Seeing = Callable[[JobView], None]


class AsyncJobHandle(SeenJob):
    """Made by an `AsyncClient`. What it says is what was last seen; `await refresh()` looks again."""

    def __init__(
        self, service: Service, key: str, *, job: JobView | None = None, summary: JobSummary | None = None
    ) -> None:
        super().__init__(Seen(key, job, job.summary if job is not None else summary))
        self._service = service

    async def refresh(self) -> AsyncJobHandle:
        """Look at it again."""
        return self._see(await self._service.job(self.key))

    async def runs(self) -> Sequence[JobSummary]:
        """The job and its earlier runs, the newest first."""
        return notebook.Table(await self._service.runs(self.key))

    async def run(self, number: int) -> JobView:
        """All that is known of one run: its cause, timeline, ranks and manifest."""
        return await self._service.job(self.key, run=number)

    # -- waiting -----------------------------------------------------------------------------------
    async def wait(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the same as without an event loop
        until: Wish = "finished",
        *,
        check: bool = True,
        seeing: Seeing = lambda _: None,
    ) -> AsyncJobHandle:
        """Return when the job is as wished: finished, succeeded, failed, running, suspended, deleted, or what a
        function of its summary says. Raises JobFailed for one that failed, ConflictError for one that ended otherwise,
        NotFoundError for one deleted meanwhile, unless `check` is False; TimeoutError after `timeout` seconds.
        `seeing` is called with each state of the job on the way.
        """
        async with aclosing(self._becoming(timeout, until, check=check)) as states:
            async for job in states:
                seeing(job)
        return self

    async def _becoming(
        self,
        timeout: float | None = None,  # noqa: ASYNC109
        until: Wish = "finished",
        *,
        check: bool = True,
    ) -> AsyncGenerator[JobView, None]:
        """Each state on the way to the wish; ends when it has come true."""
        if not callable(until) and until not in get_args(Until):
            raise UsageError(
                f"a job cannot be waited for until '{until}'",
                field="until",
                hint="finished, succeeded, failed, running, suspended, deleted, or a function of its summary",
            )
        async with aclosing(within(self._service.watch(self.key), timeout)) as states:
            while True:
                seen = self._seen.summary
                try:
                    job = await anext(states, None)
                except TimeoutError:
                    state = seen.state if seen is not None else "not there"
                    raise TimeoutError(f"{self.key} is {state} after {timeout:g} seconds") from None
                except NotFoundError:
                    if until != "deleted":
                        raise
                    return
                # of another uid: somebody else made it under the same name, after ours was deleted
                if job is None or (seen is not None and seen.uid != job.summary.uid):
                    if check and until != "deleted":
                        raise NotFoundError(f"{self.key} was deleted")
                    return
                self._see(job)
                yield job
                if job_view.settled(job, until, check=check):
                    return

    async def stop_and_wait(self) -> None:
        """Stop it and return when nothing of it is left; fine if it has ended or is gone."""
        with suppress(ConflictError, NotFoundError):
            await self.stop()
            await self.wait(check=False)

    # -- what it said and did ------------------------------------------------------------------------
    def _blocks(
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
        run: int | None = None,
    ) -> AsyncGenerator[Sequence[LogLineView], None]:
        """Lines, many at a time: whoever is in another thread has a long way for each."""
        only = job_view.log_filter(
            rank, worker, launcher=launcher, stream=stream, search=search, attempt=attempt, run=run
        )
        if tail is not None:
            return self._tail(only, tail, follow)
        return self._followed(only, None) if follow else self._until_now(only)

    @like(_blocks)
    def logs(self, *args: Any, **kwargs: Any) -> AsyncGenerator[LogLineView, None]:
        """The lines of one attempt (by default the newest), oldest first, each with time, rank, host and stream.

        All that were written until now, or the last `tail` of them; with `follow` also those that come, until the
        attempt is over. `search` keeps lines that contain it, `stream` is "out" or "err".
        """
        return _lines_of(self._blocks(*args, **kwargs))

    async def _last(self, only: LogFilter, count: int) -> tuple[Sequence[LogLineView], LogPageView]:
        """The last lines, and the page that ends with them. A page of a search may be short and have one before."""
        limit = min(max(count, 1), _PAGE)
        end = page = await self._service.log(self.key, only, limit=limit)
        found = list(page.lines)
        while len(found) < count and page.before is not None:
            page = await self._service.log(self.key, only, before=page.before, limit=limit)
            found[:0] = page.lines
        return found[max(len(found) - count, 0) :], end

    async def _tail(self, only: LogFilter, count: int, follow: bool) -> AsyncGenerator[Sequence[LogLineView], None]:
        found, end = await self._last(only, count)
        yield found
        if follow:
            async with aclosing(self._followed(job_view.pinned(only, end), end.after)) as blocks:
                async for lines in blocks:
                    yield lines

    async def _until_now(self, only: LogFilter) -> AsyncGenerator[Sequence[LogLineView], None]:
        """From the beginning up to the line that is the last one at this moment."""
        last, page = await self._last(only, 1)
        if not last:
            return
        async with aclosing(self._followed(job_view.pinned(only, page), None)) as blocks:
            async for lines in blocks:
                for count, line in enumerate(lines, 1):
                    if line.after == last[-1].after:
                        yield lines[:count]
                        return
                yield lines

    async def _followed(self, only: LogFilter, after: str | None) -> AsyncGenerator[Sequence[LogLineView], None]:
        async with aclosing(self._service.follow_log(self.key, only, after=after)) as pages:
            async for page in pages:
                yield page.lines

    async def events(self, run: int | None = None) -> Sequence[EventView]:
        """What happened to it, oldest first."""
        return await self._service.events(self.key, run=run)

    async def usage(self, since: datetime | None = None, run: int | None = None) -> Sequence[UsagePoint]:
        """What each host used, sampled while the job ran; oldest first."""
        return await self._service.usage(self.key, since=since, run=run)

    async def usage_frame(self, since: datetime | None = None) -> pandas.DataFrame:
        """The same as a table with a time index. Needs pandas."""
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise UnsupportedError(
                "a table of usage needs pandas", hint="pip install pandas, or use usage()"
            ) from error
        points = [point.model_dump() for point in await self.usage(since)]
        return pandas.DataFrame(points, columns=list(UsagePoint.model_fields)).set_index("time")

    async def progress(self, run: int | None = None) -> Progress:
        """The numbers its lines name (loss, images/sec, step), and how far each rank is; `behind` says why it lags."""
        return await self._service.progress(self.key, run=run)

    # -- what becomes of it --------------------------------------------------------------------------
    async def scale(self, workers: int) -> AsyncJobHandle:
        """Change the number of its workers."""
        return self._see(await self._service.scale(self.key, workers))

    async def suspend(self) -> AsyncJobHandle:
        """End its processes and keep it, to be resumed."""
        return self._see(await self._service.suspend(self.key))

    async def resume(self) -> AsyncJobHandle:
        """Let a suspended job start again."""
        return self._see(await self._service.resume(self.key))

    async def stop(self) -> AsyncJobHandle:
        """End it for good. Returns at once; `wait(check=False)` until nothing of it is left."""
        return self._see(await self._service.stop(self.key))

    async def rerun(self) -> AsyncJobHandle:
        """An ended job once more, under its own name; what it left is kept as an earlier run, not on Kubernetes."""
        return self._see(await self._service.rerun(self.key))

    async def clone(self, /, name: str | None = None, **changes: Any) -> AsyncJobHandle:
        """A new job like this one, submitted at once. `changes` are those of `MPIJob.changed`: workers=4, env={...}."""
        if self._seen.job is None:
            await self.refresh()
        wanted = Clone(name=name)
        if changes:
            before = self.manifest
            wanted = Clone(name=name, patch=before.changed(**changes).patch_from(before))
        job = await self._service.clone(self.key, wanted)
        return AsyncJobHandle(self._service, job.summary.key, job=job)

    async def delete(self) -> None:
        """Delete the job with its logs; a running one is stopped first."""
        await self._service.delete(self.key)


class JobHandle(Face[AsyncJobHandle], SeenJob):
    """Made by a `Client`. What it says is what was last seen; `refresh()` looks again."""

    def __init__(self, of: AsyncJobHandle) -> None:
        Face.__init__(self, of)
        SeenJob.__init__(self, of._seen)

    refresh = itself(AsyncJobHandle.refresh)

    @property
    def cause(self) -> CauseView | None:
        """Why it failed, with rank, host and last lines; None if it has not."""
        if self._seen.job is None and self.summary.cause:
            self.refresh()
        return super().cause

    @property
    def details(self) -> JobView:
        """All that was seen: conditions, timeline, attempts, ranks, completed manifest."""
        if self._seen.job is None:
            self.refresh()
        return super().details

    @like(AsyncJobHandle.wait)
    def wait(self, *args: Any, seeing: Seeing = lambda _: None, **kwargs: Any) -> JobHandle:
        with closing(shared().iterate(self._of._becoming(*args, **kwargs))) as states:
            for job in states:
                seeing(job)
        return self

    stop_and_wait = waits(AsyncJobHandle.stop_and_wait)

    @like(AsyncJobHandle.logs)
    def logs(self, *args: Any, **kwargs: Any) -> Iterator[LogLineView]:
        return _lines_in(shared().iterate(self._of._blocks(*args, **kwargs)))

    runs = waits(AsyncJobHandle.runs)
    run = waits(AsyncJobHandle.run)
    events = waits(AsyncJobHandle.events)
    usage = waits(AsyncJobHandle.usage)
    usage_frame = waits(AsyncJobHandle.usage_frame)
    progress = waits(AsyncJobHandle.progress)
    scale = itself(AsyncJobHandle.scale)
    suspend = itself(AsyncJobHandle.suspend)
    resume = itself(AsyncJobHandle.resume)
    stop = itself(AsyncJobHandle.stop)
    rerun = itself(AsyncJobHandle.rerun)
    clone = becomes(AsyncJobHandle.clone, lambda made: JobHandle(made), "JobHandle")
    delete = waits(AsyncJobHandle.delete)


async def _lines_of(source: AsyncGenerator[Sequence[T], None]) -> AsyncGenerator[T, None]:
    async with aclosing(source) as blocks:
        async for lines in blocks:
            for line in lines:
                yield line


def _lines_in(source: PortalIterator[Sequence[T]]) -> Iterator[T]:
    with closing(source) as blocks:
        for lines in blocks:
            yield from lines


async def within(source: AsyncGenerator[T, None], seconds: float | None) -> AsyncGenerator[T, None]:
    """What comes until then; TimeoutError, if it has not ended by then."""
    deadline = None if seconds is None else time.monotonic() + seconds
    async with aclosing(source):
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            try:
                yield await asyncio.wait_for(anext(source), left)
            except StopAsyncIteration:
                return
