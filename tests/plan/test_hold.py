"""Launchers that wait inside: made with their workers, Pending until those answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from oarsman import names
from oarsman.job.job import Job, LauncherCreation
from oarsman.job.observed import Exit, Member, Observed, Phase
from oarsman.job.state import Attempt, Status
from oarsman.plan.actions import CreateLauncher, CreateWorker, DeleteLauncher, DeleteWorker, Prepare, PublishHosts
from oarsman.plan.policies import retry
from oarsman.plan.reconcile import reconcile
from tests.builders import MPIRUN, a_job, a_launcher, a_status, a_worker, at, hosts, launched, running, workers

PENDING = Phase.PENDING


def held(job: Job | None = None, **given: Any) -> Observed:
    """Workers on their way, the launcher made and waiting, its attempt on record."""
    job = job or a_job()
    status = a_status(attempts=(Attempt(number=1, started=at(0), workers=job.workers, launcher="pi-launcher-a"),))
    seen = Observed(
        status=status,
        workers=workers(job.workers, PENDING),
        launcher=a_launcher(PENDING, instance="pi-launcher-a"),
        published_hosts=job.hosts,
        launcher_holds=True,
    )
    return replace(seen, **given)


# -- when it is made --------------------------------------------------------------------------------------
def test_a_launcher_that_can_wait_is_made_together_with_its_workers() -> None:
    plan = reconcile(a_job(), Observed(launcher_holds=True), at(0))
    create = [a for a in plan.actions if isinstance(a, CreateWorker | CreateLauncher)]
    assert create == [CreateWorker(0), CreateWorker(1), CreateLauncher(1)]
    assert plan.actions[0] == Prepare()
    assert plan.actions.index(PublishHosts(hosts(0, 1))) < plan.actions.index(CreateLauncher(1))
    assert "launched" not in plan.status.timeline
    assert "hostsUp" not in plan.status.timeline


def test_the_first_list_of_hosts_is_written_once_and_before_any_member_is_made() -> None:
    plan = reconcile(a_job(), Observed(launcher_holds=True), at(0))
    published = PublishHosts(hosts(0, 1))
    assert plan.actions == (Prepare(), published, CreateWorker(0), CreateWorker(1), CreateLauncher(1))


def test_a_worker_that_could_not_be_made_yet_is_not_said_to_have_vanished() -> None:
    seen = Observed(launcher_holds=True, published_hosts=hosts(0, 1), workers=workers(1, PENDING))
    plan = reconcile(a_job(), seen, at(0))
    assert CreateWorker(1) in plan.actions
    assert not [e for e in plan.events if "vanished" in e.message]


@pytest.mark.parametrize(
    ("workers_", "made"),
    [
        pytest.param(workers(2, PENDING), True, id="they come up"),
        pytest.param(workers(2), True, id="they are up"),
        pytest.param((a_worker(0), a_worker(1, terminating=True)), False, id="an old one has to go first"),
        pytest.param((a_worker(0), a_worker(1, Phase.FAILED, finished_at=at(9))), False, id="a dead one, too"),
    ],
)
def test_a_launcher_is_not_made_while_a_host_has_to_go_away_first(workers_: tuple[Member, ...], made: bool) -> None:
    seen = Observed(status=a_status(), workers=workers_, published_hosts=(), launcher_holds=True)
    assert (CreateLauncher(1) in reconcile(a_job(), seen, at(10)).actions) is made


def test_a_job_that_asks_for_it_gets_its_launcher_when_its_workers_are_ready() -> None:
    job = replace(a_job(), launcher_creation=LauncherCreation.WAIT_FOR_WORKERS_READY)
    early = Observed(status=a_status(), workers=workers(2, ready=False), published_hosts=(), launcher_holds=True)
    assert CreateLauncher(1) not in reconcile(job, early, at(1)).actions
    assert CreateLauncher(1) in reconcile(job, replace(early, workers=workers(2)), at(2)).actions


def test_the_next_attempt_waits_for_its_back_off_although_its_launcher_could_wait_inside() -> None:
    status = a_status(attempts=(Attempt(number=1, outcome="Failed"),), retry_at=at(100))
    seen = Observed(status=status, workers=workers(2), published_hosts=hosts(0, 1), launcher_holds=True)
    assert reconcile(a_job(), seen, at(99)).actions == ()
    assert CreateLauncher(2) in reconcile(a_job(), seen, at(100)).actions


# -- while it waits ---------------------------------------------------------------------------------------
def test_a_job_whose_launcher_waits_is_not_running() -> None:
    plan = reconcile(a_job(), held(workers=workers(2)), at(1))
    assert not plan.status.is_true(names.RUNNING)
    assert plan.status.launcher.active == 0
    assert plan.actions == ()


def test_the_list_stays_complete_while_nobody_reads_it() -> None:
    plan = reconcile(a_job(), held(workers=(a_worker(0), a_worker(1, PENDING))), at(1))
    assert not [a for a in plan.actions if isinstance(a, PublishHosts)]


def test_the_step_to_launched_is_marked_when_the_command_begins() -> None:
    seen = held(workers=workers(2), launcher=a_launcher(started_at=at(7), instance="pi-launcher-a"))
    plan = reconcile(a_job(), seen, at(9))
    assert plan.status.is_true(names.RUNNING)
    assert (plan.status.timeline["hostsUp"], plan.status.timeline["launched"]) == (at(7), at(7))


ROOM = "not scheduled: 0/2 nodes are available"


@pytest.mark.parametrize(
    ("given", "host"),
    [
        pytest.param(
            {"workers": (a_worker(0), a_worker(1, PENDING, waits_for_room=True, not_ready_because=ROOM))},
            "pi-worker-1",
            id="a worker",
        ),
        pytest.param(
            {
                "workers": workers(2),
                "launcher": a_launcher(PENDING, waits_for_room=True, not_ready_because=ROOM, instance="pi-launcher-a"),
            },
            "pi-launcher",
            id="the launcher",
        ),
    ],
)
def test_waiting_for_a_place_has_no_end_and_is_told_once(given: dict[str, Any], host: str) -> None:
    seen = held(**given)
    plan = reconcile(a_job(), seen, at(100_000))
    queued = plan.status.condition(names.QUEUED)
    assert queued is not None
    assert (queued.status, queued.reason, queued.message) == (True, names.REASON_WAITING, f"{host}: {ROOM}")
    assert [e.reason for e in plan.events] == [names.REASON_WAITING]
    assert not plan.status.finished
    again = reconcile(a_job(), replace(seen, status=plan.status), at(100_001))
    assert (again.events, again.status) == ((), plan.status)


def test_a_place_that_was_found_is_no_longer_waited_for() -> None:
    waiting = held(workers=workers(2, PENDING, waits_for_room=True, not_ready_because=ROOM))
    told = reconcile(a_job(), waiting, at(10)).status
    up = held(status=told, workers=workers(2), launcher=a_launcher(instance="pi-launcher-a"))
    status = reconcile(a_job(), up, at(20)).status
    assert status.is_true(names.RUNNING)
    assert not status.is_true(names.QUEUED)


def test_a_pod_that_is_simply_on_its_way_is_nothing_to_tell() -> None:
    plan = reconcile(a_job(), held(workers=workers(2, PENDING, waits_for_room=True)), at(10))
    assert plan.status.condition(names.QUEUED) is None
    assert plan.events == ()


STUCK = "ErrImagePull: not found"


@pytest.mark.parametrize(
    ("given", "message", "since"),
    [
        pytest.param(
            {"workers": (a_worker(0), a_worker(1, PENDING, not_ready_because=STUCK, started_at=at(50)))},
            f"pi-worker-1 was not ready after 40 s: {STUCK}",
            50,
            id="a worker, from its place on",
        ),
        pytest.param(
            {
                "workers": workers(2, started_at=at(70)),
                "launcher": a_launcher(PENDING, not_ready_because="it waits for its workers", instance="pi-launcher-a"),
            },
            "pi-launcher was not ready after 40 s: it waits for its workers",
            70,
            id="the launcher, from the last worker on",
        ),
    ],
)
def test_a_host_that_has_its_place_gets_the_engines_patience(given: dict[str, Any], message: str, since: int) -> None:
    seen = held(patience=timedelta(seconds=40), **given)
    if since == 70:  # the launcher has its place since then, too
        assert seen.launcher is not None
        seen = replace(seen, launcher=replace(seen.launcher, started_at=at(60)))
    early = reconcile(a_job(), seen, at(since + 39))
    assert not early.status.finished
    assert early.look_again_in == timedelta(seconds=1)
    failed = reconcile(a_job(), seen, at(since + 40)).status.condition(names.FAILED)
    assert failed is not None
    assert (failed.reason, failed.message) == (names.REASON_BARRIER, message)


def test_what_the_barrier_inside_says_is_the_reason_and_no_retry_is_spent() -> None:
    words = "pi-worker-1: Permission denied (publickey). (waited 300 s)"
    ended = a_launcher(Phase.FAILED, reason=names.REASON_BARRIER, message=words, instance="pi-launcher-a")
    status = reconcile(a_job(), held(workers=workers(2), launcher=ended), at(400)).status
    failed = status.condition(names.FAILED)
    assert failed is not None
    assert (failed.reason, failed.message) == (names.REASON_BARRIER, words)
    assert status.cause is not None
    assert status.cause.host == "pi-worker-1"
    assert status.completion_time is not None


# -- what is lost while it waits --------------------------------------------------------------------------
def lost(job: Job, **given: Any) -> Status:
    return reconcile(job, held(job, **given), at(20)).status


@pytest.mark.parametrize(
    "left",
    [
        pytest.param((a_worker(0),), id="vanished"),
        pytest.param((a_worker(0), a_worker(1, Phase.FAILED, reason="Evicted", finished_at=at(1))), id="evicted"),
        pytest.param((a_worker(0), a_worker(1, terminating=True)), id="deleted by someone"),
    ],
)
def test_a_worker_lost_before_the_command_began_costs_no_retry(left: tuple[Member, ...]) -> None:
    job = a_job(backoff_limit=0)
    status = lost(job, workers=left)
    assert not status.finished
    assert [a.outcome for a in status.attempts] == ["NotStarted"]
    assert status.launcher.failed == 0
    assert status.retry_at is None
    assert not status.is_true(names.RESTARTING)


def test_after_an_attempt_that_never_began_the_launcher_goes_and_the_next_one_comes_at_once() -> None:
    job = a_job(backoff_limit=0)
    status = lost(job, workers=(a_worker(0),))
    cleared = reconcile(job, held(job, status=status, workers=(a_worker(0),)), at(21))
    assert DeleteLauncher(1) in cleared.actions
    assert CreateWorker(1) in cleared.actions
    assert CreateLauncher(2) not in cleared.actions
    gone = held(job, status=cleared.status, workers=(a_worker(0), a_worker(1, PENDING)), launcher=None)
    assert CreateLauncher(2) in reconcile(job, gone, at(22)).actions


def test_workers_that_end_by_themselves_get_no_more_time_than_the_barrier_gives() -> None:
    broken = (
        a_worker(0),
        a_worker(1, Phase.FAILED, exit=Exit(code=127), message="there is no sshd", finished_at=at(1)),
    )
    job = a_job(backoff_limit=0)
    assert not reconcile(job, held(job, workers=broken), at(299)).status.finished
    failed = reconcile(job, held(job, workers=broken), at(300)).status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_BARRIER
    assert "pi-worker-1" in failed.message


@pytest.mark.parametrize(
    "left",
    [
        pytest.param((a_worker(0),), id="vanished"),
        pytest.param((a_worker(0), a_worker(1, Phase.FAILED, reason="Evicted")), id="evicted"),
        pytest.param((a_worker(0), a_worker(1, terminating=True)), id="deleted by someone"),
    ],
)
def test_workers_that_others_took_away_are_replaced_however_long_that_takes(left: tuple[Member, ...]) -> None:
    assert not reconcile(a_job(), held(workers=left), at(3600)).status.finished


def test_a_barrier_that_gives_up_on_workers_which_wait_for_room_is_tried_again() -> None:
    ended = a_launcher(
        Phase.FAILED, reason=names.REASON_BARRIER, message="pi-worker-1: refused", instance="pi-launcher-a"
    )
    on_their_way = (a_worker(0), a_worker(1, PENDING, waits_for_room=True))
    status = reconcile(a_job(), held(workers=on_their_way, launcher=ended), at(400)).status
    assert not status.finished
    assert [a.outcome for a in status.attempts] == ["NotStarted"]


def test_attempts_that_never_began_in_a_row_come_ever_later_and_only_the_last_are_kept() -> None:
    before = tuple(Attempt(number=n, outcome="NotStarted") for n in range(1, 30))
    seen = held(
        status=launched(30, before=before, workers=2), workers=(a_worker(0),), launcher=a_launcher(PENDING, attempt=30)
    )
    status = reconcile(a_job(), seen, at(20)).status
    assert status.retry_at == at(20) + retry.LONGEST_DELAY
    gone = held(status=status, workers=workers(2), launcher=None)
    later = reconcile(a_job(), gone, at(20 + 361)).status
    assert [a.number for a in later.attempts] == [26, 27, 28, 29, 30, 31]


def test_the_second_attempt_that_never_began_in_a_row_is_the_first_to_wait() -> None:
    for outcomes, seconds in (
        ((), None),
        (("Failed",), None),
        (("NotStarted",), 20),
        (("Failed", "NotStarted"), 20),
        (("NotStarted", "Failed"), None),
        (("NotStarted", "NotStarted"), 40),
    ):
        before = tuple(Attempt(number=n, outcome=outcome) for n, outcome in enumerate(outcomes, 1))
        number = len(before) + 1
        status = launched(number, before=before, workers=2)
        seen = held(status=status, workers=(a_worker(0),), launcher=a_launcher(PENDING, attempt=number))
        assert reconcile(a_job(), seen, at(5)).status.retry_at == (seconds and at(5 + seconds))


def test_attempts_that_never_began_use_up_no_limit_however_many() -> None:
    before = tuple(Attempt(number=n, outcome="NotStarted") for n in range(1, 30))
    status = launched(30, before=before, workers=2)
    seen = running(status=status, launcher=a_launcher(Phase.FAILED, code=1, attempt=30))
    plan = reconcile(a_job(backoff_limit=1), seen, at(10))
    assert not plan.status.finished
    assert plan.status.retry_at == at(10) + retry.FIRST_DELAY


def test_a_worker_lost_when_the_command_runs_is_a_failure_as_ever() -> None:
    seen = running(workers=(a_worker(0),), launcher_holds=True)
    assert [a.outcome for a in reconcile(a_job(), seen, at(10)).status.attempts] == ["Failed"]


# -- another one in its place -----------------------------------------------------------------------------
def test_the_launcher_that_serves_an_attempt_is_written_down_when_it_is_first_seen() -> None:
    seen = running(launcher=a_launcher(instance="pi-launcher-a"), launcher_holds=True)
    plan = reconcile(a_job(), seen, at(10))
    assert plan.status.attempts[0].launcher == "pi-launcher-a"


@pytest.mark.parametrize("phase", list(Phase))
def test_another_launcher_in_its_place_is_a_lost_launcher(phase: Phase) -> None:
    """A Job may start a second pod for one that vanished: it would be a second run of the same attempt."""
    job = a_job()
    status = launched()
    status = replace(status, attempts=(replace(status.attempts[0], launcher="pi-launcher-a"),))
    seen = running(job, status=status, launcher=a_launcher(phase, instance="pi-launcher-b"), launcher_holds=True)
    plan = reconcile(job, seen, at(10))
    assert [a.outcome for a in plan.status.attempts] == ["Failed"]
    assert not plan.status.is_true(names.SUCCEEDED)
    assert reconcile(job, replace(seen, status=plan.status), at(11)).actions[0] == DeleteLauncher(1)


def test_engines_that_never_replace_a_launcher_need_not_tell_one_from_another() -> None:
    status = launched()
    status = replace(status, attempts=(replace(status.attempts[0], launcher="pi-launcher-a"),))
    assert reconcile(a_job(), running(status=status), at(10)).status.is_true(names.RUNNING)


def test_a_held_launcher_whose_start_was_never_written_down_is_adopted_as_waiting() -> None:
    seen = held(status=a_status())
    status = reconcile(a_job(), seen, at(5)).status
    assert [(a.number, a.launcher) for a in status.attempts] == [(1, "pi-launcher-a")]
    assert "launched" not in status.timeline


# -- refused members ----------------------------------------------------------------------------------------
REFUSED = "the API server refuses the Pod: spec.containers[0].image: Required value"


def test_members_that_cannot_be_as_asked_for_fail_the_job_at_once() -> None:
    plan = reconcile(a_job(), Observed(status=a_status(), refused=REFUSED), at(1))
    failed = plan.status.condition(names.FAILED)
    assert failed is not None
    assert (failed.reason, failed.message) == (names.REASON_INVALID, REFUSED)
    assert plan.actions == ()


def test_a_refusal_does_not_end_a_job_that_runs() -> None:
    status = reconcile(a_job(workers=3), running(refused=REFUSED), at(10)).status
    assert not status.finished


def test_hosts_that_ran_out_of_memory_are_in_the_cause() -> None:
    blamed = "mpirun noticed that process rank 1 with PID 42 on node pi-worker-1 exited on signal 9 (Killed)."
    seen = running(
        launcher=a_launcher(Phase.FAILED, code=137),
        launcher_lines=(blamed,),
        out_of_memory=("pi-worker-1",),
        ranks_report=False,
    )
    status = reconcile(a_job(backoff_limit=0), seen, at(10)).status
    assert status.cause is not None
    assert status.cause.memory_limit_hit
    assert "pi-worker-1" in status.cause.summary


def test_an_engine_whose_ranks_cannot_report_is_not_said_to_be_unverified() -> None:
    seen = running(launcher=a_launcher(Phase.SUCCEEDED), ranks_report=False)
    plan = reconcile(a_job(launch=MPIRUN), seen, at(10))
    assert [e.reason for e in plan.events] == [names.REASON_SUCCEEDED]


def test_a_stopped_or_suspended_job_gives_its_waiting_launcher_back() -> None:
    stopped = reconcile(a_job(), held(stop_requested=True), at(1))
    said = reconcile(a_job(suspend=True), held(), at(1))
    suspended = reconcile(a_job(suspend=True), held(status=said.status), at(1))
    for plan in (stopped, suspended):
        assert DeleteLauncher(1) in plan.actions
        assert DeleteWorker(0) in plan.actions
