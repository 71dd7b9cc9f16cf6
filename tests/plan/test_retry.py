from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from for_every import for_every_row

from oarsman import names
from oarsman.job.job import Job, Volume
from oarsman.job.job import RestartPolicy as R
from oarsman.job.observed import Admission, Exit, Member, Observed, Phase
from oarsman.job.state import Attempt
from oarsman.plan.actions import CreateLauncher, CreateWorker, DeleteLauncher, DeleteWorker, Dismantle, PublishHosts
from oarsman.plan.policies.retry import delay
from oarsman.plan.reconcile import not_before, reconcile
from oarsman.status import conditions
from tests.builders import a_job, a_launcher, a_rank, a_status, a_worker, at, launched, running, workers


def failed_attempts(count: int) -> tuple[Attempt, ...]:
    return tuple(Attempt(number=n, started=at(n), outcome="Failed") for n in range(1, count + 1))


@pytest.mark.parametrize(
    ("restart", "limit", "code", "before", "reason"),
    [
        # reason None: it is tried again
        (R.NEVER, None, 1, 0, names.REASON_FAILED),
        (R.NEVER, 0, 1, 0, names.REASON_FAILED),
        (R.NEVER, 2, 1, 0, None),
        (R.NEVER, 2, 1, 2, names.REASON_BACKOFF),
        (R.ON_FAILURE, None, 1, 0, None),
        (R.ON_FAILURE, None, 1, 5, None),
        (R.ON_FAILURE, None, 1, 6, names.REASON_BACKOFF),
        (R.ON_FAILURE, 0, 1, 0, names.REASON_FAILED),
        (R.ALWAYS, None, 1, 0, None),
        (R.ALWAYS, 1, 1, 1, names.REASON_BACKOFF),
        (R.EXIT_CODE, None, 1, 0, names.REASON_FAILED),
        (R.EXIT_CODE, None, 127, 0, names.REASON_FAILED),
        (R.EXIT_CODE, 3, 2, 0, names.REASON_FAILED),
        (R.EXIT_CODE, None, 128, 0, None),
        (R.EXIT_CODE, None, 137, 0, None),
        (R.EXIT_CODE, None, 255, 0, None),
        (R.EXIT_CODE, None, 143, 6, names.REASON_BACKOFF),
    ],
)
def test_what_becomes_of_a_failed_attempt(
    restart: R, limit: int | None, code: int, before: int, reason: str | None
) -> None:
    job = a_job(restart=restart, backoff_limit=limit)
    launcher = a_launcher(Phase.FAILED, code=code, attempt=before + 1)
    status = launched(before + 1, before=failed_attempts(before))
    plan = reconcile(job, running(job, status=status, launcher=launcher), at(20))
    failed = plan.status.condition(names.FAILED)
    assert (failed.reason if failed else None) == reason
    assert plan.actions == ()  # the verdict is on record before the evidence goes
    assert plan.status.attempts[-1].outcome == "Failed"
    assert plan.status.is_true(names.RESTARTING) == (reason is None)
    assert plan.status.is_true(names.RUNNING) == (reason is None)
    assert plan.look_again_in == timedelta(0)


OPEN_MPI_USAGE = 'mpirun: Error: unknown option "--frobnicate"'
HYDRA_USAGE = "[mpiexec@pi-launcher] match_arg (lib/utils/args.c:166): unrecognized argument frobnicate"
HYDRA_MISSING = (
    "[proxy:0@pi-worker-0] HYDU_create_process (lib/utils/launch.c:73): "
    "execvp error on file ./nope (No such file or directory)"
)
# The launcher's code and its last line, and whether the next attempt could do better.
LAUNCHERS = [
    (127, "oarsman: mpriun: No such file or directory", "the program is not there"),
    (127, "bash: line 1: mpriun: command not found", "the program is not there"),
    (127, "sh: 1: mpriun: not found", "the program is not there"),
    (127, "", None),
    (127, "the licence server has no seats", None),
    (126, "oarsman: ./pi: Permission denied", "the program cannot be executed"),
    (126, "oarsman: ./pi: Exec format error", "the program cannot be executed"),
    (126, "oarsman: ./pi: Text file busy", None),
    (126, "", None),
    (1, "bash: line 1: helper: command not found", None),
    (1, OPEN_MPI_USAGE, "mpirun does not take its command line"),
    (213, "An unrecognized option was included on the mpirun command line:", "mpirun does not take its command line"),
    (255, HYDRA_USAGE, "mpirun does not take its command line"),
    (
        1,
        "There are not enough slots available in the system to satisfy the 512",
        "mpirun does not take its command line",
    ),
    (134, "prterun was unable to find the specified executable file, and therefore did", "the program is not there"),
    (255, HYDRA_MISSING, "the program is not there"),
    (2, "train.py: error: unrecognized arguments: --frobnicate", None),
]


