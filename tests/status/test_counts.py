"""How many of each role run, are ready, have ended."""

from __future__ import annotations

import pytest

from oarsman.job.observed import Member, Phase
from oarsman.job.state import Attempt, ReplicaCount
from oarsman.status import counts
from tests.builders import a_launcher, a_worker


def test_workers_are_counted_by_what_became_of_them() -> None:
    members = (
        a_worker(0),
        a_worker(1, ready=False),
        a_worker(2, terminating=True),
        a_worker(3, Phase.SUCCEEDED, ready=True),
        a_worker(4, Phase.FAILED),
        a_worker(5, Phase.FAILED, ready=True),
        a_worker(6, Phase.PENDING, ready=True),
    )
    assert counts.workers(members, 7) == ReplicaCount(active=3, succeeded=1, failed=2, ready=1)


def test_workers_beyond_those_wanted_are_not_counted() -> None:
    assert counts.workers((a_worker(0), a_worker(1), a_worker(2)), 2) == ReplicaCount(active=2, ready=2)
    assert counts.workers((a_worker(0),), 0) == ReplicaCount()


@pytest.mark.parametrize(
    ("member", "finished", "count"),
    [
        (None, False, ReplicaCount()),
        (a_launcher(), False, ReplicaCount(active=1)),
        (a_launcher(ready=True), False, ReplicaCount(active=1, ready=1)),
        (a_launcher(ready=True), True, ReplicaCount()),
        (a_launcher(Phase.PENDING, ready=True), False, ReplicaCount()),
        (a_launcher(Phase.SUCCEEDED, ready=True), False, ReplicaCount()),
    ],
)
def test_a_launcher_is_active_while_it_runs(member: Member | None, finished: bool, count: ReplicaCount) -> None:
    assert counts.launcher(member, (), finished=finished) == count


def test_the_ends_of_a_launcher_are_counted_over_all_attempts() -> None:
    outcomes = ("Failed", "NotStarted", "Failed", "Suspended", "Succeeded")
    attempts = tuple(Attempt(number=number, outcome=outcome) for number, outcome in enumerate(outcomes, 1))
    assert counts.launcher(None, attempts, finished=True) == ReplicaCount(succeeded=1, failed=2)
    assert counts.launcher(None, attempts[:4], finished=True) == ReplicaCount(failed=2)
