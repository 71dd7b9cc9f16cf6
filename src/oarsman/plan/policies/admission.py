"""May it start? Asked once per start, before anything is made.

A job that has started, or of which something already exists, is not asked again: a place that was
given is not taken back. One that gave it back itself, between two attempts, asks as before. Here are
also the two findings that make starting pointless: what this engine cannot honour, and objects of the
same name that belong to someone else.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from oarsman import names
from oarsman.job.state import Cause, QueuePlace
from oarsman.plan import finish
from oarsman.plan.policies import deadline, retry
from oarsman.plan.turn import Turn
from oarsman.status import conditions
from oarsman.text.sentence import Text

# Objects of an earlier job of the same name are often still on their way out.
CONFLICT_PATIENCE: Final = timedelta(seconds=30)


def unsupported(turn: Turn) -> Turn:
    what = turn.seen.unsupported
    if what is None or _begun(turn):
        return turn
    return finish.fail(turn, names.REASON_UNSUPPORTED, conditions.failed(turn.job.key, what), Cause(summary=what))


def refused(turn: Turn) -> Turn:
    """Whoever creates the members says that they cannot be as asked for. Waiting changes nothing about that."""
    what = turn.seen.refused
    if what is None or turn.status.phase == names.RUNNING:
        return turn
    return finish.fail(turn, names.REASON_INVALID, what, Cause(summary=what))


def conflict(turn: Turn) -> Turn:
    """A name that stays taken is terminal: waiting longer would hold a place in the queue for nothing."""
    what, created = turn.seen.conflict, turn.status.condition(names.CREATED)
    if what is None or turn.seen.launcher is not None:
        return turn
    message, queued = taken(what), turn.status.condition(names.QUEUED)
    since = created.since if created else turn.now
    if queued is not None and queued.status and queued.message == message:
        since = queued.last_update_time  # when it was found, which is long after its creation if it had to queue
    if turn.waits(since, CONFLICT_PATIENCE):
        return turn.wake_at(since + CONFLICT_PATIENCE).end()
    return finish.fail(turn, names.REASON_CONFLICT, message)


def taken(what: str) -> str:
    return Text("Resource {what} already exists and is not managed by MPIJob", what=what)


def admit(turn: Turn) -> Turn:
    answer = turn.seen.admission
    if _begun(turn) or answer.admitted:
        return _admitted(turn)
    if answer.impossible:
        message = conditions.failed(turn.job.key, answer.reason)
        return finish.fail(turn, answer.about, message, Cause(summary=answer.reason))
    message = conditions.queued(answer.position, answer.reason)
    if not turn.status.is_true(names.QUEUED):
        turn = turn.tell(answer.about, message)
    turn = turn.become(queue=QueuePlace(position=answer.position, reason=answer.reason))
    turn = turn.say(names.QUEUED, True, answer.about, message, refresh=True)
    return deadline.deadline(turn).end()  # of one that ran before it goes on


def _admitted(turn: Turn) -> Turn:
    retry_at = turn.status.retry_at
    if retry_at is not None and retry_at < turn.now and not _begun(turn):
        turn = turn.become(retry_at=turn.now)  # its hosts have their time from now on, however long it was queued
    if turn.status.start_time is None:
        turn = turn.become(start_time=turn.now).mark(names.STEP_ADMITTED, turn.now)
    if turn.status.is_true(names.QUEUED) and turn.status.queue is not None:
        message = Text("MPIJob {key} has room and starts", key=turn.job.key)
        turn = turn.tell(names.REASON_ADMITTED, message)
        turn = turn.say(names.QUEUED, False, names.REASON_ADMITTED, message)
    queued = turn.status.condition(names.QUEUED)
    if queued is not None and queued.reason == names.REASON_TROUBLE:  # if it is not over, it will be said again
        turn = turn.unsay(names.QUEUED, names.REASON_ADMITTED, Text("what was in the way is gone"))
    return turn.become(queue=None)


def _begun(turn: Turn) -> bool:
    """Members that exist although no start is on record: the turn that made them was lost."""
    launcher = turn.seen.launcher
    living = any(not w.terminating for w in turn.seen.workers)
    started = turn.status.start_time is not None and not retry.gives_room_back(turn)
    return started or living or (launcher is not None and not launcher.terminating)
