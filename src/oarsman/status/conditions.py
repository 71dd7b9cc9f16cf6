"""The algebra of conditions.

Other tools read these, so the upstream rules hold: setting what already stands changes nothing, a new
reason renews the message but not the time of the transition, a changed condition moves to the end of
the list, where "the last one" is looked for, and one that ends stays where it is. Two things are done
better than upstream. A condition that turns False says why and when. And a condition whose message is
news in itself (the place in the queue, the next try) can be refreshed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from oarsman.job.state import Condition

Conditions = tuple[Condition, ...]


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    return next((c for c in conditions if c.type == type_), None)


def put(
    conditions: Conditions, type_: str, status: bool, *, reason: str, message: str, at: datetime, refresh: bool = False
) -> Conditions:
    """The list with this condition set. `refresh`: a new message alone is a change too."""
    present = find(conditions, type_)
    if present is None:
        added = Condition(type=type_, status=status, reason=reason, message=message, last_update_time=at, since=at)
        return (*conditions, added)
    same = (present.status, present.reason) == (status, reason)
    if same and not (refresh and present.message != message):
        return conditions
    changed = replace(
        present,
        status=status,
        reason=reason,
        message=message,
        last_update_time=at,
        since=present.since if present.status == status else at,
    )
    return (*(c for c in conditions if c.type != type_), changed)


def lower(conditions: Conditions, type_: str, *, reason: str, message: str, at: datetime) -> Conditions:
    """Turn a condition False if it is True; one that was never set stays unsaid."""
    present = find(conditions, type_)
    if present is None or not present.status:
        return conditions
    (lowered,) = put((present,), type_, False, reason=reason, message=message, at=at)
    return tuple(lowered if c is present else c for c in conditions)  # what came to an end is not the latest news


def latest_time(conditions: Iterable[Condition]) -> datetime | None:
    return max((max(c.last_update_time, c.since) for c in conditions), default=None)
