from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from oarsman import names
from oarsman.job.job import CleanPodPolicy
from oarsman.job.observed import Admission, Observed, Phase
from oarsman.job.state import Attempt, ReplicaCount
from oarsman.plan.actions import (
    CreateLauncher,
    CreateWorker,
    DeleteLauncher,
    DeleteWorker,
    Prepare,
    PublishHosts,
    ReleaseGang,
)
from oarsman.plan.reconcile import reconcile
from tests.builders import a_job, a_launcher, a_status, a_worker, at, running, workers


def test_a_job_born_suspended_gets_nothing_and_says_so() -> None:
    plan = reconcile(a_job(suspend=True), Observed(), at(0))
    assert plan.actions == ()
    assert plan.status.is_true(names.CREATED)
    assert plan.status.is_true(names.SUSPENDED)
    stopped = plan.status.condition(names.RUNNING)
    assert stopped is not None
    assert (stopped.status, stopped.message) == (False, "MPIJob default/pi is suspended.")
    assert plan.status.start_time is None


def test_suspending_gives_everything_back_whatever_the_clean_policy() -> None:
    job = a_job(suspend=True, clean_pod_policy=CleanPodPolicy.RUNNING)
    seen = running(job, workers=(a_worker(0), a_worker(1, Phase.FAILED)))
    plan = reconcile(job, seen, at(10))
    assert plan.actions == ()  # on record first: a resume that comes now must not find an attempt that lost its hosts
    assert plan.look_again_in == timedelta(0)
    then = reconcile(job, replace(seen, status=plan.status), at(10))
    assert then.actions == (DeleteLauncher(1), PublishHosts(()), DeleteWorker(0), DeleteWorker(1))
    assert (then.status, then.events) == (plan.status, ())
    assert plan.status.is_true(names.SUSPENDED)
    assert not plan.status.is_true(names.RUNNING)
    assert plan.status.worker == ReplicaCount(active=1)
    assert plan.status.attempts[-1].outcome == "Suspended"
    assert plan.status.launcher.failed == 0
    assert [e.message for e in plan.events] == ["MPIJob suspended"]
    gone = reconcile(job, Observed(status=plan.status, published_hosts=()), at(11))
    assert (gone.events, gone.actions) == ((), ())
    assert (gone.status.launcher, gone.status.worker) == (ReplicaCount(), ReplicaCount())
    again = reconcile(job, Observed(status=gone.status, published_hosts=()), at(12))
    assert (again.status, again.events, again.actions) == (gone.status, (), ())


@pytest.mark.parametrize(
    ("left", "active"),
    [
        pytest.param({"workers": workers(2, terminating=True), "launcher": a_launcher(terminating=True)}, 3, id="all"),
        pytest.param({"workers": workers(2, Phase.PENDING, terminating=True)}, 2, id="those that never came up, too"),
        pytest.param({"workers": (a_worker(5, terminating=True),)}, 1, id="one beyond the replicas"),
        pytest.param({"workers": workers(2, Phase.FAILED, terminating=True)}, 0, id="what has ended holds nothing"),
        pytest.param({}, 0, id="nothing"),
    ],
)
def test_a_suspended_job_is_active_until_its_last_member_is_gone(left: dict[str, Any], active: int) -> None:
    """Kueue gives its quota to others as soon as nothing is active."""
    job, suspended = a_job(suspend=True), a_status(true=(names.CREATED, names.SUSPENDED), started=None)
    status = reconcile(job, Observed(status=suspended, published_hosts=(), **left), at(10)).status
    assert status.launcher.active + status.worker.active == active


def test_a_suspended_job_asks_for_no_places() -> None:
    suspended = a_status(true=(names.CREATED, names.SUSPENDED), started=None)
    assert reconcile(a_job(suspend=True), Observed(status=suspended, gang_asks=True), at(10)).actions == (
        ReleaseGang(),
    )


def test_what_is_going_away_is_not_taken_back_twice() -> None:
    job = a_job(suspend=True)
    suspended = a_status(true=(names.CREATED, names.SUSPENDED), started=None)
    leaving = {"launcher": a_launcher(terminating=True), "workers": (a_worker(0, terminating=True), a_worker(1))}
    seen = Observed(status=suspended, published_hosts=job.hosts, **leaving)  # type: ignore[arg-type]
    assert reconcile(job, seen, at(10)).actions == (PublishHosts(("pi-worker-0",)), DeleteWorker(1))


def test_resuming_takes_the_whole_way_again_with_the_next_number() -> None:
    suspended = a_status(
        true=(names.CREATED, names.SUSPENDED), started=None, attempts=(Attempt(number=1, outcome="Suspended"),)
    )
    plan = reconcile(a_job(), Observed(status=suspended, published_hosts=()), at(100))
    resumed = plan.status.condition(names.SUSPENDED)
    assert resumed is not None
    assert (resumed.status, resumed.reason, resumed.message) == (False, "MPIJobResumed", "MPIJob resumed")
    assert plan.status.start_time == at(100)
    assert plan.actions == (Prepare(), CreateWorker(0), CreateWorker(1))
    ready = Observed(status=plan.status, workers=workers(2), published_hosts=())
    assert reconcile(a_job(), ready, at(101)).actions[-1] == CreateLauncher(2)


def test_a_resumed_job_waits_for_room_like_any_other() -> None:
    suspended = a_status(true=(names.CREATED, names.SUSPENDED), started=None)
    seen = Observed(status=suspended, admission=Admission(admitted=False, position=2, reason="full"))
    plan = reconcile(a_job(), seen, at(100))
    assert plan.actions == ()
    assert plan.status.is_true(names.QUEUED)


def test_old_workers_on_their_way_out_do_not_count_as_a_start() -> None:
    suspended = a_status(true=(names.CREATED, names.SUSPENDED), started=None)
    leaving = workers(2, terminating=True)
    no_room = Admission(admitted=False, position=1, reason="full")
    plan = reconcile(a_job(), Observed(status=suspended, workers=leaving, admission=no_room), at(100))
    assert plan.status.is_true(names.QUEUED)
    admitted = reconcile(a_job(), Observed(status=suspended, workers=leaving), at(100))
    assert admitted.actions == ()  # their numbers are not free yet


def test_work_that_is_done_stays_done() -> None:
    job = a_job(suspend=True)
    plan = reconcile(job, running(job, launcher=a_launcher(Phase.SUCCEEDED)), at(10))
    assert plan.status.is_true(names.SUCCEEDED)


def test_a_launcher_that_outlived_its_suspended_attempt_is_removed_before_the_next() -> None:
    status = a_status(attempts=(Attempt(number=1, started=at(1), outcome="Suspended"),))
    seen = Observed(status=status, workers=workers(2), launcher=a_launcher(), published_hosts=())
    assert reconcile(a_job(), seen, at(10)).actions == (DeleteLauncher(1),)
    assert reconcile(a_job(), replace(seen, launcher=None), at(11)).actions[-1] == CreateLauncher(2)
