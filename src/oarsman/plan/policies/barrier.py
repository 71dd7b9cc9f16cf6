"""The start barrier: the launcher is made when every worker can be logged in to, and not before.

Upstream starts the launcher at once and lets it fail until its workers answer, which burns retries.
Here it either is not made before they are ready, or (launcherCreationPolicy AtStartup, where the engine
can hold a launcher back) it is made at once, waits inside, and is Pending until they answer.

The wait is bounded, and when it is over the job fails with the name of the host that was waited for.
No attempt has begun, so no retry is spent. Waiting for a place or an image is not the host's fault and
has no bound; it is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from oarsman import names
from oarsman.job.job import LauncherCreation
from oarsman.job.observed import Member, Phase
from oarsman.job.state import Cause
from oarsman.plan import attempts, finish
from oarsman.plan.actions import CreateLauncher
from oarsman.plan.policies import elastic, replacement
from oarsman.plan.turn import Turn, usable
from oarsman.status import conditions
from oarsman.text.sentence import Text

SOON: Final = timedelta(seconds=15)  # a start that takes longer is looked at again, to tell what it waits for
_STATES: Final = {
    Phase.PENDING: Text("it is pending"),
    Phase.RUNNING: Text("it is running"),
    Phase.SUCCEEDED: Text("it is succeeded"),
    Phase.FAILED: Text("it is failed"),
}


def hopeless(turn: Turn) -> Turn:
    """A worker that says itself why nobody will ever log in to it: the next of its kind would say the same."""
    dead = [w for w in turn.seen.workers if w.phase is Phase.FAILED and w.reason == names.REASON_BARRIER]
    if not dead or (turn.launcher is not None and turn.launcher.phase is Phase.RUNNING):
        return turn
    return not_ready(turn, Text("{host}: {why}", host=dead[0].name, why=dead[0].message), dead[0].name)


def launch(turn: Turn) -> Turn:
    """Start the next attempt if nothing is left of the last one, its back-off is over and all hosts are ready."""
    if turn.seen.launcher is not None or turn.open_attempt is not None:
        return turn
    waiting = _waiting_for(turn)
    if waiting is None:
        turn = turn.mark(names.STEP_HOSTS_UP, turn.now)
    retry_at = turn.status.retry_at
    if retry_at is not None and turn.now < retry_at:
        return turn.wake_at(retry_at)
    may_hold = turn.seen.launcher_holds and turn.job.launcher_creation is LauncherCreation.AT_STARTUP
    if waiting is not None and not (may_hold and waiting.coming):
        return _wait(turn, waiting)
    number = turn.status.attempt.number + 1 if turn.status.attempt else 1
    turn = elastic.publish(turn.prepare(), turn.job.hosts).do(CreateLauncher(number))
    return attempts.launched(turn, number, turn.now, turn.job.workers, held=waiting is not None)


def hold(turn: Turn) -> Turn:
    """A launcher that waits inside: tell what for, and give up when its hosts had their time."""
    launcher = turn.launcher
    if launcher is None or launcher.phase is not Phase.PENDING:
        return turn
    return _wait(turn, _waiting_for(turn) or _waiting_for_launcher(turn, launcher))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """A host that is not ready, and why."""

    host: str
    because: str
    since: datetime | None = None
    for_room: bool = False
    coming: bool = False  # it is there, or will be made in this turn
    explained: bool = False  # it says why; otherwise it simply is on its way
    died: bool = False  # it will be replaced, and its successor may die as well


def _waiting_for(turn: Turn) -> _Waiting | None:
    """The first host that is not ready; one that must go away first before all others."""
    found = [waiting for index in range(turn.job.workers) if (waiting := _worker(turn, index)) is not None]
    return next((w for w in found if not w.coming), found[0] if found else None)


def _worker(turn: Turn, index: int) -> _Waiting | None:
    worker = turn.seen.worker(index)
    if worker is None:
        # What keeps us from making it was taken back at the start of this turn.
        queued = turn.seen.status.condition(names.QUEUED)
        because: str = Text("it does not exist yet")
        if queued is not None and queued.status and queued.reason == names.REASON_TROUBLE:
            because = queued.message
        return _Waiting(host=turn.job.worker_host(index), because=because, coming=True)
    if usable(worker):
        return None
    died = worker.phase.ended and not worker.terminating
    state = Text("it is going away") if worker.terminating else _STATES[worker.phase]
    said = worker.not_ready_because or worker.message or worker.reason or state
    return _Waiting(
        host=worker.name,
        because=replacement.what_befell(worker) if died else said,
        since=worker.started_at,
        for_room=worker.waits_for_room or worker.terminating,  # one that goes away makes room for its successor
        coming=not worker.terminating and not worker.phase.ended,
        explained=bool(worker.not_ready_because) or died,
        died=died,
    )


def _waiting_for_launcher(turn: Turn, launcher: Member) -> _Waiting:
    """All workers are up, and still its command has not begun."""
    up = [w.started_at for w in turn.seen.workers if w.started_at is not None]
    since = launcher.started_at if launcher.waits_for_room else max([*up, launcher.started_at or turn.now])
    host, because = launcher.name, launcher.not_ready_because
    named, _, why = because.partition(": ")
    if named in turn.job.hosts:  # the barrier inside says whom it waits for
        host, because = named, Text(why)
    return _Waiting(
        host=host,
        because=because or launcher.message or Text("it is pending"),
        since=since,
        for_room=launcher.waits_for_room,
        explained=bool(because),
    )


def _wait(turn: Turn, waiting: _Waiting) -> Turn:
    turn = _tell(turn, waiting)
    if waiting.for_room:
        return turn
    start = turn.status.start_time or turn.now
    since = max(start, turn.status.retry_at or start, waiting.since or start)
    told = turn.status.condition(names.QUEUED)
    if waiting.died and told is not None:  # not every new one has all the time again
        since = told.since
    patience = turn.seen.patience
    if turn.now < since + patience:
        return turn.wake_at(since + min(SOON, patience) if turn.now < since + SOON else since + patience)
    host, why, waited = waiting.host, waiting.because, duration(patience)
    return not_ready(turn, Text("{host} was not ready after {waited}: {why}", host=host, waited=waited, why=why), host)


def duration(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    return Text("{n} min", n=seconds // 60) if seconds % 60 == 0 and seconds else Text("{n} s", n=seconds)


def not_ready(turn: Turn, summary: str, host: str) -> Turn:
    return finish.fail(turn, names.REASON_BARRIER, summary, Cause(summary=summary, host=host))


def _tell(turn: Turn, waiting: _Waiting) -> Turn:
    """What a scheduler, an image or a host keeps the job from. Said once, and again when the words change."""
    if not waiting.explained:
        return turn
    if not waiting.died and waiting.since is not None and turn.now < waiting.since + SOON:
        return turn.wake_at(waiting.since + SOON)  # most waits are over by then
    message = conditions.cut(Text("{host}: {why}", host=waiting.host, why=waiting.because))
    reason = names.REASON_WAITING if waiting.for_room else names.REASON_BARRIER
    if not turn.status.is_true(names.QUEUED):
        turn = turn.tell(reason, message, warning=not waiting.for_room)
    return turn.say(names.QUEUED, True, reason, message, refresh=True)
