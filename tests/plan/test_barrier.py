from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from oarsman import names
from oarsman.job.observed import Exit, Member, Observed, Phase
from oarsman.job.state import Attempt
from oarsman.plan.actions import CreateLauncher, DeleteWorker
from oarsman.plan.policies.barrier import duration
from oarsman.plan.reconcile import reconcile
from tests.builders import a_job, a_launcher, a_status, a_worker, at, running

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


def test_a_start_that_takes_long_is_looked_at_again_and_then_left_until_its_time_is_over() -> None:
    for patience, now, seconds in (
        (300, 0, 15),
        (300, 14, 1),
        (300, 15, 285),
        (300, 100, 200),
        (10, 0, 10),
        (10, 9, 1),
    ):
        seen = Observed(
            status=a_status(),
            workers=(a_worker(0), a_worker(1, Phase.PENDING)),
            published_hosts=(),
            patience=timedelta(seconds=patience),
        )
        assert reconcile(a_job(), seen, at(now)).look_again_in == timedelta(seconds=seconds)


def test_the_five_minutes_of_a_worker_count_from_its_own_start() -> None:
    late = a_worker(1, Phase.PENDING, started_at=at(100))
    seen = Observed(status=a_status(), workers=(a_worker(0), late), published_hosts=())
    assert not reconcile(a_job(), seen, at(399)).status.finished
    assert reconcile(a_job(), seen, at(400)).status.finished


def test_what_a_host_says_of_itself_is_told_when_it_has_taken_a_while() -> None:
    slow = a_worker(1, ready=False, not_ready_because="no sshd", started_at=at(10))
    seen = Observed(status=a_status(), workers=(a_worker(0), slow), published_hosts=())
    early = reconcile(a_job(), seen, at(24))
    assert early.status.condition(names.QUEUED) is None
    assert early.look_again_in == timedelta(seconds=1)
    late = reconcile(a_job(), seen, at(25))
    told = late.status.condition(names.QUEUED)
    assert told is not None
    assert (told.reason, told.message) == (names.REASON_BARRIER, "pi-worker-1: no sshd")
    assert [(e.reason, e.severity.value) for e in late.events] == [(names.REASON_BARRIER, "Warning")]
    again = reconcile(a_job(), replace(seen, status=late.status), at(26))
    assert again.events == ()


def test_waiting_for_room_is_no_warning() -> None:
    queued = a_worker(1, Phase.PENDING, not_ready_because="no node is free", waits_for_room=True)
    seen = Observed(status=a_status(), workers=(a_worker(0), queued), published_hosts=())
    plan = reconcile(a_job(), seen, at(3600))
    assert not plan.status.finished
    assert [(e.reason, e.severity.value) for e in plan.events] == [(names.REASON_WAITING, "Normal")]


def test_the_first_host_that_is_not_ready_is_named_unless_another_has_to_go_first() -> None:
    for workers, host in (
        ((a_worker(0, Phase.PENDING), a_worker(1, Phase.PENDING)), "pi-worker-0"),
        ((a_worker(1, Phase.PENDING),), "pi-worker-0"),
    ):
        seen = Observed(status=a_status(), workers=workers, published_hosts=())
        cause = reconcile(a_job(), seen, at(300)).status.cause
        assert cause is not None
        assert cause.host == host


def test_a_launcher_that_never_begins_is_named_with_what_it_says() -> None:
    for said, host, words in (
        ({}, "pi-launcher", "it is pending"),
        ({"message": "no image"}, "pi-launcher", "no image"),
        ({"message": "x", "not_ready_because": "no key"}, "pi-launcher", "no key"),
        ({"not_ready_because": "pi-worker-1: no sshd"}, "pi-worker-1", "no sshd"),
        ({"not_ready_because": "other: no sshd"}, "pi-launcher", "other: no sshd"),
    ):
        launcher = a_launcher(Phase.PENDING, started_at=at(100), **said)
        seen = running(launcher=launcher, workers=(a_worker(0), a_worker(1, started_at=at(50))), launcher_holds=True)
        assert not reconcile(a_job(), seen, at(399)).status.finished
        cause = reconcile(a_job(), seen, at(400)).status.cause
        assert cause is not None
        assert (cause.host, cause.summary) == (host, f"{host} was not ready after 5 min: {words}")


def test_whole_minutes_are_minutes() -> None:
    spans = {0: "0 s", 1: "1 s", 59: "59 s", 60: "1 min", 61: "61 s", 300: "5 min", 0.5: "0 s"}
    assert {seconds: duration(timedelta(seconds=seconds)) for seconds in spans} == spans
