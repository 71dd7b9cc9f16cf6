"""Workers that come and go, and the list of hosts that says which ones may take ranks.

The list shrinks before a host goes and grows after it is ready, so whoever reads it at any moment
finds hosts that answer. Only the highest numbers leave when a job shrinks. Before the launcher starts
the list is written once, complete, by the start barrier: nobody reads it earlier, and a list per
worker that comes up would cost as many writes as there are workers.

A launcher that is not elastic reads the list only when it starts. Scaling such a job while it runs
changes workers and list all the same; new hosts are used by the next attempt, and taking away hosts
that carry ranks ends this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from oarsman import names
from oarsman.job.job import Job
from oarsman.job.observed import Member, Phase
from oarsman.plan.actions import DeleteWorker, PublishHosts
from oarsman.plan.turn import Turn, usable
from oarsman.status import conditions
from oarsman.text.sentence import Text


def hosts_now(job: Job, workers: Iterable[Member]) -> tuple[str, ...]:
    """The hosts that may take ranks, in the order of the hostfile."""
    ready = sorted(w.index for w in workers if w.index < job.workers and usable(w))
    first = (job.launcher_host,) if job.run_launcher_as_worker or not job.workers else ()
    return (*first, *(job.worker_host(i) for i in ready))


def publish(turn: Turn, hosts: tuple[str, ...]) -> Turn:
    """The first list of a job is read by nobody before the turn is over, so it is written once, as it shall be."""
    if hosts == turn.published:
        return turn
    if turn.published is None or turn.seen.published_hosts is not None:
        return turn.do(PublishHosts(hosts))
    return replace(turn, actions=tuple(PublishHosts(hosts) if isinstance(a, PublishHosts) else a for a in turn.actions))


def follow(turn: Turn) -> Turn:
    """Keep the list true while a launcher may be reading it. One that is Pending finds the complete list."""
    reading = turn.launcher is not None and turn.launcher.phase is Phase.RUNNING
    return publish(turn, hosts_now(turn.job, turn.seen.workers)) if reading else turn


def withdraw(turn: Turn, leaving: Iterable[Member]) -> Turn:
    """Take hosts off the list, to be done before they are deleted."""
    if turn.published is None:
        return turn
    off = {turn.job.worker_host(w.index) for w in leaving}
    return publish(turn, tuple(h for h in turn.published if h not in off))


def scale_down(turn: Turn) -> Turn:
    surplus = sorted((w for w in turn.seen.workers if w.index >= turn.job.workers), key=lambda w: -w.index)
    turn = withdraw(turn, surplus)
    return turn.do(*(DeleteWorker(w.index) for w in surplus if not w.terminating))


def follow_edits(turn: Turn) -> Turn:
    """What was prepared follows an edit, also where no member changes: the queue and the size of a gang, say. What
    somebody removed of it is made again."""
    # Also if no generation is on record yet: the turn that made the members may have been lost to this very edit.
    behind = turn.seen.status.observed_generation < turn.job.generation
    return turn.prepare() if (behind or turn.seen.incomplete) and (turn.seen.workers or turn.seen.launcher) else turn


def tell_scaling(turn: Turn) -> Turn:
    """One event per edit of the replicas; the generation tells an edit from a worker that is missing."""
    job, listed = turn.job, sum(h != turn.job.launcher_host for h in turn.seen.published_hosts or ())
    before = max(listed, *(w.index + 1 for w in turn.seen.workers), 0)
    edited = 0 < turn.seen.status.observed_generation < job.generation
    if not edited or not before or before == job.workers:
        return turn
    template = Text("MPIJob {key} is scaled from {before} to {after} workers")
    return turn.tell(names.REASON_SCALED, Text(template, key=job.key, before=before, after=job.workers))


def tell_mistake(turn: Turn) -> Turn:
    """An edit that makes no sense is not carried out, and nobody shall wait for its effect."""
    if not turn.seen.mistake:
        return turn
    message = conditions.cut(Text("no longer valid, so the job continues as it was: {why}", why=turn.seen.mistake))
    said = turn.status.condition(names.OUTDATED)
    if said is None or not said.status or said.message != message:
        turn = turn.tell(names.REASON_INVALID, message, warning=True)
    return turn.say(names.OUTDATED, True, names.REASON_INVALID, message, refresh=True)


def tell_outdated(turn: Turn) -> Turn:
    """Edits that cannot reach what already runs get a condition, so that nobody waits for their effect."""
    if turn.seen.mistake:
        return turn
    if turn.seen.outdated:
        fields = ", ".join(turn.seen.outdated)
        message = Text("edited, but existing members keep their old values: {fields}", fields=fields)
        if not turn.status.is_true(names.OUTDATED):
            turn = turn.tell(names.REASON_OUTDATED, message, warning=True)
        return turn.say(names.OUTDATED, True, names.REASON_OUTDATED, message, refresh=True)
    return turn.unsay(names.OUTDATED, names.REASON_OUTDATED, Text("all members are as asked for"))
