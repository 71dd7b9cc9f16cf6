"""What is taken away when a job has ended.

| cleanPodPolicy | workers                      | launcher          |
|----------------|------------------------------|-------------------|
| None           | stay                         | stays             |
| Running        | those that run or are to run | stays             |
| All            | every one                    | goes too          |

Whatever the policy: a launcher that is still alive goes (a finished job does not run), and so do
workers beyond the present number of replicas, which nobody would ever find again. A job that was
stopped or ran out of time leaves nothing alive. An engine that does not keep idle members ends all
that lives and dismantles what was prepared, once nothing uses it any more.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from oarsman import names
from oarsman.job.job import CleanPodPolicy
from oarsman.job.observed import Member
from oarsman.plan.actions import DeleteLauncher, DeleteWorker, Dismantle
from oarsman.plan.policies import elastic
from oarsman.plan.turn import Turn

_BY_FORCE: Final = (names.REASON_STOPPED, names.REASON_DEADLINE)
_PATIENCE: Final = timedelta(seconds=1)  # between two looks at members that are on their way out


def clean_up(turn: Turn) -> Turn:
    """Only for a job whose end is on record: members are the evidence of how it ended."""
    turn = _launcher(turn)
    for worker in turn.seen.workers:
        if not worker.terminating and _worker_goes(turn, worker):
            turn = turn.do(DeleteWorker(worker.index))
    return _dismantle(turn)


def end_all(turn: Turn) -> Turn:
    """End everything that lives, at once."""
    launcher = turn.seen.launcher
    if launcher is not None and _lives(launcher):
        turn = turn.do(DeleteLauncher(launcher.attempt))
    living = [w for w in turn.seen.workers if _lives(w)]
    return elastic.withdraw(turn, living).do(*(DeleteWorker(w.index) for w in living))


def _launcher(turn: Turn) -> Turn:
    launcher = turn.seen.launcher
    if launcher is None or launcher.terminating:
        return turn
    if _lives(launcher) or turn.job.run_policy.clean_pod_policy is CleanPodPolicy.ALL:
        return turn.do(DeleteLauncher(launcher.attempt))
    return turn


def _worker_goes(turn: Turn, worker: Member) -> bool:
    policy = turn.job.run_policy.clean_pod_policy
    if policy is CleanPodPolicy.ALL or worker.index >= turn.job.workers:
        return True
    living_go = policy is CleanPodPolicy.RUNNING or not turn.seen.keeps_idle_members or _ended_by_force(turn)
    return living_go and not worker.phase.ended


def _ended_by_force(turn: Turn) -> bool:
    failed = turn.status.condition(names.FAILED)
    return failed is not None and failed.status and failed.reason in _BY_FORCE


def under_way(turn: Turn) -> bool:
    """Whether something is left that the engine dismantles."""
    return not turn.seen.keeps_idle_members and _prepared(turn)


def _dismantle(turn: Turn) -> Turn:
    if not under_way(turn):
        return turn
    members = (*turn.seen.workers, *((turn.seen.launcher,) if turn.seen.launcher else ()))
    if any(not m.phase.ended for m in members):
        return turn.again(_PATIENCE)
    return turn.do(Dismantle())


def _prepared(turn: Turn) -> bool:
    """Hosts are first published together with the preparation, so the list is a mark of it where no better is."""
    return turn.seen.published_hosts is not None if turn.seen.prepared is None else turn.seen.prepared


def _lives(member: Member) -> bool:
    return not member.phase.ended and not member.terminating
