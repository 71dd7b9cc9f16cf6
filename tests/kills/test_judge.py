"""The judge of jobs that were hit: what must be found is found, and nothing else."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from for_every import for_every

from oarsman import names
from oarsman.backends.base import EventRecord
from oarsman.job.state import Attempt, Status
from tests.builders import a_condition, at

from .jobs import Meant, meant
from .judge import Ended, Entry, faults
from .troubles import Hit, Target

GOOD = (names.SUCCEEDED, names.REASON_SUCCEEDED)
BAD = (names.FAILED, names.REASON_FAILED)
KILLED = Hit("kill rank", 1.0)


def a_job(**given: Any) -> Meant:
    usual = {"kind": "succeed", "workers": 2, "ranks": 2, "plain": False, "limit": 0}
    return replace(meant(random.Random(1), 1, ("local",)), **usual | given)


def runs(attempt: int, begin: float, end: str = "end", ranks: int = 2) -> list[Entry]:
    told = (("begin", begin), (end, begin + 1))
    return [Entry(what, attempt, f"{attempt}:1", rank, when) for rank in range(ranks) for what, when in told]


def ended(become: tuple[str, str] = GOOD, outcomes: tuple[str, ...] = ("Succeeded",), **given: Any) -> Ended:
    type_, reason = become
    condition = a_condition(type_, reason=reason)
    attempts = tuple(Attempt(number=number, outcome=outcome) for number, outcome in enumerate(outcomes, 1))
    once = {"first_time": at(1), "time": at(1), "severity": "Normal", "count": 1}
    event = EventRecord(reason=reason, message=condition.message, **once)  # type: ignore[arg-type]
    usual: dict[str, Any] = {
        "meant": a_job(),
        "target": Target("uid", 0),
        "status": Status(conditions=(condition,), attempts=attempts, completion_time=at(1)),
        "events": [event],
        "ledger": runs(1, 0.0),
        "lines": ["begin 0", "begin 1", "end 0", "end 1"],
    }
    return Ended(**usual | given)


def hit(*hits: Hit) -> Target:
    return Target("uid", 0, hits=list(hits))


TWICE = [*runs(1, 0.0, "lives"), *runs(2, 5.0)]
RIGHT = {
    "nothing hit it": ended(),
    "a hit cost it an attempt": ended(
        outcomes=("Failed", "Succeeded"), meant=a_job(limit=1), target=hit(KILLED), ledger=TWICE
    ),
    "a hit cost it its only attempt": ended(BAD, ("Failed",), target=hit(KILLED), ledger=runs(1, 0.0, "lives")),
}
WRONG = {
    "it failed (MPIJobFailed), and nothing hit it": ended(BAD, ("Failed",)),
    "it succeeded, and was meant to fail": ended(meant=a_job(kind="stop")),
    "although it had attempts left": ended(BAD, ("Failed",), meant=a_job(limit=1), target=hit(KILLED)),
    "2 attempts failed, by 1 hits": ended(BAD, ("Failed", "Failed"), target=hit(KILLED)),
    "is among the events 0 times": ended(events=[]),
    "ran more than once": ended(ledger=[*runs(1, 0.0), *runs(1, 3.0)]),
    "ran and are not on record": ended(ledger=[*runs(1, 0.0), *runs(2, 3.0)]),
    "still lived 0.50 s after attempt 2 had begun": ended(
        outcomes=("Failed", "Succeeded"),
        meant=a_job(limit=1),
        target=hit(KILLED),
        ledger=[*runs(1, 0.0, "lives"), *runs(2, 0.5)],
    ),
    "of its ranks only [0] did": ended(ledger=[*runs(1, 0.0, ranks=1)]),
    "have no outcome": ended(outcomes=("", "Succeeded")),
    "its log has": ended(lines=["begin 0", "begin 1", "end 1"]),
}


@for_every(RIGHT)
def test_what_may_be_is_no_fault(what: str) -> None:
    assert faults(RIGHT[what]) == []


@for_every(WRONG)
def test_what_may_not_be_is_found(what: str) -> None:
    assert any(what in fault for fault in faults(WRONG[what])), faults(WRONG[what])
