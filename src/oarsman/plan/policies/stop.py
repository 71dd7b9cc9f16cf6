"""The user asked for the end: everything ends, the record stays, nothing is tried again."""

from __future__ import annotations

from typing import Final

from oarsman import names
from oarsman.job.state import Attempt, Cause
from oarsman.plan import finish
from oarsman.plan.policies import cleanup
from oarsman.plan.turn import Turn
from oarsman.status import exceptions
from oarsman.text.sentence import Text

_BEFORE: Final = Text("{what}; before that {why}")


def stop(turn: Turn) -> Turn:
    if not turn.seen.stop_requested:
        return turn
    ranks, machines = turn.seen.ranks, turn.status.machines
    cause = exceptions.when_ended(Cause(summary=Text("stopped by the user")), ranks, machines)
    ended = Text("MPIJob {key} was stopped by the user", key=turn.job.key)
    message = exceptions.and_before(ended, ranks, machines)
    failed = _failed_before(turn)
    if message == ended and failed is not None and failed.cause is not None:
        before = Text("attempt {number} failed: {why}", number=failed.number, why=failed.cause.summary)
        message = Text(_BEFORE, what=ended, why=before)
        # Rank, host and code are of that attempt, and not of how this job ended.
        summary = Text(_BEFORE, what=cause.summary, why=before)
        cause = Cause(summary=summary, hint=failed.cause.hint, last_lines=failed.cause.last_lines)
    return finish.fail(cleanup.end_all(turn), names.REASON_STOPPED, message, cause)


def _failed_before(turn: Turn) -> Attempt | None:
    """The last attempt that is over, if it failed: of a job that is stopped while it is retried."""
    over = next((attempt for attempt in reversed(turn.status.attempts) if attempt.outcome), None)
    return over if over is not None and over.outcome == names.FAILED else None
