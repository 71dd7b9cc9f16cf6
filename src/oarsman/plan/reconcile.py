"""What to do next. The heart of the house, and all of it is pure.

`reconcile` knows nothing of how the job came to be as it is seen. It reads the story of a job from the
top, and the first chapter that applies writes the turn. Running it again on the same world gives the
same plan; running it after a crash between any two actions goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from oarsman import names
from oarsman.errors import Problem
from oarsman.job.job import Job
from oarsman.job.launch import rewrite
from oarsman.job.observed import Observed, Phase
from oarsman.job.remarks import remarks
from oarsman.job.state import Cause, Status
from oarsman.plan import attempts, placement
from oarsman.plan.actions import Event, Plan, Severity
from oarsman.plan.policies import (
    admission,
    barrier,
    cleanup,
    deadline,
    elastic,
    replacement,
    retry,
    stop,
    success,
    suspend,
    ttl,
)
from oarsman.plan.turn import Turn
from oarsman.status import conditions, exceptions, other_mpi, silence
from oarsman.text.sentence import Text, listed, sentences


def reconcile(job: Job, observed: Observed, now: datetime) -> Plan:
    if not job.is_ours:
        return Plan(status=observed.status)
    turn = Turn(job=job, seen=observed, now=now, status=observed.status)
    for chapter in _AFTERWARDS if observed.status.finished else _STORY:
        turn = chapter(turn)
        if turn.over:
            break
    return turn.plan()


def created(turn: Turn) -> Turn:
    turn = turn.mark(names.STEP_SUBMITTED, turn.job.created_at or turn.now)
    if turn.status.condition(names.CREATED) is not None:
        return turn
    message = Text("MPIJob {key} is created.", key=turn.job.key)
    turn = turn.say(names.CREATED, True, names.REASON_CREATED, message).tell(names.REASON_CREATED, message)
    for remark in (*remarks(turn.job), *turn.seen.remarks):
        turn = turn.tell(names.REASON_REMARK, remark)
    if turn.job.warnings:
        found = sentences(_told(problem) for problem in turn.job.warnings)
        turn = turn.tell(names.REASON_UNKNOWN, conditions.cut(found), warning=True)
    rewrites = turn.job.launch is not None and turn.job.rewrites_launch_line
    changes = rewrite(turn.job.launcher.container.argv).changes if rewrites else ()
    if not changes:
        return turn
    # So that nobody is surprised by a process list.
    template = Text("the launch line was rewritten so that Open MPI 4 and 5 both accept it: {changes}")
    return turn.tell(names.REASON_REWRITTEN, Text(template, changes=listed(changes)))


def _told(problem: Problem) -> str:
    said = Text("{field}: {problem}", field=problem.field, problem=problem.message)
    return Text("{what} ({hint})", what=said, hint=problem.hint) if problem.hint else said


def take_note(turn: Turn) -> Turn:
    """Enter what can be seen and is not a decision."""
    turn = attempts.adopt(turn).mark(names.STEP_FIRST_OUTPUT, turn.seen.first_output_at)
    machines = {place.member: place.machine for place in turn.seen.admission.placement}
    if machines:
        turn = turn.become(machines=machines)
    return turn.become(placement=placement.seen(turn.seen.ranks)) if turn.seen.ranks and turn.open_attempt else turn


def running(turn: Turn) -> Turn:
    """It runs when the launcher and all its workers do."""
    launcher = turn.launcher
    workers = [turn.seen.worker(i) for i in range(turn.job.workers)]
    up = all(w is not None and w.phase is Phase.RUNNING for w in workers)
    if launcher is None or launcher.phase is not Phase.RUNNING or not up:
        return turn
    message = Text("MPIJob {key} is running.", key=turn.job.key)
    begun = launcher.started_at or turn.now
    turn = turn.mark(names.STEP_HOSTS_UP, begun).mark(names.STEP_LAUNCHED, begun)
    turn = turn.unsay(names.QUEUED, names.REASON_ADMITTED, message)
    if turn.status.phase != names.RUNNING:
        turn = turn.tell(names.REASON_RUNNING, message)
    turn = turn.unsay(names.RESTARTING, names.REASON_RUNNING, message)
    reason, warning = _warning(turn)
    said = turn.status.condition(names.RUNNING)
    if warning and (said is None or said.message != warning):
        turn = turn.tell(reason, warning, warning=True)
    return turn.say(names.RUNNING, True, reason, warning or message, refresh=bool(warning))


def _warning(turn: Turn) -> tuple[str, str]:
    """Why it may never end, although it runs."""
    if stuck := exceptions.stuck(turn.seen.ranks, turn.status.machines):
        return names.REASON_EXCEPTION, stuck
    if told := other_mpi.of_running(turn.seen.ranks, turn.status.machines):
        return names.REASON_OTHER_MPI, told
    if idle := silence.idle(turn.seen.ranks):
        return names.REASON_IDLE_RANK, idle
    return names.REASON_RUNNING, ""


Chapter = Callable[[Turn], Turn]

# The story of a job, in the order in which it is asked what applies.
_STORY: Final[tuple[Chapter, ...]] = (
    created,
    take_note,
    elastic.tell_mistake,
    success.launcher_succeeded,  # done is done
    stop.stop,
    suspend.suspend,
    admission.unsupported,
    admission.refused,
    admission.conflict,
    admission.admit,
    deadline.deadline,
    success.placement_while_running,
    barrier.hopeless,
    retry.place_lost,
    retry.attempt_failed,
    retry.keep_the_delay,
    retry.rest,
    retry.clear_away,
    elastic.tell_scaling,
    elastic.tell_outdated,
    elastic.follow_edits,
    elastic.follow,  # the list of hosts shrinks before workers go
    elastic.scale_down,
    replacement.keep_the_gang,
    barrier.launch,
    barrier.hold,
    running,
)
_AFTERWARDS: Final[tuple[Chapter, ...]] = (cleanup.clean_up, ttl.time_to_live)

# Who keeps a job that is not running from asking for room, and until when.
_DELAYS: Final[tuple[Callable[[Job, Status, datetime], datetime | None], ...]] = (retry.next_attempt,)

# Annotations that one policy alone reads, and what is wrong with a value; None if nothing is. Declared beside it.
ANNOTATIONS: Final[Mapping[str, Callable[[str], str | None]]] = {}


def not_before(job: Job, status: Status, now: datetime) -> datetime | None:
    """Until when a job asks for no room; None if it may ask now."""
    delays = (delay(job, status, now) for delay in _DELAYS)
    return max((until for until in delays if until is not None and now < until), default=None)


def reject(status: Status, problems: Sequence[Problem], now: datetime, *, generation: int = 0) -> Plan:
    """The plan for a job that could not be read: Failed, reason ValidationError, each field named.

    Terminal, like every end. For a job that has started already, go on with its last valid form instead.
    """
    if status.finished:
        return Plan(status=status)
    message = conditions.cut(Text("Found validation errors: {found}", found=what_is_wrong(problems)))
    said = conditions.put(status.conditions, names.FAILED, True, reason=names.REASON_INVALID, message=message, at=now)
    status = replace(
        status,
        conditions=said,
        completion_time=now,
        cause=Cause(summary=message),
        timeline={names.STEP_SUBMITTED: now, **status.timeline, names.STEP_ENDED: now},
        observed_generation=generation,
        queue=None,
        retry_at=None,
    )
    event = Event(reason=names.REASON_INVALID, message=message, severity=Severity.WARNING)
    return Plan(status=status, events=(event,), look_again_in=timedelta(0))


def what_is_wrong(problems: Sequence[Problem]) -> str:
    return sentences(Text("{field}: {problem}", field=p.field, problem=p.message) for p in problems if not p.warning)