def the_end(job: Job, seen: Observed) -> str | None:
    """What is said of a job that is not tried again."""
    status = reconcile(job, seen, at(20)).status
    failed = status.condition(names.FAILED)
    assert (failed is None) == status.is_true(names.RESTARTING)
    assert failed is None or failed.reason == names.REASON_FAILED
    return failed.message if failed else None


@for_every_row(LAUNCHERS)
def test_what_the_next_attempt_would_only_repeat_is_not_retried(code: int, line: str, why: str | None) -> None:
    job = a_job()
    said = the_end(job, running(job, launcher=a_launcher(Phase.FAILED, code=code), launcher_lines=(line,)))
    assert (said is None) == (why is None)
    assert said is None or said.endswith(f"; not retried: {why}"), said


def test_a_rank_whose_program_is_missing_ends_the_job_and_is_named() -> None:
    job = a_job()
    ranks = (a_rank(0, code=127, last_lines=("pyhton3: command not found",)), a_rank(1, code=143))
    said = the_end(job, running(job, launcher=a_launcher(Phase.FAILED, code=127), ranks=ranks))
    assert said == (
        "MPIJob default/pi has failed: rank 0 on pi-worker-0 exited with code 127: "
        "pyhton3: command not found; not retried: the program is not there"
    )


BEGUN = "Traceback (most recent call last):"
IN_MAIN = '  File "/code/train.py", line 3, in <module>'
IN_RUNPY = '  File "<frozen runpy>", line 254, in _get_code_from_file'
NO_SCRIPT = "/usr/bin/python3: can't open file '/code/helo.py': [Errno 2] No such file or directory"
NO_FILE = "FileNotFoundError: [Errno 2] No such file or directory: '/code/helo.py'"
NO_PACKAGE = "/usr/bin/python3: No module named mpi4py"
NO_MODULE = "ModuleNotFoundError: No module named 'nosuch'"
ABORTED = "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 1"
MISSING, LACKS = "the program is not there", "a Python module is missing"
# How rank 1 ended and what it wrote last, and whether the next attempt could do better.
PYTHONS = [
    (2, (NO_SCRIPT,), MISSING),
    (1, (NO_SCRIPT,), None),
    (2, (NO_SCRIPT, "usage: train.py [-h]"), None),
    (2, (NO_SCRIPT.replace("[Errno 2] No such file or directory", "[Errno 13] Permission denied"),), None),
    (1, (BEGUN, IN_RUNPY, NO_FILE), MISSING),
    (
        1,
        (BEGUN, IN_RUNPY.replace("<frozen runpy>", "/usr/lib/python3.9/runpy.py"), "    with open(x)", NO_FILE),
        MISSING,
    ),
    (1, (BEGUN, IN_RUNPY, NO_FILE, ABORTED), MISSING),
    (1, (BEGUN, IN_RUNPY, IN_MAIN, NO_FILE), None),  # a file that the script reads
    (1, (BEGUN, IN_MAIN, NO_FILE), None),
    (1, (NO_PACKAGE,), LACKS),
    (1, (NO_PACKAGE, "plots are left out"), None),
    (1, (BEGUN, IN_MAIN, NO_MODULE), LACKS),
    (1, (BEGUN, IN_MAIN, NO_MODULE, ABORTED), LACKS),
    (3, (BEGUN, IN_MAIN, NO_MODULE), None),
    (1, (BEGUN, IN_MAIN, NO_MODULE, "OSError: the file server does not answer"), None),
    (1, (BEGUN, IN_MAIN, "ImportError: cannot import name 'x' from 'y'"), None),
]


