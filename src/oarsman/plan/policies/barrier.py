"""The start barrier: the launcher is made when every worker can be logged in to, and not before.

launcherCreationPolicy AtStartup waits as well. Upstream starts the launcher at once and lets it fail
until its workers answer, which burns retries; waiting costs nothing and gives the same first moment
at which ranks can run. The wait is bounded, and when it is over the job fails with the name of the
host that was waited for. No attempt has begun, so no retry is spent.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from oarsman import names
from oarsman.job.state import Cause
from oarsman.plan import attempts, finish
from oarsman.plan.actions import CreateLauncher
from oarsman.plan.policies import elastic
from oarsman.plan.turn import Turn, usable
from oarsman.status import timeline

PATIENCE: Final = timedelta(minutes=5)


def launch(turn: Turn) -> Turn:
    """Start the next attempt if nothing is left of the last one, its back-off is over and all hosts are ready."""
    if turn.seen.launcher is not None or turn.open_attempt is not None:
        return turn
    waiting = _waiting_for(turn)
    if waiting is None:
        turn = turn.mark(timeline.HOSTS_UP, turn.now)
    retry_at = turn.status.retry_at
    if retry_at is not None and turn.now < retry_at:
        return turn.wake_at(retry_at)
    if waiting is not None:
        return _wait(turn, *waiting)
    number = attempts.next_number(turn)
    turn = elastic.publish(turn.prepare(), turn.job.hosts).do(CreateLauncher(number))
    return attempts.launched(turn, number, turn.now, turn.job.workers)


def _waiting_for(turn: Turn) -> tuple[str, str] | None:
    """The first host that is not ready, and why."""
    for index in range(turn.job.workers):
        worker = turn.worker(index)
        if worker is None:
            return turn.job.worker_host(index), "it does not exist yet"
        if not usable(worker):
            state = "it is going away" if worker.terminating else f"it is {worker.phase.value.lower()}"
            said = worker.not_ready_because or worker.message or worker.reason
            return worker.name, said or state
    return None


def _wait(turn: Turn, host: str, because: str) -> Turn:
    start = turn.status.start_time or turn.now
    since = max(start, turn.status.retry_at or start)
    if turn.now < since + PATIENCE:
        return turn.wake_at(since + PATIENCE)
    summary = f"{host} was not ready after {int(PATIENCE.total_seconds() // 60)} min: {because}"
    return finish.fail(turn, names.REASON_BARRIER, summary, Cause(summary=summary, host=host))
