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
    at = _completion_time(turn)
    message = Text("MPIJob {key} successfully completed.", key=turn.job.key)
    turn = _never_ran(attempts.close(turn, attempts.SUCCEEDED, at=at).become(cause=None), at)
    turn = turn.say(names.SUCCEEDED, True, names.REASON_SUCCEEDED, message, at=at)
    return _wind_up(turn.tell(names.REASON_SUCCEEDED, message), names.REASON_SUCCEEDED, at)


def fail(turn: Turn, reason: str, message: str, cause: Cause | None = None) -> Turn:
    at = _completion_time(turn)
    message = conditions.cut(message)
    cause = cause or Cause(summary=message)
    turn = _never_ran(attempts.close(turn, attempts.FAILED, at=at, cause=cause).become(cause=cause), at)
    turn = turn.say(names.FAILED, True, reason, message, at=at)
    return _wind_up(turn.tell(reason, message, warning=True), reason, at)


def _completion_time(turn: Turn) -> datetime:
    """When the launcher ended, or now; never before what the status already tells, whatever the clocks say."""
    ended = turn.launcher.finished_at if turn.launcher and turn.launcher.phase.ended else None
    told = (turn.status.start_time, conditions.latest_time(turn.status.conditions))
    earliest = max((t for t in told if t is not None), default=turn.now)
    return max(min(ended or turn.now, turn.now), earliest)


def _never_ran(turn: Turn, at: datetime) -> Turn:
    if turn.status.condition(names.RUNNING) is not None:
        return turn
    # Upstream's "is finished but Running condition was never set" reads like a fault of a job that did well.
    message = Text("MPIJob {key} is finished; it was over before it was seen running.", key=turn.job.key)
    return turn.say(names.RUNNING, False, names.REASON_RUNNING, message, at=at)


def _wind_up(turn: Turn, reason: str, at: datetime) -> Turn:
    message = Text("MPIJob {key} is finished.", key=turn.job.key)
    for type_ in (names.RUNNING, names.RESTARTING, names.QUEUED):
        turn = turn.unsay(type_, reason, message, at=at)
    turn = turn.become(completion_time=at, queue=None, retry_at=None).mark(names.STEP_ENDED, at)
    # What is left of it is cleared away in the next turn, once this verdict is on record.
    return turn.again().end()
