"""A job from the first turn to the last, one turn after the other."""

from __future__ import annotations

from dataclasses import replace

from oarsman import names
from oarsman.errors import Problem
from oarsman.job.job import ManagedBy
from oarsman.job.observed import Admission, Observed, Phase, Place
from oarsman.plan.actions import CreateLauncher, CreateWorker, Prepare, PublishHosts, Severity
from oarsman.plan.reconcile import reconcile
from oarsman.text.sentence import Text
from tests.builders import T0, a_job, a_launcher, a_worker, at, hosts, running, workers


def test_a_new_job_is_created_admitted_and_gets_its_workers_in_order() -> None:
    plan = reconcile(a_job(), Observed(), T0)
    assert plan.actions == (Prepare(), PublishHosts(()), CreateWorker(0), CreateWorker(1))
    assert plan.status.is_true(names.CREATED)
    assert plan.status.start_time == T0
    assert [e.reason for e in plan.events] == [names.REASON_CREATED]
    assert dict(plan.status.timeline) == {"submitted": T0, "admitted": T0}


def test_fields_of_a_template_that_are_not_known_are_told_once_and_the_job_goes_on() -> None:
    unknown = Problem(
        source="", line=0, column=0, field="a.b", message=Text("unknown field {name}", name="b"), hint="did you mean c?"
    )
    job = replace(a_job(), warnings=(unknown,))
    plan = reconcile(job, Observed(), T0)
    told = [event for event in plan.events if event.reason == names.REASON_UNKNOWN]
    assert [(event.message, event.severity) for event in told] == [
        ("a.b: unknown field b (did you mean c?)", Severity.WARNING)
    ]
    assert CreateWorker(0) in plan.actions
    assert reconcile(job, Observed(status=plan.status), at(1)).events == ()


def test_the_machines_a_job_was_given_are_known_from_then_on() -> None:
    job = a_job()
    places = (Place(member="pi-worker-0", machine="node1"), Place(member="pi-worker-1", machine="node2"))
    first = reconcile(job, Observed(admission=Admission(placement=places)), T0)
    assert first.status.machines == {"pi-worker-0": "node1", "pi-worker-1": "node2"}
    later = reconcile(
        job, running(status=replace(running().status, machines=first.status.machines)), at(5)
    )  # nobody is asked for room any more
    assert later.status.machines == first.status.machines


def test_the_launcher_comes_when_every_worker_is_ready_and_the_hosts_are_published_first() -> None:
    job = a_job()
    first = reconcile(job, Observed(), T0)
    half = Observed(status=first.status, workers=(a_worker(0), a_worker(1, ready=False)), published_hosts=())
    assert reconcile(job, half, at(1)).actions == ()
    plan = reconcile(job, replace(half, workers=workers(2)), at(2))
    assert plan.actions == (Prepare(), PublishHosts(hosts(0, 1)), CreateLauncher(1))
    assert plan.status.attempt is not None
    assert plan.status.attempt.started == at(2)


def test_a_launcher_only_job_starts_at_once() -> None:
    plan = reconcile(a_job(workers=0), Observed(), T0)
    assert plan.actions == (Prepare(), PublishHosts(("pi-launcher",)), CreateLauncher(1))


def test_a_running_job_says_so_once_and_then_nothing_changes() -> None:
    job = a_job()
    seen = running(job)
    plan = reconcile(job, seen, at(3))
    assert plan.actions == ()
    again = reconcile(job, replace(seen, status=plan.status), at(30))
    assert again.status == plan.status
    assert again.events == ()
    assert again.actions == ()


def test_success_ends_the_job_and_is_final() -> None:
    job = a_job()
    seen = running(job, launcher=a_launcher(Phase.SUCCEEDED, code=0, finished_at=at(50)))
    plan = reconcile(job, seen, at(51))
    assert plan.status.is_true(names.SUCCEEDED)
    assert not plan.status.is_true(names.RUNNING)
    assert plan.status.completion_time == at(50)
    assert plan.actions == ()
    after = reconcile(job, Observed(status=plan.status), at(500))
    assert (after.actions, after.events, after.status) == ((), (), plan.status)


def test_a_job_managed_by_another_is_left_alone() -> None:
    job = a_job(managed_by=ManagedBy.MULTIKUEUE)
    plan = reconcile(job, Observed(), T0)
    assert (plan.actions, plan.events, plan.look_again_in) == ((), (), None)
    assert plan.status == Observed().status


def test_each_name_of_ours_is_ours() -> None:
    for ours in (None, ManagedBy.US, ManagedBy.TRAINING_OPERATOR):
        assert reconcile(a_job(managed_by=ours), Observed(), T0).actions
