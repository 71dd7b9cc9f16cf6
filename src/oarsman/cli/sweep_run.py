"""A sweep in the foreground: points are handed in as others end, a line says how far it is, a signal stops it.

One thread drives; the main thread, the only one that Python interrupts, waits for it and for signals.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import click

from oarsman.cli.failures import note
from oarsman.cli.foreground import Signals
from oarsman.cli.messages import t
from oarsman.cli.progress import StatusLine
from oarsman.cli.session import Session, short
from oarsman.cli.sweep_view import service_of, show_results
from oarsman.errors import NotFoundError, UserError

if TYPE_CHECKING:
    from oarsman.service.sweep_runs import Drive, Handing, SweepRunner

_TICK_SECONDS = 0.2
Begin = Callable[["SweepRunner", "Handing"], "Drive"]


def in_the_foreground(session: Session, begin: Begin, *, wait: bool, output: str | None) -> int:
    """The exit code: 0 if every point succeeded (or could be handed in, for those who do not wait)."""
    from oarsman.service.sweep_runs import Handing, SweepRunner

    try:
        folder = Path.cwd()
    except OSError as error:
        raise UserError(t("the current folder is gone"), hint=t("change to a folder that exists")) from error
    handing = Handing(environment=dict(os.environ), folder=folder)
    drive = begin(SweepRunner(session.jobs), handing)
    name = short(drive.sweep.key)
    if not wait:
        drive.hand_in()
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


def _left_alone(drive: Drive, name: str, session: Session, output: str | None) -> int:
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
    if drive.todo:
        note(t("`oarsman sweep resume {name}` goes on with it", name=name))
    return 0


def _view(session: Session, key: str) -> Any:
    with suppress(NotFoundError):
        return service_of(session, key).sweep(key)
    return None


class _Watched:
    def __init__(self, session: Session, drive: Drive) -> None:
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
                self._drive.close()
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
        self._drive.run(to_the_end=True, seeing=self._show)
        self._ended.set()

    def _stop(self) -> None:
        """In a thread of its own: the next signal must find somebody who listens."""
        self._progress.pause()
        note(t("stopping {name}; once more leaves it as it is", name=short(self._drive.sweep.key)))
        self._drive.give_up()

        def stop() -> None:
            from oarsman.service.sweep_runs import SweepRunner

            SweepRunner(self._session.open()).stop(self._drive.sweep.key)

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