def a_python(job: Job, code: int, lines: tuple[str, ...], **given: object) -> Observed:
    ranks = (a_rank(0, code=143), a_rank(1, code=code, last_lines=lines))
    return replace(running(job, launcher=a_launcher(Phase.FAILED, code=code), ranks=ranks), **given)  # type: ignore[arg-type]


@for_every_row(PYTHONS)
def test_what_python_did_not_find_at_its_start_is_not_retried(
    code: int, lines: tuple[str, ...], why: str | None
) -> None:
    said = the_end(job := a_job(), a_python(job, code, lines))
    assert (said or "").partition("; not retried: ")[2] == (why or ""), said


def test_it_counts_only_of_the_rank_that_is_the_cause() -> None:
    job = a_job()
    first = a_rank(0, code=1, finished_at=at(5), last_lines=("no seat is free",))
    later = a_rank(1, code=1, finished_at=at(9), last_lines=(BEGUN, IN_MAIN, NO_MODULE))
    assert the_end(job, running(job, launcher=a_launcher(Phase.FAILED, code=1), ranks=(first, later))) is None
    relayed = (BEGUN, IN_MAIN, NO_MODULE)
    in_pods = running(
        job, launcher=a_launcher(Phase.FAILED, code=1), launcher_lines=relayed, launcher_relays=True, ranks_report=False
    )
    assert the_end(job, in_pods) is None


@for_every_row(
    [
        ("oarsman.dev/inventory", NO_MODULE, 1, None),  # another host may have it
        ("oarsman.dev/inventory", NO_SCRIPT, 2, MISSING),
        ("oarsman.dev/install", NO_MODULE, 1, None),  # the commands run again
        ("oarsman.dev/install", NO_SCRIPT, 2, None),
    ]
)
def test_other_hosts_and_install_commands_may_bring_what_is_missing(
    annotation: str, line: str, code: int, why: str | None
) -> None:
    job = replace(a_job(), annotations={annotation: "something"})
    said = the_end(job, a_python(job, code, (line,)))
    assert (said or "").partition("; not retried: ")[2] == (why or ""), said


def test_what_was_lost_with_a_host_is_tried_again_whatever_was_said() -> None:
    job = a_job()
    seen = running(job, workers=(a_worker(0), a_worker(1, Phase.FAILED, reason="HostLost")))
    lines = ("bash: line 1: mpirun: command not found",)
    assert the_end(job, replace(seen, launcher=a_launcher(Phase.FAILED, code=127), launcher_lines=lines)) is None


def test_an_mpirun_that_had_started_ranks_did_take_its_command_line() -> None:
    job = a_job()
    seen = running(job, launcher=a_launcher(Phase.FAILED, code=1), launcher_lines=(OPEN_MPI_USAGE,), ranks=(a_rank(0),))
    assert the_end(job, seen) is None


def test_a_job_that_is_never_retried_is_not_told_that_it_is_not() -> None:
    job = a_job(restart=R.NEVER)
    lines = ("bash: line 1: mpriun: command not found",)
    said = the_end(job, running(job, launcher=a_launcher(Phase.FAILED, code=127), launcher_lines=lines))
    assert said is not None
    assert "not retried" not in said


DIGEST = "registry/pi@sha256:" + "0" * 64


@for_every_row(
    [
        ("pi", (), False),
        ("registry/pi:1.0", (), False),
        (DIGEST, (), True),
        (DIGEST, (Volume(name="code", kind="persistentVolumeClaim"),), False),
        (DIGEST, (Volume(name="scratch", kind="emptyDir"),), True),
    ]
)
def test_on_kubernetes_the_next_pod_may_find_what_this_one_did_not(
    image: str, volumes: tuple[Volume, ...], final: bool
) -> None:
    """Unless its image is named by digest and nothing but that can hold the program."""
    job = a_job()
    container = replace(job.launcher.container, image=image)
    launcher = replace(job.launcher, containers=(container,), volumes=volumes)
    assert job.worker is not None
    job = replace(job, launcher=launcher, worker=replace(job.worker, containers=(container,)))
    lines = ("bash: line 1: mpriun: command not found",)
    seen = running(job, launcher=a_launcher(Phase.FAILED, code=127), launcher_lines=lines, ranks_report=False)
    assert (the_end(job, seen) is not None) == final


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 320), (7, 360), (5000, 360)]
)
def test_the_delay_doubles_up_to_six_minutes(failures: int, seconds: int) -> None:
    assert delay(failures) == timedelta(seconds=seconds)


