"""What a job that does not start waits for: said once, and again when that changes."""

from __future__ import annotations

import shlex
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from oarsman import names
from oarsman.cli.render import coloured
from oarsman.cli.session import Session, short
from oarsman.cli.text import of, safe, t
from oarsman.errors import OarsmanError

if TYPE_CHECKING:
    from rich.status import Status as Spinner

    from oarsman.cli.shown_job import ShownJob
    from oarsman.job.state import Attempt, Status


_LOOK_AFTER_SECONDS = 11.0


def controller(session: Session) -> str:
    return t("the operator") if session.place == "kube" else t("the supervisor")


@contextmanager
def told_if_nothing_happens(session: Session, key: str, tell: Callable[[str], None]) -> Iterator[None]:
    """Within, `tell` is called once if nobody has looked at the job after a while. On one machine somebody does."""

    def look() -> None:
        with suppress(OarsmanError, OSError):
            if why := session.run(session.service.attention(key)).silence:
                tell(why)

    timer = threading.Timer(_LOOK_AFTER_SECONDS, look)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def never_started(status: Status) -> bool:
    """Whether the job's command never ran. Another operator's status has no timeline, only conditions."""
    if status.timeline:
        return "launched" not in status.timeline
    return status.condition(names.RUNNING) is None and not status.is_true(names.SUCCEEDED)


def waits_for_hosts(status: Status) -> bool:
    """Whether hosts that cannot be used now are in its way; not while it is still being found out."""
    found = status.condition(names.QUEUED)
    placed = status.queue is not None and status.queue.position > 0
    return placed and found is not None and found.status and found.reason == names.REASON_NO_HOSTS


class Reasons:
    """Feed it a job whenever it has changed; it gives the sentences that are news."""

    def __init__(self) -> None:
        self._said: deque[str] = deque(maxlen=2)  # two reasons that take turns (an image is pulled again) are no news
        self._restart = ""
        self._attempt = 1

    def news(self, shown: ShownJob) -> list[str]:
        name = short(shown.key)
        news = *self._restarting(shown), *self._attempts(shown), *self._hosts(shown), *self._wait(shown)
        return [f"{name}: {text}" for text in news]

    def _attempts(self, shown: ShownJob) -> list[str]:
        """Each new attempt, with the reason for it unless that was said when the last one ended."""
        said = []
        for before, attempt in zip((None, *shown.status.attempts), shown.status.attempts, strict=False):
            if attempt.number > self._attempt:
                self._attempt = attempt.number
                self._said.clear()
                said.append(self._begun(attempt, before))
        return said

    def _begun(self, attempt: Attempt, before: Attempt | None) -> str:
        why = before.cause.summary if before is not None and before.cause is not None else ""
        if not why or why in self._restart:
            return t("attempt {number}", number=attempt.number)
        return t("attempt {number}, since the one before ended: {why}", number=attempt.number, why=of(why))

    def _restarting(self, shown: ShownJob) -> list[str]:
        found = shown.status.condition(names.RESTARTING)
        if found is None or not found.status or found.message == self._restart:
            return []
        self._restart = found.message
        return [of(found.message)]

    def _hosts(self, shown: ShownJob) -> list[str]:
        """One host in a line: who reads it is the one to repair them, or knows who is."""
        status = shown.status
        if not waits_for_hosts(status) or status.queue is None or status.queue.reason in self._said:
            return []
        if shown.stopping:
            return []
        self._said.append(status.queue.reason)
        first, *hosts = status.queue.reason.split("; ")
        check = f"oarsman hosts check --hosts {shlex.quote(shown.job.annotation(names.ANNOTATION_INVENTORY))}"
        hint = t("it starts as soon as they can be used; `{command}` says what to do", command=check)
        return ["\n  ".join([t("waiting for its hosts: {reason}", reason=of(first)), *map(of, hosts), hint])]

    def _wait(self, shown: ShownJob) -> list[str]:
        """A place in the queue of one machine has words of its own."""
        status = shown.status
        found = status.condition(names.QUEUED)
        if found is None or not found.status or status.queue is not None or found.message in self._said:
            return []
        if shown.stopping:
            return []
        self._said.append(found.message)
        return [of(found.message)]


# -- the line that says so, until the first output -----------------------------------------------------
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
