"""How a job ends, for better or worse. Every end goes through here, so every end is complete.

A finished job has a completion time, no condition left that says it is under way, a closed attempt,
and `ended` on its timeline.
"""

from __future__ import annotations

from datetime import datetime

from oarsman import names
from oarsman.job.state import Cause
from oarsman.plan import attempts
from oarsman.plan.turn import Turn
from oarsman.status import conditions
from oarsman.text.sentence import Text


def succeed(turn: Turn) -> Turn:
    message = Text("MPIJob {key} successfully completed.", key=turn.job.key)
    return _end(turn, names.SUCCEEDED, names.REASON_SUCCEEDED, message)


def fail(turn: Turn, reason: str, message: str, cause: Cause | None = None) -> Turn:
    message = conditions.cut(message)
    return _end(turn, names.FAILED, reason, message, cause or Cause(summary=message))


def _end(turn: Turn, outcome: str, reason: str, message: str, cause: Cause | None = None) -> Turn:
    """The condition of the end, and the outcome of the open attempt, are the same word."""
    at, key = _completion_time(turn), turn.job.key
    turn = attempts.close(turn, outcome, at=at, cause=cause).become(cause=cause)
    if turn.status.condition(names.RUNNING) is None:
        # Upstream's "is finished but Running condition was never set" reads like a fault of a job that did well.
        never_seen = Text("MPIJob {key} is finished; it ended before it was seen running.", key=key)
        turn = turn.say(names.RUNNING, False, names.REASON_RUNNING, never_seen, at=at)
    turn = turn.say(outcome, True, reason, message, at=at).tell(reason, message, warning=outcome == names.FAILED)
    for type_ in (names.RUNNING, names.RESTARTING, names.QUEUED):
        turn = turn.unsay(type_, reason, Text("MPIJob {key} is finished.", key=key), at=at)
    turn = turn.become(completion_time=at, queue=None, retry_at=None).mark(names.STEP_ENDED, at)
    # What is left of it is cleared away in the next turn, once this verdict is on record.
    return turn.again().end()


def _completion_time(turn: Turn) -> datetime:
    """When the launcher ended, or now; never before what the status already tells, whatever the clocks say."""
    ended = turn.launcher.finished_at if turn.launcher and turn.launcher.phase.ended else None
    told = (turn.status.start_time, conditions.latest_time(turn.status.conditions))
    earliest = max((t for t in told if t is not None), default=turn.now)
    return max(min(ended or turn.now, turn.now), earliest)
