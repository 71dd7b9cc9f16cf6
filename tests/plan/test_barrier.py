from __future__ import annotations

import pytest

from oarsman import names
from oarsman.job.observed import Exit, Member, Observed, Phase
from oarsman.job.state import Attempt
from oarsman.plan.actions import CreateLauncher, DeleteWorker
from oarsman.plan.reconcile import reconcile
from tests.builders import a_job, a_status, a_worker, at

WAITING = [
    pytest.param(a_worker(1, Phase.PENDING), "it is pending", id="pending"),
    pytest.param(a_worker(1, ready=False), "it is running", id="not ready"),
    pytest.param(a_worker(1, ready=False, not_ready_because="no sshd"), "no sshd", id="says why"),
    pytest.param(a_worker(1, Phase.PENDING, reason="ErrImagePull"), "ErrImagePull", id="reason of the pod"),
]


@pytest.mark.parametrize(("worker", "_words"), WAITING)
def test_no_launcher_while_a_worker_cannot_be_logged_in_to(worker: Member, _words: str) -> None:
    seen = Observed(status=a_status(), workers=(a_worker(0), worker), published_hosts=())
    plan = reconcile(a_job(), seen, at(299))
    assert CreateLauncher(1) not in plan.actions
    assert not plan.status.finished
    assert plan.look_again_in is not None
    assert plan.look_again_in.total_seconds() == 1


@pytest.mark.parametrize(("worker", "words"), WAITING)
def test_after_five_minutes_the_job_fails_and_names_the_host(worker: Member, words: str) -> None:
    seen = Observed(status=a_status(), workers=(a_worker(0), worker), published_hosts=())
    plan = reconcile(a_job(), seen, at(300))
    failed = plan.status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_BARRIER
    assert failed.message == f"pi-worker-1 was not ready after 5 min: {words}"
    assert plan.status.attempts == ()  # no retry is spent
    assert plan.status.cause is not None
    assert plan.status.cause.host == "pi-worker-1"


def test_a_worker_that_is_going_away_is_waited_for_without_a_limit() -> None:
    seen = Observed(status=a_status(), workers=(a_worker(0), a_worker(1, terminating=True)), published_hosts=())
    plan = reconcile(a_job(), seen, at(3600))
    assert CreateLauncher(1) not in plan.actions
    assert not plan.status.finished


def test_in_a_retry_the_five_minutes_count_from_the_end_of_the_back_off() -> None:
    status = a_status(attempts=(Attempt(number=1, started=at(1), outcome="Failed"),), retry_at=at(1000))
    seen = Observed(status=status, workers=(a_worker(0), a_worker(1, Phase.PENDING)), published_hosts=())
    assert not reconcile(a_job(), seen, at(1299)).status.finished
    assert reconcile(a_job(), seen, at(1300)).status.finished


def test_a_worker_that_dies_before_the_launch_is_replaced_after_a_pause() -> None:
    dead = a_worker(1, Phase.FAILED, finished_at=at(10))
    seen = Observed(status=a_status(), workers=(a_worker(0), dead), published_hosts=())
    early = reconcile(a_job(), seen, at(12))
    assert early.actions == ()
    assert early.look_again_in is not None
    assert early.look_again_in.total_seconds() == 3
    assert reconcile(a_job(), seen, at(15)).actions == (DeleteWorker(1),)


def test_a_worker_that_says_why_nobody_will_ever_log_in_to_it_ends_the_job_at_once() -> None:
    dead = a_worker(1, Phase.FAILED, reason=names.REASON_BARRIER, message="there is no sshd in this image")
    seen = Observed(status=a_status(), workers=(a_worker(0), dead), published_hosts=())
    plan = reconcile(a_job(), seen, at(2))
    failed = plan.status.condition(names.FAILED)
    assert failed is not None
    assert (failed.reason, failed.message) == (names.REASON_BARRIER, "pi-worker-1: there is no sshd in this image")
    assert plan.status.attempts == ()


def test_workers_that_die_one_after_another_have_five_minutes_together() -> None:
    job, status = a_job(), a_status()
    for seconds in range(10, 311, 50):
        dead = a_worker(1, Phase.FAILED, started_at=at(seconds), finished_at=at(seconds), exit=Exit(code=9))
        plan = reconcile(job, Observed(status=status, workers=(a_worker(0), dead), published_hosts=()), at(seconds))
        status = plan.status
        assert status.finished == (seconds == 310)
    told = status.condition(names.FAILED)
    assert told is not None
    assert told.message == "pi-worker-1 was not ready after 5 min: it ended with code 9"


def test_what_a_worker_died_of_is_told_while_it_is_replaced() -> None:
    dead = a_worker(1, Phase.FAILED, started_at=at(1), finished_at=at(1), exit=Exit(code=9))
    plan = reconcile(a_job(), Observed(status=a_status(), workers=(a_worker(0), dead), published_hosts=()), at(1))
    told = plan.status.condition(names.QUEUED)
    assert told is not None
    assert (told.reason, told.message) == (names.REASON_BARRIER, "pi-worker-1: it ended with code 9")
