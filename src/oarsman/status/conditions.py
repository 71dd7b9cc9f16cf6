"""The algebra of conditions, and sentences that they and events say.

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
from typing import Final

from oarsman.job.state import Condition
from oarsman.text import sentence
from oarsman.text.sentence import Text

Conditions = tuple[Condition, ...]
_LONGEST: Final = 1024  # what Kubernetes accepts as the message of an event


def put(
    conditions: Conditions, type_: str, status: bool, *, reason: str, message: str, at: datetime, refresh: bool = False
) -> Conditions:
    """The list with this condition set. `refresh`: a new message alone is a change too."""
    present = next((c for c in conditions if c.type == type_), None)
    if present is None:
        added = Condition(type=type_, status=status, reason=reason, message=message, last_update_time=at, since=at)
        return (*conditions, added)
    same = (present.status, present.reason) == (status, reason)
    if same and not (refresh and present.message != message):
        return conditions
    since = present.since if present.status == status else at
    changed = replace(present, status=status, reason=reason, message=message, last_update_time=at, since=since)
    return (*(c for c in conditions if c.type != type_), changed)


def lower(conditions: Conditions, type_: str, *, reason: str, message: str, at: datetime) -> Conditions:
    """Turn a condition False if it is True; one that was never set stays unsaid."""
    present = next((c for c in conditions if c.type == type_ and c.status), None)
    if present is None:
        return conditions
    (lowered,) = put((present,), type_, False, reason=reason, message=message, at=at)
    return tuple(lowered if c is present else c for c in conditions)  # what came to an end is not the latest news


def latest_time(conditions: Iterable[Condition]) -> datetime | None:
    return max((max(c.last_update_time, c.since) for c in conditions), default=None)


# -- sentences; those that upstream also says, here and elsewhere, are kept word by word -----------------------
def failed(key: str, why: str = "") -> str:
    said = Text("MPIJob {key} has failed: {why}", key=key, why=why) if why else Text("MPIJob {key} has failed", key=key)
    return cut(said)


def restarting(number: int, summary: str, delay: int, allowed: int) -> str:
    """`delay`: in seconds; `allowed`: how many attempts may fail before the job does."""
    template = Text("attempt {number} failed: {why}; retrying in {delay} s, {allowed} left")
    return cut(Text(template, number=number, why=summary, delay=delay, allowed=allowed))


def disrupted(number: int, summary: str, delay: int) -> str:
    template = Text("attempt {number} was disrupted: {why}; starting again in {delay} s, which costs no retry")
    return cut(Text(template, number=number, why=summary, delay=delay))


def queued(position: int, reason: str) -> str:
    place = Text("number {position} in the queue", position=position) if position else Text("in the queue")
    return cut(Text("{what}: {why}", what=place, why=reason) if reason else place)


def cut(message: str) -> str:
    return sentence.cut(message, _LONGEST)