@pytest.mark.parametrize(("stays", "since"), [(True, 0), (False, 20)], ids=["its workers stay", "all of it goes"])
def test_running_stays_true_while_a_gang_restarts_whose_workers_stay(stays: bool, since: int) -> None:
    """Kueue gives up a job that does not turn True again within minutes, and a retry may wait longer than that."""
    job = a_job()
    seen = running(job, launcher=a_launcher(Phase.FAILED, code=1), keeps_idle_members=stays)
    status = reconcile(job, seen, at(20)).status
    held = status.condition(names.RUNNING)
    assert held is not None
    assert (held.status, held.reason, held.since) == (stays, "MPIJobRestarting", at(since))
    assert status.phase == names.RESTARTING
    assert "retrying in 10 s" in held.message
    again = launched(2, before=status.attempts)
    up = running(job, status=replace(status, attempts=again.attempts), launcher=a_launcher(attempt=2))
    back = reconcile(job, up, at(40))
    held = back.status.conditions[-1]
    assert (held.type, held.status, held.reason) == (names.RUNNING, True, "MPIJobRunning")
    assert held.since == (at(0) if stays else at(40))
    assert names.REASON_RUNNING in [event.reason for event in back.events]


def test_the_gang_restarts_as_one_attempt() -> None:
    job = a_job()
    seen = running(job, launcher=a_launcher(Phase.FAILED, code=1, finished_at=at(19)))
    verdict = reconcile(job, seen, at(20))
    assert verdict.status.retry_at == at(30)
    assert verdict.status.attempts[0].ended == at(19)
    seen = replace(seen, status=verdict.status)
    assert reconcile(job, seen, at(20)).actions == (DeleteLauncher(1),)
    gone = replace(seen, launcher=None)
    waiting = reconcile(job, gone, at(21))
    assert waiting.actions == ()
    assert waiting.look_again_in == timedelta(seconds=9)
    next_try = reconcile(job, gone, at(30))
    assert next_try.actions[-1] == CreateLauncher(2)  # healthy workers stay
    assert next_try.status.retry_at is None
    assert next_try.status.is_true(names.RESTARTING)
    up = replace(gone, status=next_try.status, launcher=a_launcher(attempt=2))
    back = reconcile(job, up, at(31)).status
    assert back.is_true(names.RUNNING)
    assert not back.is_true(names.RESTARTING)


def test_on_hosts_the_gang_gives_its_room_back_while_it_waits() -> None:
    job = a_job()
    seen = running(job, launcher=a_launcher(Phase.FAILED, code=1), keeps_idle_members=False)
    seen = replace(seen, status=reconcile(job, seen, at(20)).status)
    leaving = reconcile(job, seen, at(20))
    assert leaving.actions == (DeleteLauncher(1), PublishHosts(()), DeleteWorker(0), DeleteWorker(1))
    gone = replace(seen, status=leaving.status, launcher=None, workers=(), published_hosts=())
    waiting = reconcile(job, gone, at(21))
    assert (waiting.actions, waiting.look_again_in) == ((Dismantle(),), timedelta(seconds=9))
    back = reconcile(job, gone, at(30))
    assert [a for a in back.actions if isinstance(a, CreateWorker)] == [CreateWorker(0), CreateWorker(1)]
    assert names.REASON_WORKER_REPLACED not in [event.reason for event in back.events]


def test_between_two_attempts_a_job_asks_for_no_room_until_its_wait_is_over() -> None:
    status = a_status(attempts=failed_attempts(1), retry_at=at(10))
    assert [not_before(a_job(), status, at(now)) for now in (9, 10, 11)] == [at(10), None, None]
    assert not_before(a_job(), a_status(), at(9)) is None


