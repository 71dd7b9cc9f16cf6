"""A job that is watched: as it is shown, and what it waits for while it does not start."""

from __future__ import annotations

import shlex
import sys
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from oarsman import names
from oarsman.cli.render import coloured
from oarsman.cli.session import Session, short
from oarsman.cli.text import of, safe, t
from oarsman.errors import ManifestError, OarsmanError
from oarsman.status import words
from oarsman.text.sentence import apart

if TYPE_CHECKING:
    from rich.status import Status as Spinner

    from oarsman.job.job import Job
    from oarsman.job.state import Status
    from oarsman.service.models import JobSummary, JobView

_LOOK_AFTER_SECONDS = 11.0
_WARNINGS = (names.REASON_EXCEPTION, names.REASON_OTHER_MPI, names.REASON_IDLE_RANK)  # of a job that runs


@dataclass(frozen=True)
class ShownJob:
    """A job as the service tells of it, read back into the values that pages are made of."""

    view: JobView
    status: Status

    @cached_property
    def job(self) -> Job:
        """Of the document, for those who show what was asked for: nobody else reads it at every change."""
        from oarsman.manifest import job_checked_before, sketch

        try:
            return job_checked_before(self.view.document)
        except ManifestError:
            return sketch(self.view.document)

    @property
    def summary(self) -> JobSummary:
        return self.view.summary

    @property
    def stopping(self) -> bool:
        return self.summary.state == words.STOPPING

    @property
    def stopped(self) -> bool:
        return self.summary.state == words.STOPPED

    @staticmethod
    def of(view: JobView) -> ShownJob:
        from oarsman.status.codec import from_wire  # late: not everybody who waits waits for a job

        return ShownJob(view, from_wire(view.document["status"]))


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
    away = names.REASON_NO_HOSTS, names.REASON_CLOSED
    return placed and found is not None and found.status and found.reason in away


def closed_hosts(status: Status) -> str:
    """Why it cannot start before somebody lets us in to its hosts; empty if it can, or has."""
    found = status.condition(names.QUEUED)
    closed = found is not None and found.status and found.reason == names.REASON_CLOSED
    return status.queue.reason if closed and status.queue is not None and not status.attempts else ""


class Reasons:
    """Feed it a job whenever it has changed; it gives the sentences that are news."""

    def __init__(self) -> None:
        self._said: deque[str] = deque(maxlen=2)  # two reasons that take turns (an image is pulled again) are no news
        self._restart = ""
        self._hints = {""}  # that were said
        self._attempt = 1

    def news(self, shown: ShownJob) -> list[str]:
        news = *self._restarting(shown), *self._attempts(shown), *self._warning(shown), *self._waiting(shown)
        return [t("{what}: {why}", what=short(shown.summary.key), why=text) for text in news]

    def _restarting(self, shown: ShownJob) -> Iterator[str]:
        found = shown.status.condition(names.RESTARTING)
        if found is not None and found.status and found.message != self._restart:
            self._restart = found.message
            cause = shown.status.cause
            hint = of(cause.hint) if cause is not None and cause.hint else ""
            told = [] if hint in self._hints else [f"{t('hint: ')}{hint}"]
            self._hints.add(hint)
            yield "\n  ".join([of(found.message), *told])

    def _attempts(self, shown: ShownJob) -> Iterator[str]:
        """Each new attempt, with the reason for it unless that was said when the last one ended."""
        for before, attempt in zip((None, *shown.status.attempts), shown.status.attempts, strict=False):
            if attempt.number > self._attempt:
                self._attempt = number = attempt.number
                self._said.clear()
                why = before.cause.summary if before and before.cause else ""
                if why and why not in self._restart:
                    yield t("attempt {number}, since the one before ended: {why}", number=number, why=of(why))
                else:
                    yield t("attempt {number}", number=number)

    def _warning(self, shown: ShownJob) -> Iterator[str]:
        found = shown.status.condition(names.RUNNING)
        warns = found is not None and found.status and found.reason in _WARNINGS
        if found is not None and warns and found.message not in self._said:
            self._said.append(found.message)
            yield of(found.message)

    def _waiting(self, shown: ShownJob) -> Iterator[str]:
        """Hosts that are in the way, one in a line: who reads it is the one to repair them, or knows who is. A place in
        the queue of one machine has words of its own."""
        queue, queued = shown.status.queue, shown.status.condition(names.QUEUED)
        if queued is None or not queued.status or shown.stopping:
            return
        reason = queued.message if queue is None else queue.reason
        if reason in self._said or (queue is not None and not waits_for_hosts(shown.status)):
            return
        self._said.append(reason)
        if queue is None:
            yield of(reason)
            return
        first, *hosts = apart(reason)
        check = f"oarsman hosts check --hosts {shlex.quote(shown.job.annotation(names.ANNOTATION_INVENTORY))}"
        hint = t("it starts as soon as they can be used; `{command}` says what to do", command=check)
        yield "\n  ".join([t("waiting for its hosts: {reason}", reason=of(first)), *map(of, hosts), hint])


def watched(session: Session, changes: AsyncGenerator[JobView, None]) -> Iterator[ShownJob]:
    """The job whenever it has changed, after what it waits for was said."""
    reasons = Reasons()
    with closing(session.iterate(changes)) as views:
        for view in views:
            shown = ShownJob.of(view)
            for text in reasons.news(shown):
                session.note(text)
            yield shown


# -- the line that says so, until the first output -----------------------------------------------------
def waiting_for(shown: ShownJob) -> str | None:
    """What the job waits for; None once it speaks or has ended."""
    status, row = shown.status, shown.summary
    if status.finished or "firstOutput" in status.timeline:
        return None
    if shown.stopping:
        return t("{name}: stopping", name=row.name)
    if status.queue is not None and not status.queue.position:  # it is not known yet whether it has to stand in line
        return t("{name}: waiting: {reason}", name=row.name, reason=of(status.queue.reason))
    if waits_for_hosts(status):  # for which ones, and why, has been said
        return t("{name}: waiting for its hosts", name=row.name)
    if status.queue is not None:
        return t(
            "{name}: waiting for room, place {position}: {reason}",
            name=row.name,
            position=status.queue.position,
            reason=of(status.queue.reason),
        )
    if "hostsUp" not in status.timeline:
        ready = status.worker.ready
        return t("{name}: starting hosts, {ready} of {total}", name=row.name, ready=ready, total=row.workers)
    return t("{name}: running, no output yet", name=row.name)


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
            from rich.console import Console
            from rich.text import Text

            if self._spinner is None:
                self._spinner = Console(file=sys.stderr, no_color=not coloured(sys.stderr)).status(Text(safe(text)))
                self._spinner.start()
            else:
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
