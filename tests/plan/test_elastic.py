from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from oarsman import names
from oarsman.job.observed import Observed, Phase
from oarsman.plan.actions import CreateLauncher, CreateWorker, DeleteWorker, Prepare, PublishHosts, Severity
from oarsman.plan.policies.elastic import hosts_now
from oarsman.plan.reconcile import reconcile
from tests.builders import a_job, a_status, a_worker, at, hosts, running, workers


def test_scaling_up_creates_workers_in_order_and_publishes_them_when_ready() -> None:
    job = a_job(workers=4, elastic=True, generation=2)
    seen = running(a_job())
    plan = reconcile(job, seen, at(10))
    assert plan.actions == (Prepare(), CreateWorker(2), CreateWorker(3))
    assert [(e.reason, e.message) for e in plan.events] == [
        (names.REASON_SCALED, "MPIJob default/pi is scaled from 2 to 4 workers")
    ]
    half = replace(seen, status=plan.status, workers=(*workers(3), a_worker(3, ready=False)))
    grown = reconcile(job, half, at(11))
    assert grown.actions == (PublishHosts(hosts(0, 1, 2)),)
    assert grown.events == ()


@pytest.mark.parametrize("elastic", [True, False])
def test_scaling_down_publishes_first_and_removes_the_highest_numbers(elastic: bool) -> None:
    job = a_job(workers=2, elastic=elastic, generation=2)
    plan = reconcile(job, running(a_job(workers=4, elastic=elastic)), at(10))
    assert plan.actions == (Prepare(), PublishHosts(hosts(0, 1)), DeleteWorker(3), DeleteWorker(2))
    assert [e.reason for e in plan.events] == [names.REASON_SCALED]


def test_a_launcher_as_worker_costs_no_worker_when_scaling_down() -> None:
    job = a_job(workers=2, as_worker=True, generation=2)
    plan = reconcile(job, running(a_job(workers=3, as_worker=True)), at(10))
    assert plan.actions == (Prepare(), PublishHosts(("pi-launcher", *hosts(0, 1))), DeleteWorker(2))


def test_the_list_is_in_numeric_order_and_has_only_hosts_that_answer() -> None:
    job = a_job(workers=12)
    seen = (
        *(a_worker(i) for i in (10, 2, 0)),
        a_worker(1, Phase.FAILED),
        a_worker(3, ready=False),
        a_worker(4, terminating=True),
        a_worker(12),
    )
    assert hosts_now(job, seen) == hosts(0, 2, 10)


@pytest.mark.parametrize(("as_worker", "count"), [(True, 1), (False, 0)])
def test_a_launcher_that_takes_ranks_is_listed_first(as_worker: bool, count: int) -> None:
    assert hosts_now(a_job(workers=count, as_worker=as_worker), workers(count))[0] == "pi-launcher"


def test_an_elastic_job_goes_on_when_a_worker_dies() -> None:
    job = a_job(workers=3, elastic=True)
    dead = a_worker(1, Phase.FAILED, reason="Evicted")
    seen = running(job, workers=(a_worker(0), dead, a_worker(2)))
    plan = reconcile(job, seen, at(10))
    assert plan.actions == (PublishHosts(hosts(0, 2)), DeleteWorker(1))
    assert [e.reason for e in plan.events] == [names.REASON_WORKER_REPLACED]
    assert not plan.status.is_true(names.RESTARTING)
    gone = replace(seen, status=plan.status, workers=(a_worker(0), a_worker(2)), published_hosts=hosts(0, 2))
    again = reconcile(job, gone, at(11))
    assert again.actions == (Prepare(), CreateWorker(1))
    assert again.events == ()


def test_an_elastic_job_replaces_a_worker_that_vanished() -> None:
    job = a_job(workers=2, elastic=True)
    plan = reconcile(job, running(job, workers=workers(1)), at(10))
    assert plan.actions == (PublishHosts(hosts(0)), Prepare(), CreateWorker(1))
    assert [e.message for e in plan.events] == ["pi-worker-1 is replaced: it vanished"]