def test_whose_wait_is_over_asks_for_room_and_has_all_its_time_once_it_has_some() -> None:
    job = a_job()
    full = Admission(admitted=False, position=1, reason="full")
    status = a_status(attempts=failed_attempts(1), retry_at=at(10))
    gone = Observed(status=status, published_hosts=(), keeps_idle_members=False, admission=full)
    queued = reconcile(job, gone, at(10))
    assert queued.actions == ()
    assert queued.status.is_true(names.QUEUED)
    assert queued.status.start_time == status.start_time  # its deadline goes on
    late = at(3600)  # longer than any host may take to be ready
    admitted = reconcile(job, replace(gone, status=queued.status, admission=Admission()), late)
    assert CreateWorker(0) in admitted.actions
    assert not admitted.status.is_true(names.FAILED)
    assert not admitted.status.is_true(names.QUEUED)


def test_the_deadline_holds_while_an_attempt_waits_for_room() -> None:
    job = a_job(active_deadline_seconds=60)
    full = Admission(admitted=False, position=1, reason="full")
    status = a_status(attempts=failed_attempts(1), retry_at=at(10))
    gone = Observed(status=status, published_hosts=(), keeps_idle_members=False, admission=full)
    assert reconcile(job, gone, at(20)).look_again_in == timedelta(seconds=40)
    failed = reconcile(job, gone, at(60)).status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_DEADLINE


def test_no_launcher_is_created_while_the_old_one_is_going_away() -> None:
    status = a_status(attempts=failed_attempts(1), retry_at=at(10))
    leaving = a_launcher(Phase.FAILED, code=1, terminating=True)
    seen = Observed(status=status, workers=workers(2), launcher=leaving, published_hosts=())
    assert reconcile(a_job(), seen, at(100)).actions == ()


def test_a_launcher_that_vanished_is_missed_after_a_grace_and_its_number_is_not_used_again() -> None:
    job = a_job()
    seen = running(job, launcher=None)
    soon = reconcile(job, seen, at(2))
    assert not soon.status.is_true(names.RESTARTING)
    assert soon.look_again_in == timedelta(seconds=4)
    plan = reconcile(job, seen, at(6))
    assert plan.status.cause is not None
    assert plan.status.cause.summary.startswith("launcher lost")
    assert plan.status.is_true(names.RESTARTING)
    later = reconcile(job, replace(seen, status=plan.status), at(60))
    assert later.actions[-1] == CreateLauncher(2)


def test_a_launcher_that_vanished_has_no_exit_code_that_forbids_another_try() -> None:
    job = a_job(restart=R.EXIT_CODE)
    assert reconcile(job, running(job, launcher=None), at(6)).status.is_true(names.RESTARTING)


def test_a_launcher_whose_start_was_never_written_down_is_adopted() -> None:
    job = a_job()
    seen = Observed(
        status=a_status(), workers=workers(2), launcher=a_launcher(started_at=at(4)), published_hosts=job.hosts
    )
    plan = reconcile(job, seen, at(5))
    assert plan.actions == ()
    assert plan.status.attempts == (Attempt(number=1, started=at(4), workers=2),)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"phase": Phase.FAILED, "reason": "Evicted", "message": "low on disk"}, "it was evicted: low on disk"),
        ({"phase": Phase.FAILED, "reason": "HostLost"}, "its host was lost"),
        ({"phase": Phase.FAILED, "reason": "OOMKilled"}, "it ran out of memory"),
        ({"phase": Phase.FAILED, "reason": "Odd"}, "it failed (Odd)"),
        ({"phase": Phase.FAILED, "reason": "Odd", "exit": Exit(code=3)}, "it failed (Odd)"),
        ({"phase": Phase.FAILED, "exit": Exit(code=3)}, "it ended with code 3"),
        ({"phase": Phase.SUCCEEDED}, "it ended"),
        ({"phase": Phase.SUCCEEDED, "message": "bye"}, "it ended: bye"),
        ({"terminating": True}, "it was deleted by someone else"),
        ({"terminating": True, "reason": "Evicted"}, "it was evicted"),
    ],
)
def test_a_lost_worker_ends_the_attempt_of_an_ordinary_job(given: dict[str, object], words: str) -> None:
    job = a_job()
    lost = a_worker(1, **given)  # type: ignore[arg-type]
    plan = reconcile(job, running(job, workers=(a_worker(0), lost)), at(20))
    assert plan.status.attempts[-1].outcome == "Failed"
    assert plan.status.cause is not None
    assert plan.status.cause.summary == f"pi-worker-1 was lost: {words}"
    after = reconcile(job, running(job, status=plan.status, workers=(a_worker(0), lost)), at(30))
    assert after.actions[0] == DeleteLauncher(1)
    assert (DeleteWorker(1) in after.actions) == (not lost.terminating)


