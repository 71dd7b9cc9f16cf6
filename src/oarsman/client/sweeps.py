"""What a client of either kind can do with sweeps: one manifest, many sets of parameters, each a job of its own."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from oarsman.client import notebook
from oarsman.client.face import Face, becomes, itself, like, waits
from oarsman.client.handle import AsyncJobHandle, JobHandle
from oarsman.errors import JobFailed
from oarsman.portal import shared
from oarsman.service.contract import Service
from oarsman.service.models import SweepPoint, SweepView
from oarsman.service.sweeps import csv_text, rows

_LOOK_EVERY = 0.5
_SHARE = 4  # of the time that a look takes; a sweep of thousands of points is looked at less often
Seeing = Callable[[SweepView], None]


class SeenSweep(ABC):
    """What was last seen of a sweep."""

    @property
    @abstractmethod
    def view(self) -> SweepView: ...

    @property
    def key(self) -> str:
        return self.view.key

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def state(self) -> str:
        """Running, Succeeded, Failed (some point did) or Stopped."""
        return self.view.state

    @property
    def points(self) -> Sequence[SweepPoint]:
        return self.view.points

    def results(self) -> Results:
        """A row per point: parameters, state, metric, duration, cause."""
        return Results(self.view)

    def to_csv(self, path: str | Path | None = None) -> str:
        """The same as CSV, written to a file if one is named."""
        text = csv_text(self.view)
        if path is not None:
            Path(path).write_text(text, "utf-8")
        return text

    def __repr__(self) -> str:
        return notebook.sweep_text(self.view)

    def _repr_html_(self) -> str:
        return notebook.sweep_html(self.view)


class Results(notebook.Table[dict[str, Any]]):
    """Rows that a notebook shows as a table; `pandas.DataFrame(handle.results())` makes a frame of them."""

    def __init__(self, view: SweepView) -> None:
        super().__init__(rows(view))
        self._view = view

    def __repr__(self) -> str:
        return notebook.sweep_text(self._view)

    def _repr_html_(self) -> str:
        return notebook.sweep_html(self._view)


class AsyncSweepHandle(SeenSweep):
    """Made by an `AsyncClient`. What it says is what was last seen; `await refresh()` looks again."""

    def __init__(self, service: Service, view: SweepView) -> None:
        self._service, self._view = service, view

    @property
    def view(self) -> SweepView:
        return self._view

    def _see(self, view: SweepView) -> AsyncSweepHandle:
        self._view = view
        return self

    async def refresh(self) -> AsyncSweepHandle:
        """Look at it again."""
        return self._see(await self._service.sweep(self.key))

    async def job(self, index: int) -> AsyncJobHandle:
        """The job of a point: its log, its events, its cause."""
        return await AsyncJobHandle(self._service, self.points[index].key).refresh()

    async def wait(
        self,
        timeout: float | None = None,  # noqa: ASYNC109
        *,
        check: bool = False,
        seeing: Seeing = lambda _: None,
    ) -> AsyncSweepHandle:
        """Until no point runs or waits. Points may fail: only with `check` that raises JobFailed."""
        async for view in self._becoming(timeout, check=check):
            seeing(view)
        return self

    async def _becoming(
        self,
        timeout: float | None = None,  # noqa: ASYNC109
        *,
        check: bool = False,
    ) -> AsyncGenerator[SweepView, None]:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            began = time.monotonic()
            await self.refresh()
            took = time.monotonic() - began
            yield self.view
            if self.state != "Running":
                break
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"sweep {self.key} goes on after {timeout:g} seconds")
            await asyncio.sleep(max(_LOOK_EVERY, took * _SHARE))
        if check and self.state != "Succeeded":
            wrong = [point for point in self.points if point.state != "Succeeded"]
            why = f"point {wrong[0].index}: {wrong[0].cause or wrong[0].state}"
            raise JobFailed(f"sweep {self.key}: {len(wrong)} of {self.view.total} points did not succeed; {why}")

    async def stop(self) -> AsyncSweepHandle:
        """End what runs, and hand in nothing more."""
        return self._see(await self._service.stop_sweep(self.key))

    async def resume(self) -> AsyncSweepHandle:
        """Go on: what has ended is not repeated, what was stopped is."""
        return self._see(await self._service.resume_sweep(self.key))

    async def delete(self) -> None:
        """All its jobs with their logs."""
        await self._service.delete_sweep(self.key)


class SweepHandle(Face[AsyncSweepHandle], SeenSweep):
    """Made by a `Client`. What it says is what was last seen; `refresh()` looks again."""

    @property
    def view(self) -> SweepView:
        return self._of.view

    refresh = itself(AsyncSweepHandle.refresh)
    job = becomes(AsyncSweepHandle.job, JobHandle, "JobHandle")

    @like(AsyncSweepHandle.wait)
    def wait(self, *args: Any, seeing: Seeing = lambda _: None, **kwargs: Any) -> SweepHandle:
        with closing(shared().iterate(self._of._becoming(*args, **kwargs))) as views:
            for view in views:
                seeing(view)
        return self

    stop = itself(AsyncSweepHandle.stop)
    resume = itself(AsyncSweepHandle.resume)
    delete = waits(AsyncSweepHandle.delete)


class AsyncSweeps:
    """`client.sweeps`: those that are there. `client.sweep(...)` begins one."""

    def __init__(self, service: Service, key_of: Callable[[str], Awaitable[str]]) -> None:
        self._service, self._key_of = service, key_of

    async def list(self) -> Sequence[SweepView]:
        """The newest first, without their points."""
        return notebook.Table(await self._service.sweeps())

    async def get(self, name: str) -> AsyncSweepHandle:
        """Raises NotFoundError."""
        return AsyncSweepHandle(self._service, await self._service.sweep(await self._key_of(name)))


class Sweeps(Face[AsyncSweeps]):
    """`client.sweeps`: those that are there. `client.sweep(...)` begins one."""

    list = waits(AsyncSweeps.list)
    get = becomes(AsyncSweeps.get, SweepHandle, "SweepHandle")
