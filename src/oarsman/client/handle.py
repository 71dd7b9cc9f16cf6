"""One job, and what can be done with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from oarsman.client import job_view
from oarsman.client.job_view import SeenJob, Wish
from oarsman.client.threads import Ended, Pump
from oarsman.errors import ConflictError, NotFoundError, UnsupportedError
from oarsman.service.contract import Service
from oarsman.service.models import (
    CauseView,
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

PAGE = 500  # log lines asked for at a time


class JobHandle(SeenJob):
    """Made by a `Client`. What it says is what was last seen; `refresh()` looks again."""

    def __init__(
        self, service: Service, key: str, *, job: JobView | None = None, summary: JobSummary | None = None
    ) -> None:
        super().__init__(key, job=job, summary=summary)
        self._service = service
        self._watching: Pump[JobView] | None = None  # kept when a wait ran out of time: the next one goes on with it

    def refresh(self) -> JobHandle:
        self._see(self._service.job(self._key))
        return self

    @property
    def cause(self) -> CauseView | None:
        if self._job is None and self.summary.cause:
            self.refresh()
        return super().cause

    def _details(self) -> JobView:
        if self._job is None:
            self.refresh()
        return super()._details()

    # -- waiting -----------------------------------------------------------------------------------
    def wait(
        self,
        timeout: float | None = None,
        until: Wish = "finished",
        *,
        check: bool = True,
        seeing: Callable[[JobView], None] = lambda _: None,
    ) -> JobHandle:
        """Return when the job is as wished: finished, succeeded, failed, running, suspended, deleted, or what a
        function of its summary says. Raises JobFailed for one that failed, ConflictError for one that ended otherwise,
        NotFoundError for one deleted meanwhile, unless `check` is False; TimeoutError after `timeout` seconds.
        `seeing` is called with each state of the job on the way.
        """
        job_view.check_wish(until)
        try:
            with closing(self._states(timeout)) as states:
                for job in states:
                    if self._is_another(job):
                        break
                    self._see(job)
                    seeing(job)
                    if job_view.settled(job, until, check=check):
                        return self
        except NotFoundError:
            if until != "deleted":
                raise
            return self
        job_view.gone(self._key, until, check=check)
        return self

    def _states(self, timeout: float | None) -> Generator[JobView, None, None]:
        if timeout is None:
            states = self._service.watch(self._key)
            try:
                yield from states
            finally:
                _close(states)
            return
        deadline = time.monotonic() + timeout
        begun = self._watching is not None  # its first state was taken by an earlier wait
        pump = self._watching or Pump(lambda: self._service.watch(self._key))
        self._watching = pump
        try:
            if begun:
                yield self._service.job(self._key)
            while True:
                yield pump.take(max(deadline - time.monotonic(), 0.0))
        except TimeoutError:
            raise TimeoutError(f"{self._key} is {self._state_if_seen()} after {timeout:g} seconds") from None
        except Ended:
            self._forget(pump)
        except BaseException:
            self._forget(pump)
            raise

    def _forget(self, pump: Pump[JobView]) -> None:
        pump.close()
        self._watching = None

    def _state_if_seen(self) -> str:
        return self._summary.state if self._summary is not None else "not there"

    def stop_and_wait(self) -> None:
        """Stop it and return when nothing of it is left; fine if it has ended or is gone."""
        with suppress(ConflictError, NotFoundError):
            self.stop()
            self.wait(check=False)

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
    ) -> Iterator[LogLineView]:
        """The lines of one attempt (by default the newest), oldest first, each with time, rank, host and stream.

        All that were written until now, or the last `tail` of them; with `follow` also those that come, until the
        attempt is over. `search` keeps lines that contain it, `stream` is "out" or "err".
        """
        only = job_view.log_filter(rank, worker, launcher, stream, search, attempt)
        if tail is not None:
            return self._tail(only, tail, follow)
        return self._followed(only, None) if follow else self._until_now(only)

    def _pages_upwards(self, only: LogFilter, limit: int) -> Iterator[LogPageView]:
        page = self._service.log(self._key, only, limit=limit)
        yield page
        while page.before is not None:
            page = self._service.log(self._key, only, before=page.before, limit=limit)
            yield page

    def _tail(self, only: LogFilter, count: int, follow: bool) -> Iterator[LogLineView]:
        pages: list[LogPageView] = []
        found = 0
        for page in self._pages_upwards(only, min(max(count, 1), PAGE)):
            pages.append(page)
            found += len(page.lines)
            if found >= count:
                break
        yield from job_view.last_lines(pages, count)
        if follow:
            yield from self._followed(job_view.pinned(only, pages[0]), pages[0].after)

    def _until_now(self, only: LogFilter) -> Iterator[LogLineView]:
        """From the beginning up to the line that is the last one at this moment."""
        last = next((page for page in self._pages_upwards(only, 1) if page.lines), None)
        if last is None:
            return
        for line in self._followed(job_view.pinned(only, last), None):
            yield line
            if line.after == last.lines[-1].after:
                return

    def _followed(self, only: LogFilter, after: str | None) -> Iterator[LogLineView]:
        pages = self._service.follow_log(self._key, only, after=after)
        try:
            for page in pages:
                yield from page.lines
        finally:
            _close(pages)

    def events(self) -> Sequence[EventView]:
        return self._service.events(self._key)

    def usage(self, since: datetime | None = None) -> Sequence[UsagePoint]:
        """What each host used, sampled while the job ran; oldest first."""
        return self._service.usage(self._key, since=since)

    def usage_frame(self, since: datetime | None = None) -> pandas.DataFrame:
        """The same as a table with a time index. Needs pandas."""
        return usage_frame(self.usage(since))

    def progress(self) -> Progress:
        """The numbers its lines name (loss, images/sec, step), and how far each rank is; `behind` says why it lags."""
        return self._service.progress(self._key)

    # -- what becomes of it --------------------------------------------------------------------------
    def scale(self, workers: int) -> JobHandle:
        self._see(self._service.scale(self._key, workers))
        return self

    def suspend(self) -> JobHandle:
        self._see(self._service.suspend(self._key))
        return self

    def resume(self) -> JobHandle:
        self._see(self._service.resume(self._key))
        return self

    def stop(self) -> JobHandle:
        """End it for good. Returns at once; `wait(check=False)` until nothing of it is left."""
        self._see(self._service.stop(self._key))
        return self

    def rerun(self) -> JobHandle:
        """An ended job once more, under its own name; what it left is deleted first."""
        self._see(self._service.rerun(self._key))
        return self

    def clone(self, name: str | None = None, **changes: Any) -> JobHandle:
        """A new job like this one, submitted at once. `changes` are those of `MPIJob.changed`: workers=4, env={...}."""
        wanted = job_view.clone_of(self._details(), name, changes)
        job = self._service.clone(self._key, wanted)
        return JobHandle(self._service, job.summary.key, job=job)

    def delete(self) -> None:
        """Delete the job with its logs; a running one is stopped first."""
        self._service.delete(self._key)


def _close(iterator: Iterator[Any]) -> None:
    close = getattr(iterator, "close", None)
    if close is not None:
        close()


def usage_frame(points: Sequence[UsagePoint]) -> pandas.DataFrame:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise UnsupportedError("a table of usage needs pandas", hint="pip install pandas, or use usage()") from error
    columns = list(UsagePoint.model_fields)
    return pandas.DataFrame([point.model_dump() for point in points], columns=columns).set_index("time")