DISRUPTIONS = [
    ("PreemptionByScheduler", "the scheduler preempted it for a pod of higher priority"),
    ("DeletionByTaintManager", "its node got a taint that it does not tolerate"),
    ("EvictionByEvictionAPI", "it was evicted, as when its node is drained"),
    ("DeletionByPodGC", "its node is gone"),
    ("TerminationByKubelet", "its node ended it"),
    ("OfTomorrow", "it failed (OfTomorrow)"),
]


@for_every_row(DISRUPTIONS)
def test_a_disruption_is_named_and_costs_no_retry(reason: str, words: str) -> None:
    job, before = a_job(backoff_limit=1), failed_attempts(1)
    gone = a_worker(1, terminating=True, reason=reason, disrupted=True, message="it is going away from node n1")
    seen = running(job, status=launched(2, before=before), workers=(a_worker(0), gone))
    plan = reconcile(job, replace(seen, launcher=a_launcher(attempt=2)), at(20))
    assert [a.outcome for a in plan.status.attempts] == ["Failed", "Disrupted"]
    assert plan.status.launcher.failed == 1
    restarting = plan.status.condition(names.RESTARTING)
    assert restarting is not None
    assert restarting.message == (
        f"attempt 2 was disrupted: pi-worker-1 was lost: {words}; starting again in 10 s, which costs no retry"
    )


def test_a_launcher_that_is_drained_costs_no_retry_but_its_own_failure_does() -> None:
    job = a_job(backoff_limit=1)
    drained = a_launcher(Phase.FAILED, code=143, attempt=2, reason="EvictionByEvictionAPI", disrupted=True)
    seen = running(job, status=launched(2, before=failed_attempts(1)), launcher=drained)
    assert reconcile(job, seen, at(20)).status.is_true(names.RESTARTING)
    own = replace(drained, disrupted=False, reason="")
    failed = reconcile(job, replace(seen, launcher=own), at(20)).status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == names.REASON_BACKOFF


def test_a_launcher_that_was_deleted_is_lost_and_its_code_says_nothing() -> None:
    job = a_job()
    seen = running(job, launcher=a_launcher(Phase.FAILED, code=1, terminating=True), ranks_report=False)
    [attempt] = reconcile(job, seen, at(20)).status.attempts
    assert attempt.outcome == "Failed"
    assert attempt.cause is not None
    assert (attempt.cause.summary, attempt.cause.exit_code) == (
        "pi-launcher was lost: it was deleted by someone else",
        None,
    )


@pytest.mark.parametrize("given", [{}, {"disrupted": True, "reason": "PreemptionByScheduler"}], ids=["hand", "cluster"])
def test_a_launcher_that_goes_while_it_waits_for_its_workers_has_not_started(given: dict[str, Any]) -> None:
    job = a_job(backoff_limit=0)
    status = a_status(attempts=(Attempt(number=1, started=at(1), workers=2),))
    seen = running(job, status=status, launcher=a_launcher(Phase.FAILED, terminating=True, **given))
    after = reconcile(job, seen, at(20)).status
    assert [attempt.outcome for attempt in after.attempts] == ["NotStarted"]
    assert not after.finished


def test_disruptions_in_a_row_wait_longer_each_time() -> None:
    job = a_job()
    disrupted = tuple(Attempt(number=n, outcome="Disrupted") for n in (2, 3))
    gone = a_worker(1, terminating=True, disrupted=True)
    for before, seconds in ((disrupted, 40), ((*disrupted, Attempt(number=4, outcome="Failed")), 10)):
        status = launched(5, before=(*failed_attempts(1), *before))
        seen = running(job, status=status, workers=(a_worker(0), gone), launcher=a_launcher(attempt=5))
        assert reconcile(job, seen, at(20)).status.retry_at == at(20 + seconds)


