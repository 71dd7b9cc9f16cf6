"""Deadline, stop, TTL and clean-up: how jobs end, and what stays of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from for_every import for_every_row

from oarsman import names
from oarsman.job.job import CleanPodPolicy as Clean
from oarsman.job.job import Job
from oarsman.job.observed import Admission, Member, Observed, Phase
from oarsman.job.state import Attempt, Cause, Status
from oarsman.plan.actions import Action, DeleteJob, DeleteLauncher, DeleteWorker, Dismantle, PublishHosts, ReleaseGang
from oarsman.plan.reconcile import reconcile
from tests.builders import a_condition, a_job, a_launcher, a_rank, a_status, a_worker, at, running, workers

ENDED = Status(
    conditions=(a_condition(names.CREATED), a_condition(names.SUCCEEDED, when=50)),
    attempts=(Attempt(number=1, outcome="Succeeded"),),
    completion_time=at(50),
)


def test_the_deadline_ends_everything_that_runs() -> None:
    job = a_job(active_deadline_seconds=100)
    early = reconcile(job, running(job), at(99))
    assert early.look_again_in == timedelta(seconds=1)
    plan = reconcile(job, running(job), at(100))
    assert plan.actions == (DeleteLauncher(1), PublishHosts(()), DeleteWorker(0), DeleteWorker(1))
    failed = plan.status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_DEADLINE
    assert plan.status.completion_time == at(100)


def test_a_clock_that_was_put_back_does_not_put_the_deadline_off() -> None:
    job = a_job(active_deadline_seconds=100)
    plan = reconcile(job, running(job), at(0) - timedelta(hours=2))
    assert plan.look_again_in == timedelta(seconds=100), "at worst it has all its time again"
    assert plan.status.start_time == at(0) - timedelta(hours=2)


def test_a_success_seen_after_the_deadline_is_a_success() -> None:
    job = a_job(active_deadline_seconds=100)
    seen = running(job, launcher=a_launcher(Phase.SUCCEEDED, finished_at=at(99)))
    assert reconcile(job, seen, at(500)).status.is_true(names.SUCCEEDED)


def test_a_deadline_of_zero_ends_a_job_before_it_starts() -> None:
    plan = reconcile(a_job(active_deadline_seconds=0), Observed(), at(0))
    assert plan.status.is_true(names.FAILED)
    assert plan.actions == ()


def test_waiting_for_room_uses_up_no_deadline() -> None:
    full = Admission(admitted=False, position=1, reason="full")
    seen = Observed(status=a_status(started=None), admission=full)
    plan = reconcile(a_job(active_deadline_seconds=10), seen, at(9999))
    assert plan.status.is_true(names.QUEUED)
    assert not plan.status.finished


def test_stop_ends_everything_and_is_not_tried_again() -> None:
    job = a_job()
    plan = reconcile(job, running(job, stop_requested=True), at(10))
    assert plan.actions == (DeleteLauncher(1), PublishHosts(()), DeleteWorker(0), DeleteWorker(1))
    failed = plan.status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_STOPPED
    assert "by the user" in failed.message
    assert reconcile(job, Observed(status=plan.status, stop_requested=True), at(999)).actions == ()


def stuck(job: Job, **given: Any) -> Observed:
    """Rank 1 raised an exception, and the other waits for it."""
    ranks = (a_rank(0), a_rank(1, raised="KeyError: 'shard-2'", last_lines=("KeyError: 'shard-2'",)))
    return running(job, ranks=ranks, **given)


def test_a_job_that_is_stopped_while_ranks_wait_for_one_with_an_exception_keeps_what_was_known() -> None:
    job = a_job()
    status = reconcile(job, stuck(job, stop_requested=True), at(10)).status
    before = "; before that rank 1 on pi-worker-1 had raised KeyError: 'shard-2'"
    assert status.cause is not None
    assert status.cause.summary == "stopped by the user" + before
    assert (status.cause.rank, status.cause.host) == (1, "pi-worker-1")
    assert status.cause.last_lines == ("KeyError: 'shard-2'",)
    failed = status.condition(names.FAILED)
    assert failed is not None
    assert failed.message == f"MPIJob {job.key} was stopped by the user{before}"


CAUSE = Cause(
    summary="rank 1 on pi-worker-1 exited with code 3: no seat",
    rank=1,
    host="pi-worker-1",
    exit_code=3,
    hint="buy one",
    last_lines=("no seat",),
)


@for_every_row([((),), ((Attempt(number=3, started=at(9)),),)])  # between two attempts, and in the next one
def test_a_job_that_is_stopped_while_it_is_retried_keeps_why(following: tuple[Attempt, ...]) -> None:
    job, failed = a_job(), Attempt(number=2, started=at(1), ended=at(5), outcome=names.FAILED, cause=CAUSE)
    status = a_status(true=(names.CREATED, names.RESTARTING), cause=CAUSE, attempts=(failed, *following))
    status = reconcile(job, Observed(status=status, stop_requested=True), at(10)).status
    before = "; before that attempt 2 failed: rank 1 on pi-worker-1 exited with code 3: no seat"
    assert status.cause == Cause(summary="stopped by the user" + before, hint="buy one", last_lines=("no seat",))
    ended = status.condition(names.FAILED)
    assert ended is not None
    assert (ended.reason, ended.message) == (names.REASON_STOPPED, f"MPIJob {job.key} was stopped by the user{before}")


@for_every_row([(names.SUSPENDED,), ("NotStarted",)])
def test_what_failed_before_something_else_is_not_told_of_a_job_that_is_stopped(outcome: str) -> None:
    failed = Attempt(number=1, outcome=names.FAILED, cause=CAUSE)
    status = a_status(attempts=(failed, Attempt(number=2, outcome=outcome)))
    status = reconcile(a_job(), Observed(status=status, stop_requested=True), at(10)).status
    assert status.cause == Cause(summary="stopped by the user")


def test_a_job_that_reaches_its_deadline_while_ranks_wait_for_one_with_an_exception_keeps_what_was_known() -> None:
    job = a_job(active_deadline_seconds=100)
    status = reconcile(job, stuck(job), at(100)).status
    before = "100 s; before that rank 1 on pi-worker-1 had raised KeyError: 'shard-2'"
    failed = status.condition(names.FAILED)
    assert status.cause is not None
    assert failed is not None
    assert status.cause.summary.endswith(before)
    assert failed.message.endswith(before)


def test_a_job_that_is_ended_while_ranks_may_wait_for_one_without_cpu_keeps_what_was_known() -> None:
    ranks = (a_rank(0, cpu=99), a_rank(1, cpu=0))
    before = "; before that rank 1 on pi-worker-1 had used no CPU while the others used theirs"
    for job, ended in ((a_job(), {"stop_requested": True}), (a_job(active_deadline_seconds=100), {})):
        status = reconcile(job, running(job, ranks=ranks, **ended), at(100)).status
        failed = status.condition(names.FAILED)
        assert status.cause is not None
        assert failed is not None
        assert status.cause.summary.endswith(before)
        assert failed.message.endswith(before)
        assert (status.cause.rank, status.cause.host, status.cause.hint) == (1, "pi-worker-1", None)


def test_at_a_deadline_it_is_known_what_was_wrong_although_the_ranks_were_ended_before_anybody_looked() -> None:
    """The job agent keeps the deadline, too."""
    job = a_job(active_deadline_seconds=100)
    for told in ({"raised": "KeyError: 'shard-2'"}, {"cpu": 0}):
        for ended, known in ((99.9, False), (100, True), (100.2, True)):
            others = a_rank(0, code=143, cpu=99, finished_at=at(100.2))
            ranks = (others, a_rank(1, code=143, finished_at=at(ended), **told))
            cause = reconcile(job, running(job, ranks=ranks), at(101)).status.cause
            assert cause is not None
            assert ("; before that rank 1 on pi-worker-1 had " in cause.summary) == known, (told, ended)


def test_stop_leaves_alone_what_has_ended_or_is_going_away() -> None:
    job = a_job(workers=4)
    members = (a_worker(0), a_worker(1, Phase.FAILED), a_worker(2, terminating=True), a_worker(3))
    seen = running(job, stop_requested=True, workers=members, launcher=a_launcher(terminating=True))
    assert [a for a in reconcile(job, seen, at(10)).actions if not isinstance(a, PublishHosts)] == [W(0), W(3)]


def test_a_suspended_or_queued_job_can_be_stopped() -> None:
    for job in (a_job(suspend=True), a_job()):
        plan = reconcile(job, Observed(status=a_status(started=None), stop_requested=True), at(10))
        assert plan.status.is_true(names.FAILED)


@pytest.mark.parametrize("ttl", [0, 30])
def test_the_job_itself_is_deleted_when_its_time_is_over(ttl: int) -> None:
    job = a_job(ttl_seconds_after_finished=ttl)
    seen = Observed(status=ENDED, workers=workers(1), launcher=a_launcher(Phase.SUCCEEDED))
    if ttl:
        assert reconcile(job, seen, at(79)).look_again_in == timedelta(seconds=1)
    plan = reconcile(job, seen, at(50 + ttl))
    assert plan.actions == (DeleteLauncher(1), DeleteWorker(0), DeleteJob())


def test_a_ttl_of_zero_waits_for_the_end_to_be_on_record() -> None:
    job = a_job(ttl_seconds_after_finished=0)
    plan = reconcile(job, running(job, launcher=a_launcher(Phase.SUCCEEDED)), at(10))
    assert plan.status.is_true(names.SUCCEEDED)
    assert plan.actions == ()


MIX = (a_worker(0), a_worker(1, Phase.PENDING), a_worker(2, Phase.FAILED), a_worker(3, Phase.SUCCEEDED))
DONE, LIVE = a_launcher(Phase.SUCCEEDED), a_launcher()
W = DeleteWorker


@pytest.mark.parametrize(
    ("policy", "keeps", "launcher", "gone"),
    [
        (Clean.NONE, True, DONE, ()),
        (Clean.NONE, True, LIVE, (DeleteLauncher(1),)),
        (Clean.RUNNING, True, DONE, (W(0), W(1))),
        (Clean.ALL, True, DONE, (DeleteLauncher(1), W(0), W(1), W(2), W(3))),
        (Clean.NONE, False, DONE, (W(0), W(1))),
        (Clean.NONE, False, LIVE, (DeleteLauncher(1), W(0), W(1))),
        (Clean.ALL, False, LIVE, (DeleteLauncher(1), W(0), W(1), W(2), W(3))),
    ],
)
def test_what_the_clean_policy_takes_away(
    policy: Clean, keeps: bool, launcher: Member, gone: tuple[Action, ...]
) -> None:
    job = a_job(workers=4, clean_pod_policy=policy)
    seen = Observed(status=ENDED, workers=MIX, launcher=launcher, keeps_idle_members=keeps, published_hosts=job.hosts)
    plan = reconcile(job, seen, at(60))
    assert plan.actions == gone
    assert plan.events == ()


def test_workers_beyond_the_present_number_go_after_the_end_too() -> None:
    seen = Observed(status=ENDED, workers=MIX)
    assert reconcile(a_job(workers=2), seen, at(60)).actions == (W(2), W(3))


def test_terminating_members_are_not_deleted_again() -> None:
    seen = Observed(status=ENDED, workers=workers(2, terminating=True), launcher=a_launcher(terminating=True))
    assert reconcile(a_job(clean_pod_policy=Clean.ALL), seen, at(60)).actions == ()


@pytest.mark.parametrize(
    ("policy", "released"), [(Clean.NONE, ()), *[(p, (ReleaseGang(),)) for p in (Clean.RUNNING, Clean.ALL)]]
)
def test_places_are_not_asked_for_any_more_where_members_are_taken_away(policy: Clean, released: tuple[Action]) -> None:
    seen = Observed(status=ENDED, gang_asks=True)
    assert reconcile(a_job(clean_pod_policy=policy), seen, at(60)).actions == released


def test_what_was_prepared_is_dismantled_once_nothing_uses_it() -> None:
    job = a_job()
    seen = Observed(status=ENDED, workers=workers(2), keeps_idle_members=False, published_hosts=())
    busy = reconcile(job, seen, at(60))
    assert Dismantle() not in busy.actions
    assert busy.look_again_in == timedelta(seconds=1)
    idle = replace(seen, workers=workers(2, Phase.SUCCEEDED))
    assert reconcile(job, idle, at(61)).actions == (Dismantle(),)
    assert reconcile(job, replace(idle, published_hosts=None), at(62)).actions == ()


@pytest.mark.parametrize(("prepared", "actions"), [(True, (Dismantle(),)), (False, ())])
def test_an_engine_that_knows_what_is_prepared_is_believed(prepared: bool, actions: tuple[Action, ...]) -> None:
    seen = Observed(status=ENDED, keeps_idle_members=False, prepared=prepared)
    assert reconcile(a_job(), seen, at(60)).actions == actions


def test_a_stopped_job_leaves_nothing_alive_whatever_the_policy() -> None:
    conditions = (a_condition(names.FAILED, reason=names.REASON_STOPPED),)
    seen = Observed(status=replace(ENDED, conditions=conditions), workers=MIX)
    assert reconcile(a_job(workers=4), seen, at(60)).actions == (W(0), W(1))
