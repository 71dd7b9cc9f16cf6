"""The attempts of a job: one run of the whole gang each, numbered from 1.

The number is the lock that keeps a job from running twice at once: a launcher carries the number it
serves, a number is never served twice, and the next one is only given out when no launcher is left.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime
from typing import Final

from oarsman import names
from oarsman.job.observed import Member, Phase
from oarsman.job.state import Attempt, Cause
from oarsman.plan.turn import Turn

_IDLE_KEPT: Final = 5
NOT_STARTED: Final = "NotStarted"  # its hosts were lost before its command began
DISRUPTED: Final = "Disrupted"  # the cluster took members away for reasons of its own
_FREE: Final = (NOT_STARTED, DISRUPTED, names.SUSPENDED)


def failures(turn: Turn) -> int:
    """Attempts that count against the limit. One that was suspended, disrupted or never began does not."""
    return sum(a.outcome == names.FAILED for a in turn.status.attempts)


def launched(turn: Turn, number: int, at: datetime, workers: int, *, held: bool = False) -> Turn:
    """Enter a new attempt. Older ones keep their cause but not its lines: a status has to stay small."""
    # All that count are kept, and the last few that do not: a job may be evicted or suspended without end.
    idle = [a.number for a in turn.status.attempts if a.outcome in _FREE][:-_IDLE_KEPT]
    earlier = tuple(
        replace(a, cause=replace(a.cause, last_lines=())) if a.cause else a
        for a in turn.status.attempts
        if a.number not in idle
    )
    attempt = Attempt(number=number, started=at, workers=workers)
    turn = turn.become(attempts=(*earlier, attempt), placement={}, retry_at=None)
    return turn if held else turn.mark(names.STEP_HOSTS_UP, at).mark(names.STEP_LAUNCHED, at)


def in_a_row(turn: Turn, outcome: str) -> int:
    """How many of the last attempts that are closed ended like this."""
    closed = (a.outcome for a in reversed(turn.status.attempts) if a.outcome)
    return sum(1 for _ in itertools.takewhile(lambda ended: ended == outcome, closed))


def close(turn: Turn, outcome: str, *, at: datetime | None = None, cause: Cause | None = None) -> Turn:
    """Give the open attempt its outcome. Nothing happens when none is open."""
    attempt = turn.open_attempt
    if attempt is None:
        return turn
    closed = replace(attempt, outcome=outcome, ended=at or turn.now, cause=cause)
    return turn.become(attempts=(*turn.status.attempts[:-1], closed))


def adopt(turn: Turn) -> Turn:
    """Recognise a launcher whose start was carried out but never written down."""
    launcher = turn.seen.launcher
    known = turn.status.attempt.number if turn.status.attempt else 0
    if launcher is None:
        return turn
    if launcher.attempt <= known:
        return _identify(turn, launcher)
    # The hosts were published just before it started, so they tell how many workers it was given.
    published = [h for h in turn.seen.published_hosts or () if h != turn.job.launcher_host]
    workers = min(len(published), turn.job.workers) or turn.job.workers
    held = launcher.phase is Phase.PENDING
    return _identify(launched(turn, launcher.attempt, launcher.started_at or turn.now, workers, held=held), launcher)


def _identify(turn: Turn, launcher: Member) -> Turn:
    """Remember which launcher serves the open attempt: another in its place would be a second run of it."""
    attempt = turn.open_attempt
    if attempt is None or attempt.number != launcher.attempt or attempt.launcher:
        return turn
    return turn.become(attempts=(*turn.status.attempts[:-1], replace(attempt, launcher=launcher.instance)))
