"""What a turn consists of, and what is left to say of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import groupby, islice

from oarsman import names
from oarsman.errors import OarsmanError
from oarsman.job.observed import Observed
from oarsman.job.state import Status
from oarsman.plan.actions import Action, CreateWorker, DeleteJob, DeleteWorker, Event, Plan, Severity
from oarsman.status import conditions

_NUMBERS = re.compile(r"[0-9]+")
_SIDE_BY_SIDE = (CreateWorker, DeleteWorker)
_AT_ONCE = 64  # as many requests as the API server gets; a job agent lets no more than 512 wait


def so_far(before: Status, plan: Plan, trouble: OarsmanError, now: datetime) -> Plan:
    """What is true although an action failed: that it was begun, so that no wait is endless, and why it is not done."""
    begun = before if before.start_time is not None else replace(before, start_time=plan.status.start_time)
    message = _known_words(before, trouble.message)
    event = Event(reason=names.REASON_TROUBLE, message=message, severity=Severity.WARNING)
    if not before.is_true(names.RUNNING):
        stuck = conditions.put(
            begun.conditions,
            names.QUEUED,
            True,
            reason=names.REASON_TROUBLE,
            message=message,
            at=now,
            refresh=True,
        )
        begun = replace(begun, conditions=stuck)
    if before.condition(names.CREATED) is not None:
        return Plan(status=begun, events=(event,))
    created = tuple(c for c in plan.status.conditions if c.type == names.CREATED)
    told = tuple(e for e in plan.events if e.reason == names.REASON_CREATED)
    return Plan(status=replace(begun, conditions=(*created, *begun.conditions)), events=(*told, event))


def _known_words(before: Status, message: str) -> str:
    """The words already said, if the new ones differ in numbers alone: a quota's count is no news."""
    said = before.condition(names.QUEUED)
    if said is not None and said.status and _NUMBERS.sub("#", said.message) == _NUMBERS.sub("#", message):
        return said.message
    return message


def in_steps(actions: tuple[Action, ...]) -> Iterator[tuple[Action, ...]]:
    """The engine's actions in order; neighbours that do the same to different workers may be carried out together."""
    for kind, group in groupby(actions, key=type):
        at_once = _AT_ONCE if kind in _SIDE_BY_SIDE else 1
        while kind is not DeleteJob and (step := tuple(islice(group, at_once))):
            yield step


def over(observed: Observed, plan: Plan) -> bool:
    """Whether the job has ended and nothing of it is left to end or to take away."""
    if not plan.status.finished or observed.published_hosts is not None:
        return False
    return not plan.actions or (not observed.workers and observed.launcher is None)
