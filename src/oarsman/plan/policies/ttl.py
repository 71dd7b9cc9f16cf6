"""ttlSecondsAfterFinished: the job itself goes, with all it had.

Looked at only when the end is on record, and counted from the recorded time: a supervisor that was
down for longer than the TTL deletes the job, it does not run it again.
"""

from __future__ import annotations

from datetime import timedelta

from oarsman import names
from oarsman.plan.actions import DeleteJob, DeleteLauncher, DeleteWorker
from oarsman.plan.policies import cleanup
from oarsman.plan.turn import Turn
from oarsman.text.sentence import Text


def time_to_live(turn: Turn) -> Turn:
    seconds, ended = turn.job.run_policy.ttl_seconds_after_finished, turn.status.completion_time
    if seconds is None or ended is None:
        return turn
    due = ended + timedelta(seconds=seconds)
    if turn.now < due:
        return turn.wake_at(due)
    if cleanup.under_way(turn):
        return turn  # a job that is gone can tell nobody to end
    launcher = turn.seen.launcher
    gone = [DeleteWorker(w.index) for w in turn.seen.workers if DeleteWorker(w.index) not in turn.actions]
    if launcher is not None and DeleteLauncher(launcher.attempt) not in turn.actions:
        turn = turn.do(DeleteLauncher(launcher.attempt))
    message = Text("MPIJob {key} is deleted {seconds} s after its end", key=turn.job.key, seconds=seconds)
    return turn.do(*gone, DeleteJob()).tell(names.REASON_TTL, message)
