"""One turn of the loop, as a value.

Policies are functions from a turn to a turn. Each looks at the job, at what was seen and at the status
so far, and adds actions, events and changes of the status. Nothing is changed in place, so a policy
can be read and tested alone.

Two rules keep every crash harmless, since actions are carried out before the status is written:

* What was learnt from evidence (how the launcher ended, which worker died) is written to the status in
  one turn, and the evidence is cleared away in the next. A crash in between loses nothing.
* What was asked for and stays so (stop, a deadline) can be asked again, so it acts at once. A suspend can be
  taken back, so it goes on record first too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from oarsman.job.job import Job
from oarsman.job.observed import Member, Observed, Phase
from oarsman.job.state import Attempt, Status
from oarsman.plan.actions import Action, Event, Plan, Prepare, PublishHosts, Severity
from oarsman.status import conditions, counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    job: Job
    seen: Observed
    now: datetime
    status: Status
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    wake: datetime | None = None
    over: bool = False  # nothing further is decided in this turn

    # -- what a policy may add ------------------------------------------------------------------
    def do(self, *actions: Action) -> Turn:
        return replace(self, actions=self.actions + actions)

    def prepare(self) -> Turn:
        """Before anything is created. Asking twice is harmless, asking twice in one turn is silly."""
        return self if Prepare() in self.actions else self.do(Prepare())

    def tell(self, reason: str, message: str, *, warning: bool = False) -> Turn:
        severity = Severity.WARNING if warning else Severity.NORMAL
        return replace(self, events=(*self.events, Event(reason=reason, message=message, severity=severity)))

    def become(self, **changes: Any) -> Turn:
        return replace(self, status=replace(self.status, **changes))

    def say(
        self, type_: str, status: bool, reason: str, message: str, *, at: datetime | None = None, refresh: bool = False
    ) -> Turn:
        said, at = self.status.conditions, at or self.now
        said = conditions.put(said, type_, status, reason=reason, message=message, at=at, refresh=refresh)
        return self.become(conditions=said)

    def unsay(self, type_: str, reason: str, message: str, *, at: datetime | None = None) -> Turn:
        lowered = conditions.lower(self.status.conditions, type_, reason=reason, message=message, at=at or self.now)
        return self.become(conditions=lowered)

    def mark(self, step: str, at: datetime | None) -> Turn:
        """The first time is kept: a retry or a resume does not rewrite it. What each attempt did, the attempts tell."""
        if at is None or step in self.status.timeline:
            return self
        return self.become(timeline={**self.status.timeline, step: at})

    def wake_at(self, when: datetime) -> Turn:
        return replace(self, wake=when if self.wake is None else min(self.wake, when))

    def again(self, delay: timedelta = timedelta(0)) -> Turn:
        return self.wake_at(self.now + delay)

    def end(self) -> Turn:
        return replace(self, over=True)

    # -- what a policy may ask ------------------------------------------------------------------
    @property
    def open_attempt(self) -> Attempt | None:
        """The attempt that was launched and has no outcome yet."""
        attempt = self.status.attempt
        return attempt if attempt is not None and not attempt.outcome else None

    @property
    def launcher(self) -> Member | None:
        """The launcher of the open attempt, if it is there."""
        found, attempt = self.seen.launcher, self.open_attempt
        if found is None or attempt is None or found.attempt != attempt.number:
            return None
        return found if attempt.launcher in ("", found.instance) or not found.instance else None

    def waits(self, since: datetime, span: timedelta) -> bool:
        """Whether a wait of this span, begun then, goes on. If that is still so far ahead, the clock was put back
        meanwhile: it is over, since nobody knows when it would have been."""
        return since - span <= self.now < since + span

    @property
    def published(self) -> tuple[str, ...] | None:
        """The hosts that are published once the actions so far are carried out."""
        planned = (a.hosts for a in reversed(self.actions) if isinstance(a, PublishHosts))
        return next(planned, self.seen.published_hosts)

    # -- the outcome ----------------------------------------------------------------------------
    def plan(self) -> Plan:
        status = replace(self.status, observed_generation=self.job.generation)
        finished, suspended = status.finished, self.job.run_policy.suspend
        workers = () if finished else self.seen.workers
        status = replace(
            status,
            worker=counts.going(workers) if suspended else counts.workers(workers, self.job.workers),
            launcher=counts.launcher(self.seen.launcher, status.attempts, finished=finished, suspended=suspended),
        )
        wait = None if self.wake is None else max(self.wake - self.now, timedelta(0))
        return Plan(status=status, actions=self.actions, events=self.events, look_again_in=wait)


def usable(worker: Member) -> bool:
    """Whether a rank can be started there right now."""
    return worker.phase is Phase.RUNNING and worker.ready and not worker.terminating
