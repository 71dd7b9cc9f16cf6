"""What upstream's controller tests promise, said in our words (their numbers: C7-C9, C15-C18, C22-C24)."""

from __future__ import annotations

import pytest

from oarsman import names
from oarsman.job.job import CleanPodPolicy
from oarsman.job.observed import Observed, Phase
from oarsman.job.state import Attempt, ReplicaCount, Status
from oarsman.plan.actions import CreateLauncher, DeleteWorker
from oarsman.plan.reconcile import reconcile
from tests.builders import a_condition, a_job, a_launcher, a_status, at, launched, running, workers

NEVER_RAN = "MPIJob default/pi is finished; it ended before it was seen running."
NOT_SEEN_RUNNING = a_status(attempts=(Attempt(number=1, started=at(1), workers=2),))


def test_c7_a_launcher_that_succeeded_unseen() -> None:
    seen = running(status=NOT_SEEN_RUNNING, launcher=a_launcher(Phase.SUCCEEDED, finished_at=at(5)))
    status = reconcile(a_job(), seen, at(9)).status
    assert (status.launcher, status.worker) == (ReplicaCount(succeeded=1), ReplicaCount())
    assert status.is_true(names.CREATED)
    assert status.is_true(names.SUCCEEDED)
    never = status.condition(names.RUNNING)
    assert never is not None
    assert (never.status, never.reason, never.message) == (False, "MPIJobRunning", NEVER_RAN)
    assert never.since == never.last_update_time == status.completion_time == at(5)


def test_c8_running_turns_false_at_the_end_and_stays_so() -> None:
    job = a_job()
    first = reconcile(job, running(job, launcher=a_launcher(Phase.SUCCEEDED)), at(9))
    stale = running(job, status=first.status, launcher=a_launcher())  # a cache that lags behind
    status = reconcile(job, stale, at(10)).status
    assert not status.is_true(names.RUNNING)
    assert status.launcher.active == 0


def test_c9_a_launcher_that_failed_for_good() -> None:
    before = (Attempt(number=1, started=at(1), outcome="Failed"),)
    status = a_status(attempts=(*before, Attempt(number=2, started=at(20), workers=2)))
    seen = running(status=status, launcher=a_launcher(Phase.FAILED, code=1, attempt=2), launcher_lines=("boom",))
    status = reconcile(a_job(backoff_limit=1), seen, at(30)).status
    failed, never = status.condition(names.FAILED), status.condition(names.RUNNING)
    assert failed is not None
    assert failed.reason == "BackoffLimitExceeded"
    assert "boom" in failed.message
    assert status.launcher.failed == 2
    assert never is not None
    assert never.message == NEVER_RAN


def test_c15_all_workers_go_after_the_end() -> None:
    ended = Status(conditions=(a_condition(names.SUCCEEDED),), completion_time=at(1))
    plan = reconcile(
        a_job(workers=8, clean_pod_policy=CleanPodPolicy.ALL), Observed(status=ended, workers=workers(8)), at(9)
    )
    assert plan.actions == tuple(DeleteWorker(i) for i in range(8))
    assert plan.status.worker == ReplicaCount()


def test_c22_a_launcher_without_its_workers_is_not_running() -> None:
    job = a_job(workers=8, elastic=True)
    status = a_status(attempts=(Attempt(number=1, started=at(1), workers=8),))
    seen = running(job, status=status, workers=workers(8, Phase.PENDING))
    found = reconcile(job, seen, at(9)).status
    assert (found.launcher.active, found.worker.active) == (1, 0)
    assert found.condition(names.RUNNING) is None


def test_c23_launcher_and_workers_run() -> None:
    job = a_job(workers=8)
    plan = reconcile(job, running(job, status=launched(workers=8)), at(9))
    assert (plan.status.launcher.active, plan.status.worker.active) == (1, 8)
    assert plan.status.is_true(names.RUNNING)


def test_c24_workers_that_are_ready_get_their_launcher() -> None:
    job = a_job(workers=16)
    plan = reconcile(job, Observed(status=a_status(), workers=workers(16), published_hosts=()), at(9))
    assert plan.actions[-1] == CreateLauncher(1)
    assert (plan.status.launcher.active, plan.status.worker.active) == (0, 16)


@pytest.mark.parametrize("phase", [Phase.SUCCEEDED, Phase.FAILED])
def test_running_is_never_later_than_the_completion(phase: Phase) -> None:
    job = a_job(backoff_limit=0)
    late = reconcile(job, running(job, status=NOT_SEEN_RUNNING), at(100)).status
    assert late.is_true(names.RUNNING)
    ended = a_launcher(phase, code=int(phase is Phase.FAILED), finished_at=at(50))  # by a clock that is behind
    status = reconcile(job, running(job, status=late, launcher=ended), at(101)).status
    assert status.completion_time is not None
    assert all(c.since <= status.completion_time for c in status.conditions)
