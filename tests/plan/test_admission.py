from __future__ import annotations

from dataclasses import dataclass, replace

from oarsman import names
from oarsman.job.observed import Admission, Observed
from oarsman.job.state import QueuePlace, Status
from oarsman.plan.reconcile import reconcile, reject
from tests.builders import T0, a_job, a_status, at, running, workers

FULL = Admission(admitted=False, position=2, reason="needs 4 CPUs, 1 of 8 is free")


def test_without_room_the_job_is_queued_and_says_where_and_why() -> None:
    plan = reconcile(a_job(), Observed(admission=FULL), T0)
    assert plan.actions == ()
    assert plan.status.queue == QueuePlace(position=2, reason=FULL.reason)
    queued = plan.status.condition(names.QUEUED)
    assert queued is not None
    assert (queued.status, queued.reason) == (True, names.REASON_WAITING)
    assert queued.message == "number 2 in the queue: needs 4 CPUs, 1 of 8 is free"
    assert plan.status.start_time is None


def test_a_new_place_in_the_queue_renews_the_message_without_an_event() -> None:
    first = reconcile(a_job(), Observed(admission=FULL), T0)
    seen = Observed(status=first.status, admission=replace(FULL, position=1))
    plan = reconcile(a_job(), seen, at(60))
    queued = plan.status.condition(names.QUEUED)
    assert queued is not None
    assert queued.message.startswith("number 1 in the queue")
    assert queued.since == T0
    assert plan.events == ()


def test_with_room_the_clock_starts() -> None:
    first = reconcile(a_job(), Observed(admission=FULL), T0)
    plan = reconcile(a_job(), Observed(status=first.status), at(60))
    queued = plan.status.condition(names.QUEUED)
    assert queued is not None
    assert (queued.status, queued.reason) == (False, names.REASON_ADMITTED)
    assert plan.status.queue is None
    assert plan.status.start_time == plan.status.timeline["admitted"] == at(60)
    assert plan.actions


def test_what_can_never_fit_fails_at_once() -> None:
    why, about = "asks for 4 GPUs, the machine has 0", names.REASON_NEVER_FITS
    never = Admission(admitted=False, impossible=True, reason=why, about=about)
    plan = reconcile(a_job(), Observed(admission=never), T0)
    failed = plan.status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_NEVER_FITS
    assert "asks for 4 GPUs, the machine has 0" in failed.message
    assert plan.actions == ()


def test_a_place_that_was_given_is_not_taken_back() -> None:
    job = a_job()
    assert not reconcile(job, running(job, admission=FULL), at(10)).status.is_true(names.QUEUED)
    orphaned = Observed(status=a_status(started=None), workers=workers(2), admission=FULL)
    assert reconcile(job, orphaned, at(10)).status.start_time == at(10)


def test_what_the_engine_cannot_honour_fails_before_anything_starts() -> None:
    plan = reconcile(a_job(), Observed(unsupported="volumes of kind nfs are not supported here"), T0)
    failed = plan.status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_UNSUPPORTED
    assert "nfs" in failed.message
    assert plan.actions == ()
    job = a_job()
    assert not reconcile(job, running(job, unsupported="late"), at(1)).status.finished


def test_a_name_that_stays_taken_fails_the_job_after_a_while() -> None:
    first = reconcile(a_job(), Observed(conflict='"pi-worker-0" of Kind "Pod"'), T0)
    assert first.actions == ()
    assert not first.status.finished
    seen = Observed(status=first.status, conflict='"pi-worker-0" of Kind "Pod"')
    plan = reconcile(a_job(), seen, at(30))
    failed = plan.status.condition(names.FAILED)
    assert plan.status.is_true(names.CREATED)
    assert failed is not None
    assert failed.reason == names.REASON_CONFLICT
    assert failed.message == 'Resource "pi-worker-0" of Kind "Pod" already exists and is not managed by MPIJob'


@dataclass(frozen=True)
class Found:
    field: str
    message: str
    warning: bool = False


def test_an_invalid_job_fails_and_names_every_field() -> None:
    problems = [Found("spec.slotsPerWorker", "must not be negative"), Found("metadata.name", "is too long")]
    plan = reject(Status(), problems, T0, generation=3)
    failed = plan.status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_INVALID
    assert failed.message == (
        "Found validation errors: spec.slotsPerWorker: must not be negative; metadata.name: is too long"
    )
    assert plan.status.completion_time == T0
    assert plan.status.observed_generation == 3
    again = reject(plan.status, problems, at(9))
    assert (again.status, again.events) == (plan.status, ())


def test_a_long_list_of_problems_is_cut() -> None:
    plan = reject(Status(), [Found(f"spec.x{i}", "is wrong") for i in range(200)], T0)
    assert len(plan.events[0].message) == 1024