def test_a_worker_that_vanished_ends_the_attempt_and_is_made_anew() -> None:
    job = a_job()
    plan = reconcile(job, running(job, workers=workers(1)), at(20))
    assert plan.status.cause is not None
    assert plan.status.cause.summary == "pi-worker-1 was lost: it vanished"
    after = reconcile(job, running(job, status=plan.status, workers=workers(1)), at(20))
    assert after.actions[0] == DeleteLauncher(1)
    assert after.actions[-1] == CreateWorker(1)


@pytest.mark.parametrize(
    ("lost", "verdict"),
    [
        (a_worker(1, Phase.FAILED, reason="Evicted"), names.REASON_EVICTED),
        (a_worker(1, Phase.FAILED, reason="HostLost"), names.REASON_HOST_LOST),
        (a_worker(1, terminating=True, reason="Evicted"), names.REASON_EVICTED),
        (a_worker(1, terminating=True), names.REASON_HOST_LOST),
        (a_worker(1, terminating=True, reason="PreemptionByScheduler", disrupted=True), names.REASON_EVICTED),
    ],
)
def test_without_retries_the_reason_says_that_a_host_was_lost(lost: Member, verdict: str) -> None:
    job = a_job(backoff_limit=0)
    failed = reconcile(job, running(job, workers=(a_worker(0), lost)), at(20)).status.condition(names.FAILED)
    assert failed is not None
    assert failed.reason == verdict


def test_a_lost_host_is_worth_another_try_whatever_the_exit_code() -> None:
    job = a_job(restart=R.EXIT_CODE)
    lost = a_worker(1, Phase.FAILED, reason="HostLost")
    seen = running(job, workers=(a_worker(0), lost), launcher=a_launcher(Phase.FAILED, code=1))
    assert reconcile(job, seen, at(20)).status.is_true(names.RESTARTING)


def test_older_attempts_keep_their_cause_but_not_its_lines() -> None:
    job = a_job()
    seen = running(job, launcher=a_launcher(Phase.FAILED, code=3), launcher_lines=("boom",))
    verdict = reconcile(job, seen, at(20)).status
    assert verdict.attempts[0].cause is not None
    assert verdict.attempts[0].cause.last_lines == ("boom",)
    retried = reconcile(job, running(job, status=verdict, launcher=None), at(60)).status
    assert retried.attempts[0].cause is not None
    assert retried.attempts[0].cause.last_lines == ()
    assert "boom" in retried.attempts[0].cause.summary


BACK = timedelta(hours=2)  # how far a clock is put back


@pytest.mark.parametrize("keeps", [True, False])
def test_a_clock_that_was_put_back_does_not_make_the_next_attempt_wait_for_it(keeps: bool) -> None:
    job = a_job(backoff_limit=3)
    status = replace(a_status(), attempts=failed_attempts(2), retry_at=at(20) + BACK)
    plan = reconcile(job, Observed(status=status, workers=workers(2), keeps_idle_members=keeps), at(0))
    assert plan.status.retry_at == at(0) + delay(2)
    assert plan.look_again_in == delay(2)
    status = replace(status, retry_at=at(20))
    assert reconcile(job, Observed(status=status, workers=workers(2)), at(0)).status.retry_at == at(20)


def test_a_launcher_that_is_missing_is_missed_although_the_clock_was_put_back() -> None:
    job = a_job(backoff_limit=3)
    missing = running(job, status=launched(1), launcher=None)
    began = missing.status.attempts[-1].started
    assert began is not None
    assert reconcile(job, missing, began).status.attempts[-1].outcome == ""  # it may not be visible yet
    assert reconcile(job, missing, began - BACK).status.attempts[-1].outcome == "Failed"


def test_a_dead_worker_is_replaced_although_the_clock_was_put_back() -> None:
    job = a_job(backoff_limit=3)
    status = replace(a_status(), attempts=failed_attempts(1), retry_at=at(10))
    dead = a_worker(1, Phase.FAILED, finished_at=at(5) + BACK)
    plan = reconcile(job, Observed(status=status, workers=(a_worker(0), dead)), at(0))
    assert DeleteWorker(1) in plan.actions


