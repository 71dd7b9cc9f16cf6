"""What a job that does not start waits for: said once, and again when that changes."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from oarsman import names
from oarsman.cli.messages import of, t
from oarsman.cli.session import short

if TYPE_CHECKING:
    from oarsman.job.state import Attempt, Status
    from oarsman.runtime.jobs import JobRecord


def never_started(status: Status) -> bool:
    """Whether the job's command never ran. Another operator's status has no timeline, only conditions."""
    if status.timeline:
        return "launched" not in status.timeline
    return status.condition(names.RUNNING) is None and not status.is_true(names.SUCCEEDED)


class Reasons:
    """Feed it every record of a job; it gives the sentences that are news."""

    def __init__(self) -> None:
        self._said: deque[str] = deque(maxlen=2)  # two reasons that take turns (an image is pulled again) are no news
        self._restart = ""
        self._attempt = 1

    def news(self, record: JobRecord) -> list[str]:
        name = short(record.job.key)
        return [f"{name}: {text}" for text in (*self._restarting(record), *self._attempts(record), *self._wait(record))]

    def _attempts(self, record: JobRecord) -> list[str]:
        """Each new attempt, with the reason for it unless that was said when the last one ended."""
        said = []
        for before, attempt in zip((None, *record.status.attempts), record.status.attempts, strict=False):
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

    def _restarting(self, record: JobRecord) -> list[str]:
        found = record.status.condition(names.RESTARTING)
        if found is None or not found.status or found.message == self._restart:
            return []
        self._restart = found.message
        return [of(found.message)]

    def _wait(self, record: JobRecord) -> list[str]:
        """A place in the queue of one machine has words of its own."""
        status = record.status
        found = status.condition(names.QUEUED)
        if found is None or not found.status or status.queue is not None or found.message in self._said:
            return []
        if record.stop_requested:
            return []
        self._said.append(found.message)
        return [of(found.message)]
