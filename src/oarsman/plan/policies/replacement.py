"""Workers that failed, were evicted or vanished.

MPI cannot lose a process and go on. So for an ordinary job a lost worker ends the attempt: `retry`
counts it, and here the worker is replaced for the next one. An elastic launcher copes by itself: the
worker is taken off the list of hosts, replaced, and added again when it is ready.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from oarsman import names
from oarsman.job.observed import Member
from oarsman.plan.actions import CreateWorker, DeleteWorker, PublishHosts
from oarsman.plan.policies import elastic
from oarsman.plan.turn import Turn
from oarsman.status.causes import Lost
from oarsman.text.sentence import Text

# A worker that fails as soon as it starts must not be made anew as fast as the loop can turn.
PAUSE: Final = timedelta(seconds=5)
VANISHED: Final = "Vanished"
_DELETED: Final = Text("it was deleted by someone else")
# As Kubernetes gives them in the condition DisruptionTarget of a pod
_DISRUPTIONS: Final = {
    "PreemptionByScheduler": Text("the scheduler preempted it for a pod of higher priority"),
    "DeletionByTaintManager": Text("its node got a taint that it does not tolerate"),
    "EvictionByEvictionAPI": Text("it was evicted, as when its node is drained"),
    "DeletionByPodGC": Text("its node is gone"),
    "TerminationByKubelet": Text("its node ended it"),
}


def lost_workers(turn: Turn) -> tuple[Lost, ...]:
    """Workers the open attempt was launched with and that can no longer carry its ranks."""
    attempt = turn.open_attempt
    if attempt is None:
        return ()
    launched_with = turn.job.workers if attempt.workers is None else attempt.workers
    found = (_loss(turn, index) for index in range(min(launched_with, turn.job.workers)))
    return tuple(lost for lost in found if lost is not None)


def lost_launcher(launcher: Member) -> tuple[Lost, ...]:
    """A launcher that was ended because its host was lost, or that somebody deleted, says nothing about itself by how
    it was killed."""
    deleted = launcher.terminating and not launcher.reason
    if launcher.disrupted:
        words = what_befell(launcher)
    elif deleted or launcher.reason in (names.REASON_HOST_LOST, VANISHED):
        words = _DELETED if deleted else launcher.message or Text("its host was lost")
    else:
        return ()
    at, reason = launcher.finished_at, launcher.reason or VANISHED
    return (Lost(host=launcher.name, reason=reason, words=words, at=at, disrupted=launcher.disrupted),)


def keep_the_gang(turn: Turn) -> Turn:
    """Bring the workers to the number asked for: dead ones away, missing ones made, in order."""
    turn = _take_away_the_dead(turn)
    present = {w.index for w in turn.seen.workers}
    missing = [i for i in range(turn.job.workers) if i not in present]
    if not missing:
        return turn
    turn = turn.prepare()
    if turn.published is None:
        turn = turn.do(PublishHosts(()))  # marks that something was prepared; see cleanup
    # One that was listed for an attempt and is not there has vanished; others are simply new.
    listed = set(turn.seen.published_hosts or ()) if turn.status.attempt is not None else set()
    for host in (turn.job.worker_host(i) for i in missing):
        if host in listed:
            turn = _tell_replaced(turn, host, Text("it vanished"))
    return turn.do(*(CreateWorker(i) for i in missing))


def _take_away_the_dead(turn: Turn) -> Turn:
    for worker in turn.seen.workers:
        if worker.terminating or not worker.phase.ended or worker.index >= turn.job.workers:
            continue
        since = worker.created_at or worker.finished_at
        if since is not None and turn.waits(since, PAUSE):
            turn = turn.wake_at(since + PAUSE)
            continue
        turn = elastic.withdraw(turn, (worker,)).do(DeleteWorker(worker.index))
        turn = _tell_replaced(turn, worker.name, what_befell(worker))
    return turn


def _tell_replaced(turn: Turn, host: str, why: str) -> Turn:
    message = Text("{host} is replaced: {why}", host=host, why=why)
    return turn.tell(names.REASON_WORKER_REPLACED, message, warning=True)


def _loss(turn: Turn, index: int) -> Lost | None:
    worker = turn.seen.worker(index)
    host = turn.job.worker_host(index)
    if worker is None:
        return Lost(host=host, reason=VANISHED, words=Text("it vanished"))
    if worker.phase.ended:
        return Lost(
            host=host,
            reason=worker.reason,
            words=what_befell(worker),
            at=worker.finished_at,
            memory_limit_hit=worker.exit is not None and worker.exit.memory_limit_hit,
            disrupted=worker.disrupted,
        )
    if worker.terminating:
        words = what_befell(worker) if worker.reason else _DELETED
        return Lost(host=host, reason=worker.reason or VANISHED, words=words, disrupted=worker.disrupted)
    return None


def what_befell(worker: Member) -> str:
    what = _DISRUPTIONS | {
        "Evicted": Text("it was evicted"),
        "HostLost": Text("its host was lost"),
        "OOMKilled": Text("it ran out of memory"),
    }
    if worker.reason:
        said = what.get(worker.reason) or Text("it failed ({reason})", reason=worker.reason)
    else:
        said = Text("it ended with code {code}", code=worker.exit.code) if worker.exit else Text("it ended")
    message = "" if worker.disrupted and worker.terminating else worker.message  # it only says how long that may take
    if worker.reason == "HostLost" and message:
        return message  # whoever is told of it hears of a loss already
    return Text("{what}: {why}", what=said, why=message) if message else said