def test_a_worker_added_to_a_running_ordinary_job_does_not_end_its_attempt_when_it_dies() -> None:
    job = a_job(workers=3, generation=2)
    seen = running(a_job(workers=2), workers=(*workers(2), a_worker(2, Phase.FAILED, finished_at=at(1))))
    plan = reconcile(job, seen, at(10))
    assert plan.status.is_true(names.RUNNING)
    assert plan.actions == (Prepare(), DeleteWorker(2))


def test_the_next_attempt_uses_the_new_size() -> None:
    job = a_job(workers=3, generation=2)
    seen = running(job, status=a_status(), launcher=None, published_hosts=hosts(0, 1))
    plan = reconcile(job, seen, at(10))
    assert plan.actions == (Prepare(), PublishHosts(hosts(0, 1, 2)), CreateLauncher(1))
    assert plan.status.attempts[0].workers == 3


def test_a_worker_that_keeps_dying_is_not_replaced_as_fast_as_the_loop_turns() -> None:
    job = a_job(workers=2, elastic=True)
    dead = a_worker(1, Phase.FAILED, finished_at=at(9))
    plan = reconcile(job, running(job, workers=(a_worker(0), dead)), at(10))
    assert plan.actions == (PublishHosts(hosts(0)),)
    assert plan.look_again_in == timedelta(seconds=4)


@pytest.mark.parametrize("hours", [-1, 1])
def test_the_clock_of_a_node_does_not_tell_when_its_worker_is_replaced(hours: int) -> None:
    job = a_job(workers=2, elastic=True)
    dead = a_worker(1, Phase.FAILED, created_at=at(9), finished_at=at(9) + timedelta(hours=hours))
    seen = running(job, workers=(a_worker(0), dead))
    assert reconcile(job, seen, at(10)).look_again_in == timedelta(seconds=4)
    assert DeleteWorker(1) in reconcile(job, seen, at(15)).actions


def test_an_edit_reaches_what_was_prepared_although_no_member_changes() -> None:
    edited = a_job(generation=2)
    plan = reconcile(edited, running(a_job()), at(10))
    assert plan.actions == (Prepare(),)
    assert plan.events == ()
    assert reconcile(edited, running(a_job(), status=plan.status), at(11)).actions == ()


def test_before_anything_exists_an_edit_has_nothing_to_follow() -> None:
    status = a_status(retry_at=at(100))
    plan = reconcile(a_job(workers=0, generation=2), Observed(status=status, published_hosts=()), at(10))
    assert plan.actions == ()


def test_edits_without_effect_are_a_condition_as_long_as_they_are() -> None:
    seen = running(outdated=("spec.mpiReplicaSpecs.Worker.template",))
    first = reconcile(a_job(), seen, at(10))
    condition = first.status.condition(names.OUTDATED)
    assert condition is not None
    assert condition.message == (
        "edited, but existing members keep their old values: spec.mpiReplicaSpecs.Worker.template"
    )
    assert [(e.reason, e.severity) for e in first.events] == [(names.REASON_OUTDATED, Severity.WARNING)]
    again = reconcile(a_job(), replace(seen, status=first.status), at(11))
    assert (again.events, again.status) == ((), first.status)
    more = reconcile(a_job(), running(status=again.status, outdated=("spec.slotsPerWorker",)), at(12))
    condition = more.status.condition(names.OUTDATED)
    assert condition is not None
    assert condition.message == "edited, but existing members keep their old values: spec.slotsPerWorker"
    later = reconcile(a_job(), running(status=more.status), at(13))
    assert not later.status.is_true(names.OUTDATED)
    assert later.events == ()


def test_a_job_that_was_never_edited_has_no_word_about_edits() -> None:
    assert reconcile(a_job(), running(), at(10)).status.condition(names.OUTDATED) is None


def test_an_edit_made_before_the_first_status_was_accepted_is_not_lost() -> None:
    seen = running(status=replace(a_status(), observed_generation=0))
    assert Prepare() in reconcile(a_job(generation=2), seen, at(10)).actions