def test_a_launcher_whose_host_was_lost_is_not_judged_by_how_it_was_killed() -> None:
    job = a_job(backoff_limit=0, restart=R.EXIT_CODE)
    killed = a_launcher(
        Phase.FAILED, code=137, reason=names.REASON_HOST_LOST, message="it gave no sign of life", finished_at=at(9)
    )
    ranks = (a_rank(0, code=143, finished_at=at(9)), a_rank(1, code=137, finished_at=at(8)))
    for seen in (running(job, launcher=killed), running(job, launcher=killed, ranks=ranks)):
        status = reconcile(job, seen, at(10)).status
        failed, cause = status.condition(names.FAILED), status.cause
        assert failed is not None
        assert cause is not None
        assert failed.reason == names.REASON_HOST_LOST
        assert (cause.summary, cause.hint) == ("pi-launcher was lost: it gave no sign of life", None)


# -- places that are lost before anything runs -----------------------------------------------------------
LOST = "node1: nothing listens on port 22"


def test_a_job_whose_place_is_lost_before_it_ran_gives_all_back_and_asks_for_another() -> None:
    job = a_job()
    seen = Observed(status=a_status(), workers=workers(2), keeps_idle_members=False, prepared=True, place_lost=LOST)
    placed_anew = reconcile(job, seen, at(20))
    queued = placed_anew.status.condition(names.QUEUED)
    assert queued is not None
    assert (queued.reason, queued.message) == (names.REASON_NO_HOSTS, f"placed anew: {LOST}")
    assert placed_anew.status.retry_at == at(22)
    leaving = reconcile(job, replace(seen, status=placed_anew.status), at(20))
    assert leaving.actions == (DeleteWorker(0), DeleteWorker(1))
    gone = replace(seen, status=leaving.status, workers=(), place_lost="")
    assert reconcile(job, gone, at(21)).actions == (Dismantle(),)
    away = Admission(admitted=False, position=1, reason=LOST, about=names.REASON_NO_HOSTS)
    waiting = reconcile(job, replace(gone, prepared=False, admission=away), at(22)).status
    assert waiting.queue is not None
    assert waiting.queue.reason == LOST


def test_a_job_that_runs_keeps_its_places() -> None:
    job = a_job()
    seen = running(job, keeps_idle_members=False, place_lost=LOST)
    assert reconcile(job, seen, at(20)).status.retry_at is None


def test_a_launcher_whose_host_is_lost_before_it_began_costs_no_retry_and_the_reason_is_told() -> None:
    job = a_job()
    launcher = replace(a_launcher(Phase.FAILED), exit=None, reason=names.REASON_HOST_LOST, message=LOST)
    seen = running(job, launcher=launcher, keeps_idle_members=False)
    plan = reconcile(job, seen, at(20))
    status = plan.status
    assert [attempt.outcome for attempt in status.attempts] == ["NotStarted"]
    assert status.cause is not None
    assert LOST in status.cause.summary
    assert status.retry_at == at(30)
    told = [(e.reason, e.severity.value, e.message) for e in plan.events]
    assert told == [(names.REASON_RESTARTING, "Warning", f"not started: pi-launcher was lost: {LOST}")]


@pytest.mark.parametrize("reason", [names.REASON_NO_HOSTS, names.REASON_TROUBLE])
def test_a_deadline_that_ends_a_wait_says_what_was_waited_for(reason: str) -> None:
    job = a_job(active_deadline_seconds=60)
    waits = conditions.put((), names.QUEUED, True, reason=reason, message=LOST, at=at(10))
    status = replace(a_status(attempts=(), retry_at=at(10)), conditions=waits)
    ended = reconcile(job, Observed(status=status, keeps_idle_members=False), at(3600)).status
    assert ended.cause is not None
    assert ended.cause.summary == f"it had not started after its deadline of 60 s: {LOST}"


def test_who_was_never_made_because_of_trouble_is_told_with_the_trouble() -> None:
    job = a_job()
    waits = conditions.put((), names.QUEUED, True, reason=names.REASON_TROUBLE, message="no space left", at=at(10))
    status = replace(a_status(), conditions=waits)
    ended = reconcile(job, Observed(status=status, keeps_idle_members=False), at(3600)).status
    assert ended.cause is not None
    assert ended.cause.summary == "pi-worker-0 was not ready after 5 min: no space left"
