"""Suspend and resume.

Suspending gives everything back, whatever the clean policy says, so that a failed worker does not block
its number for ever. The attempt in hand ends as Suspended and costs no retry. The start time is taken
back: the deadline starts anew. A resumed job takes the whole way again, admission and start barrier
included, with the next attempt number.
"""

from __future__ import annotations

from oarsman import names
from oarsman.plan import attempts
from oarsman.plan.actions import Dismantle, ReleaseGang
from oarsman.plan.policies import cleanup
from oarsman.plan.turn import Turn
from oarsman.text.sentence import Text


def suspend(turn: Turn) -> Turn:
    if not turn.job.run_policy.suspend:
        return _resume(turn)
    if not turn.status.is_true(names.SUSPENDED):
        return _conditions(turn).again().end()  # on record before anything goes: a resume must not find it lost
    turn = take_back(_conditions(turn))
    return (turn.do(ReleaseGang()) if turn.seen.gang_asks else turn).end()


def _conditions(turn: Turn) -> Turn:
    suspended, not_running = Text("MPIJob suspended"), Text("MPIJob {key} is suspended.", key=turn.job.key)
    if not turn.status.is_true(names.SUSPENDED):
        turn = turn.tell(names.REASON_SUSPENDED, suspended)
    turn = attempts.close(turn, names.SUSPENDED).become(start_time=None, retry_at=None, queue=None)
    turn = turn.say(names.RUNNING, False, names.REASON_SUSPENDED, not_running)
    turn = turn.say(names.SUSPENDED, True, names.REASON_SUSPENDED, suspended)
    for type_ in (names.RESTARTING, names.QUEUED):
        turn = turn.unsay(type_, names.REASON_SUSPENDED, not_running)
    return turn


def take_back(turn: Turn) -> Turn:
    """Everything goes; what is going already is left to it."""
    turn = cleanup.take_away(turn, lambda member: not member.terminating)
    nothing_left = turn.seen.launcher is None and not turn.seen.workers
    return turn.do(Dismantle()) if nothing_left and cleanup.under_way(turn) else turn


def _resume(turn: Turn) -> Turn:
    if not turn.status.is_true(names.SUSPENDED):
        return turn
    resumed = Text("MPIJob resumed")
    return turn.say(names.SUSPENDED, False, names.REASON_RESUMED, resumed).tell(names.REASON_RESUMED, resumed)
