"""What is taken away when a job has ended.

| cleanPodPolicy | workers                      | launcher          |
|----------------|------------------------------|-------------------|
| None           | stay                         | stays             |
| Running        | those that run or are to run | stays             |
| All            | every one                    | goes too          |

Whatever the policy: a launcher that is still alive goes (a finished job does not run), and so do
workers beyond the present number of replicas, which nobody would ever find again. A job that was
stopped or ran out of time leaves nothing alive. A gang that loses members asks for no places. An
engine that does not keep idle members ends all that lives and dismantles what was prepared, once
nothing uses it any more.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from oarsman import names
from oarsman.job.job import CleanPodPolicy, Job
from oarsman.job.observed import Member
from oarsman.job.state import Status
from oarsman.plan.actions import DeleteLauncher, DeleteWorker, Dismantle, ReleaseGang
from oarsman.plan.policies import elastic
from oarsman.plan.turn import Turn

_BY_FORCE: Final = (names.REASON_STOPPED, names.REASON_DEADLINE)
_PATIENCE: Final = timedelta(seconds=1)  # between two looks at members that are on their way out


def clean_up(turn: Turn) -> Turn:
    """Only for a job whose end is on record: members are the evidence of how it ended."""
    launcher, everything = turn.seen.launcher, turn.job.run_policy.clean_pod_policy is CleanPodPolicy.ALL
    if launcher is not None and not launcher.terminating and (everything or not launcher.phase.ended):
        turn = turn.do(DeleteLauncher(launcher.attempt))
    turn = turn.do(*(DeleteWorker(w.index) for w in turn.seen.workers if not w.terminating and _worker_goes(turn, w)))
    if turn.seen.gang_asks and _living_go(turn):
        turn = turn.do(ReleaseGang())
    if not under_way(turn):
        return turn
    members = (*turn.seen.workers, *((launcher,) if launcher else ()))
    return turn.do(Dismantle()) if all(m.phase.ended for m in members) else turn.again(_PATIENCE)


def end_all(turn: Turn) -> Turn:
    """End everything that lives, at once."""
    return take_away(turn, lambda member: not member.phase.ended and not member.terminating)


def take_away(turn: Turn, which: Callable[[Member], bool]) -> Turn:
    launcher = turn.seen.launcher
    if launcher is not None and which(launcher):
        turn = turn.do(DeleteLauncher(launcher.attempt))
    leaving = list(filter(which, turn.seen.workers))
    return elastic.withdraw(turn, leaving).do(*(DeleteWorker(w.index) for w in leaving))


def _worker_goes(turn: Turn, worker: Member) -> bool:
    if turn.job.run_policy.clean_pod_policy is CleanPodPolicy.ALL or worker.index >= turn.job.workers:
        return True
    return _living_go(turn) and not worker.phase.ended


def living_stay(job: Job, status: Status) -> bool:
    """Whether workers of a job that has ended are to run on, where idle members are kept."""
    failed = status.condition(names.FAILED)
    by_force = failed is not None and failed.status and failed.reason in _BY_FORCE
    return job.run_policy.clean_pod_policy is CleanPodPolicy.NONE and not by_force


def _living_go(turn: Turn) -> bool:
    return not turn.seen.keeps_idle_members or not living_stay(turn.job, turn.status)


def under_way(turn: Turn) -> bool:
    """Whether something is left that the engine dismantles.

    Hosts are first published together with the preparation, so the list is a mark of it where no better is.
    """
    prepared = turn.seen.published_hosts is not None if turn.seen.prepared is None else turn.seen.prepared
    return prepared and not turn.seen.keeps_idle_members
