"""activeDeadlineSeconds: counted from the start, so neither waiting for room nor a suspension uses it up."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from oarsman import names
from oarsman.job.observed import RankReport
from oarsman.job.state import Cause
from oarsman.plan import finish
from oarsman.plan.policies import cleanup
from oarsman.plan.turn import Turn
from oarsman.status import exceptions, other_mpi
from oarsman.text.sentence import Text


def deadline(turn: Turn) -> Turn:
    seconds, start = turn.job.run_policy.active_deadline_seconds, turn.status.start_time
    if seconds is None or start is None:
        return turn
    if turn.now < start:  # the clock was put back, and nobody knows how long it has run
        start, turn = turn.now, turn.become(start_time=turn.now)
    due = start + timedelta(seconds=seconds)
    if turn.now < due:
        return turn.wake_at(due)
    summary = Text("it was still running after its deadline of {seconds} s", seconds=seconds)
    waits = turn.seen.status.condition(names.QUEUED)
    if waits is not None and waits.status:
        template = Text("it had not started after its deadline of {seconds} s: {why}")
        summary = Text(template, seconds=seconds, why=waits.message)
    ended = Text("MPIJob {key} was active longer than its deadline of {seconds} s", key=turn.job.key, seconds=seconds)
    ranks, machines = [_at(due, rank) for rank in turn.seen.ranks], turn.status.machines
    message = exceptions.and_before(ended, ranks, machines)
    cause = Cause(summary=summary, hint=other_mpi.of_running(ranks, machines) or None)
    cause = exceptions.when_ended(cause, ranks, machines)
    return finish.fail(cleanup.end_all(turn), names.REASON_DEADLINE, message, cause)


def _at(due: datetime, rank: RankReport) -> RankReport:
    """As it was then: who keeps the deadline beside us may have ended it since."""
    return replace(rank, exit=None) if rank.finished_at is not None and rank.finished_at >= due else rank
