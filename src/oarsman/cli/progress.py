"""The line that says what a starting job waits for: on a terminal, until the first output."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from oarsman.cli.messages import of, t
from oarsman.cli.render import coloured
from oarsman.cli.text import safe
from oarsman.cli.waiting import waits_for_hosts

if TYPE_CHECKING:
    from rich.status import Status as Spinner

    from oarsman.cli.shown_job import ShownJob


def waiting_for(shown: ShownJob) -> str | None:
    """What the job waits for; None once it speaks or has ended."""
    status, job = shown.status, shown.job
    if status.finished or "firstOutput" in status.timeline:
        return None
    if shown.stopping:
        return t("{name}: stopping", name=job.name)
    if status.queue is not None and not status.queue.position:  # it is not known yet whether it has to stand in line
        return t("{name}: waiting: {reason}", name=job.name, reason=of(status.queue.reason))
    if waits_for_hosts(status):  # for which ones, and why, has been said
        return t("{name}: waiting for its hosts", name=job.name)
    if status.queue is not None:
        return t(
            "{name}: waiting for room, place {position}: {reason}",
            name=job.name,
            position=status.queue.position,
            reason=of(status.queue.reason),
        )
    if "hostsUp" not in status.timeline:
        ready = status.worker.ready
        return t("{name}: starting hosts, {ready} of {total}", name=job.name, ready=ready, total=job.workers)
    return t("{name}: running, no output yet", name=job.name)


class StatusLine:
    """A spinner on stderr. Any thread may end it; once ended it stays so, once paused until there is news."""

    def __init__(self, *, wanted: bool) -> None:
        self.visible = self._wanted = wanted and sys.stderr.isatty()
        self._spinner: Spinner | None = None
        self._lock = threading.Lock()

    def show(self, text: str | None) -> None:
        if text is None:
            self.end()
            return
        with self._lock:
            if not self._wanted:
                return
            if self._spinner is None:
                from rich.console import Console
                from rich.text import Text

                self._spinner = Console(file=sys.stderr, no_color=not coloured(sys.stderr)).status(Text(safe(text)))
                self._spinner.start()
            else:
                from rich.text import Text

                self._spinner.update(Text(safe(text)))

    def pause(self) -> None:
        with self._lock:
            self._clear()

    def end(self) -> None:
        if not self._wanted:
            return
        with self._lock:
            self._wanted = False
            self._clear()

    def _clear(self) -> None:
        with suppress(OSError):  # the terminal may have gone away
            if self._spinner is not None:
                self._spinner.stop()
                self._spinner = None
