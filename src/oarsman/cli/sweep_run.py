"""A sweep in the foreground: points are handed in as others end, a line says how far it is, a signal stops it.

One thread drives; the main thread, the only one that Python interrupts, waits for it and for signals.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import click

from oarsman import names
from oarsman.cli import documents, render
from oarsman.cli.failures import note
from oarsman.cli.foreground import Signals
from oarsman.cli.inputs import current_folder
from oarsman.cli.messages import t
from oarsman.cli.progress import StatusLine
from oarsman.cli.session import Session, short
from oarsman.errors import NotFoundError
from oarsman.job.sweep import NOT_SUBMITTED, index_of
from oarsman.status.words import STOPPED, for_people
from oarsman.text import units

if TYPE_CHECKING:
    import asyncio

    from oarsman.service.contract import Service
    from oarsman.service.models import SweepPoint, SweepSpec, SweepView
    from oarsman.service.sweep_runs import Drive

_TICK_SECONDS = 0.2
_ASK_AGAIN_SECONDS = 10.0
_ENDED = (names.SUCCEEDED, names.FAILED, STOPPED)


def in_the_foreground(session: Session, wanted: SweepSpec | str, *, wait: bool, output: str | None) -> int:
    """Begin a sweep, or go on with the one of that key. The exit code: 0 if every point succeeded (or could be handed
    in, for those who do not wait)."""
    drive: Drive | ServerDrive
    if session.remote is None:
        current_folder()
        drive = session.run(session.here().driven_sweep(wanted))
    else:
        drive = session.run(ServerDrive.begin(session.service, wanted))
    name = short(drive.sweep.key)
    if not wait:
        session.run(drive.hand_in())
        return _left_alone(drive, name, session, output)
    watched = _Watched(session, drive)
    signalled = watched.follow()
    view = _view(session, drive.sweep.key)
    if view is None:
        note(t("{name} was deleted", name=name))
        return 1
    show_results(view, output)
    counts = {state: view.states.get(state, 0) for state in ("Succeeded", "Failed")}
    if not session.quiet:
        text = t(
            "{name}: {succeeded} of {total} succeeded, {failed} failed",
            name=name,
            total=view.total,
            succeeded=counts["Succeeded"],
            failed=counts["Failed"],
        )
        note(click.style(text, fg="green" if view.state == "Succeeded" else "red"))
    if view.state in ("Stopped", "Running"):
        note(t("`oarsman sweep resume {name}` goes on with it", name=name))
    if signalled is not None:
        return 128 + signalled
    return 0 if view.state == "Succeeded" else 1


def _left_alone(drive: Drive | ServerDrive, name: str, session: Session, output: str | None) -> int:
    if output:
        view = _view(session, drive.sweep.key)
        if view is not None:
            show_results(view, output)
    elif not session.quiet:
        note(
            t(
                "{name}: {count} of {total} points are handed in",
                name=name,
                count=drive.total - len(drive.todo),
                total=drive.total,
            )
        )
    if drive.todo and session.remote is None:  # a server goes on by itself
        note(t("`oarsman sweep resume {name}` goes on with it", name=name))
    return 0


def _view(session: Session, key: str) -> Any:
    with suppress(NotFoundError):
        return session.run(session.service.sweep(key))
    return None


class _Watched:
    def __init__(self, session: Session, drive: Drive | ServerDrive) -> None:
        self._session, self._drive = session, drive
        self._news: SimpleQueue[Any] = SimpleQueue()
        self._progress = StatusLine(wanted=not session.quiet)
        self._ended = threading.Event()

    def follow(self) -> int | None:
        """Until every point has ended. The number of the signal that stopped it."""
        signalled: int | None = None
        with Signals(self._news.put) as signals:
            signals.waiting = False
            self._start(self._run)
            try:
                while not self._ended.is_set():
                    with suppress(Empty):
                        found = self._news.get(timeout=_TICK_SECONDS)
                        if isinstance(found, BaseException):
                            raise found
                        if signalled is not None:
                            note(t("what runs is left to end by itself"))
                            break
                        signalled = found.number
                        self._stop()
            finally:
                self._session.run(self._drive.close())
                self._progress.end()
        return signalled

    def _start(self, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                self._news.put(error)

        threading.Thread(target=guarded, name="sweep", daemon=True).start()

    def _run(self) -> None:
        self._session.run(self._drive.run(to_the_end=True, seeing=self._show))
        self._ended.set()

    def _stop(self) -> None:
        """In a thread of its own: the next signal must find somebody who listens."""
        self._progress.pause()
        note(t("stopping {name}; once more leaves it as it is", name=short(self._drive.sweep.key)))
        self._session.run(self._drive.give_up())

        def stop() -> None:
            with suppress(NotFoundError):  # nothing of it is there yet
                self._session.run(self._session.service.stop_sweep(self._drive.sweep.key))

        self._start(stop)

    def _show(self) -> None:
        drive = self._drive
        words = Counter(drive.states.values())
        ended = sum(words[state] for state in ("Succeeded", "Failed", "Stopped"))
        self._progress.show(
            t(
                "{name}: {ended} of {total} ended, {failed} failed, {active} on their way",
                name=short(drive.sweep.key),
                ended=ended,
                total=drive.total,
                failed=words["Failed"],
                active=len(drive.states) - ended,
            )
        )


class ServerDrive:
    """What `Drive` is for a sweep of this process: here the server hands in the points, and tells of their jobs."""

    def __init__(self, service: Service, sweep: SweepView) -> None:
        self._service, self.sweep = service, sweep
        self.total = sweep.total
        self.states = {point.index: point.state for point in sweep.points if point.state != NOT_SUBMITTED}
        self._running: asyncio.Task[Any] | None = None

    @classmethod
    async def begin(cls, service: Service, wanted: SweepSpec | str) -> ServerDrive:
        asked = service.resume_sweep(wanted) if isinstance(wanted, str) else service.create_sweep(wanted)
        return cls(service, await asked)

    @property
    def todo(self) -> list[int]:
        return [point.index for point in self.sweep.points if point.index not in self.states]

    async def hand_in(self) -> None:
        """The server has, what may be now."""

    async def run(self, *, to_the_end: bool, seeing: Callable[[], object]) -> None:
        import asyncio

        from oarsman.service.models import JobQuery

        self._running = asyncio.current_task()
        query = JobQuery(namespace=self.sweep.namespace, sweep=self.sweep.name)
        seeing()
        async with aclosing(self._service.changes(query)) as changes:
            coming = asyncio.ensure_future(anext(changes, None))
            try:
                while True:
                    # A server that hands in no more points, because it cannot, changes no job with that: it is asked.
                    if not (await asyncio.wait({coming}, timeout=_ASK_AGAIN_SECONDS))[0]:
                        if await self._over():
                            return
                        continue
                    if (change := coming.result()) is None:
                        return
                    coming = asyncio.ensure_future(anext(changes, None))
                    if (row := change.changed) is not None:
                        self._see(row.name, for_people(row.state, row.reason))
                    elif change.removed is not None:
                        self._see(change.removed.partition("/")[2], None)
                    seeing()
                    if await self._over():
                        return
            finally:
                coming.cancel()
                await asyncio.wait({coming})

    def _see(self, name: str, state: str | None) -> None:
        index = index_of(self.sweep.name, name)
        if index is not None and state is not None:
            self.states[index] = state
        elif index is not None:
            self.states.pop(index, None)

    async def _over(self) -> bool:
        if any(state not in _ENDED for state in self.states.values()):
            return False
        return len(self.states) == self.total or await self._ended_there()

    async def _ended_there(self) -> bool:
        try:
            return (await self._service.sweep(self.sweep.key)).state != names.RUNNING
        except NotFoundError:
            return True

    async def give_up(self) -> None:
        """The server hands in nothing more once it is told to stop."""

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()


# -- results ------------------------------------------------------------------------------------------
def show_results(view: SweepView, output: str | None) -> None:
    from oarsman.service import sweep_results

    if output == "json":
        documents.emit(view.model_dump(mode="json", by_alias=True), "json")
    elif output == "csv":
        click.echo(sweep_results.csv_text(view), nl=False)
    else:
        metric = [t("METRIC")] if view.metric else []
        headers = [t("POINT"), *view.parameters, t("STATE"), t("TOOK"), *metric, t("CAUSE")]
        render.table(headers, [_point_row(view, point) for point in view.points])


def _point_row(view: SweepView, point: SweepPoint) -> list[str]:
    from oarsman.job.sweep import text_of
    from oarsman.service.sweep_results import seconds

    took = seconds(point)
    metric = ["" if point.metric is None else f"{point.metric:g}"] if view.metric else []
    values = [text_of(point.parameters.get(name, "")) for name in view.parameters]
    return [
        str(point.index),
        *values,
        point.state,
        "" if took is None else units.duration(took),
        *metric,
        point.cause,
    ]
