"""Builders of jobs and sights for tests: say what matters, get the rest.

Times are seconds after `T0`, so that a table reads like a timetable.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from oarsman import names
from oarsman.job.job import Container, Job, RestartPolicy, Role, RunPolicy
from oarsman.job.launch import LaunchLine
from oarsman.job.observed import Exit, Member, Observed, Phase, RankReport
from oarsman.job.state import Attempt, Condition, Status

T0 = datetime(2026, 1, 1, tzinfo=UTC)
MPIRUN = LaunchLine(launcher="mpirun", path="mpirun", options=("-np", "2"), program=("./pi",), processes=2)
HOROVODRUN = LaunchLine(
    launcher="horovodrun",
    path="horovodrun",
    program=("python", "train.py"),
    min_processes=1,
    host_discovery_script="/etc/mpi/discover_hosts.sh",
)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def a_job(
    *,
    workers: int = 2,
    restart: RestartPolicy = RestartPolicy.ON_FAILURE,
    launch: LaunchLine | None = None,
    elastic: bool = False,
    generation: int = 1,
    as_worker: bool = False,
    **policy: Any,
) -> Job:
    """`policy` goes to the run policy: backoff_limit=2, suspend=True, ..."""
    container = Container(name="mpi", image="pi", command=("mpirun",))
    return Job(
        name="pi",
        uid="uid-1",
        generation=generation,
        created_at=T0,
        launcher=Role(containers=(container,), restart_policy=restart),
        worker=Role(containers=(container,), replicas=workers) if workers else None,
        run_policy=RunPolicy(**policy),
        run_launcher_as_worker=as_worker,
        launch=HOROVODRUN if elastic else launch,
    )


def a_worker(index: int = 0, phase: Phase = Phase.RUNNING, **given: Any) -> Member:
    given.setdefault("ready", phase is Phase.RUNNING)
    return Member(name=names.worker_name("pi", index), index=index, phase=phase, **given)


def workers(count: int, phase: Phase = Phase.RUNNING, **given: Any) -> tuple[Member, ...]:
    return tuple(a_worker(i, phase, **given) for i in range(count))


def a_launcher(phase: Phase = Phase.RUNNING, *, code: int | None = None, **given: Any) -> Member:
    if code is not None:
        signal = code - 128 if 128 < code < 192 else None
        given.setdefault("exit", Exit(code=code, signal=signal))
    return Member(name=names.launcher_name("pi"), phase=phase, **given)


def a_rank(rank: int, host: str | None = None, *, code: int | None = None, size: int = 2, **given: Any) -> RankReport:
    if code is not None:
        given.setdefault("exit", Exit(code=code, signal=code - 128 if 128 < code < 192 else None))
    return RankReport(rank=rank, host=host or names.worker_name("pi", rank), world_size=size, **given)


def a_condition(type_: str, status: bool = True, *, reason: str = "", when: float = 0) -> Condition:
    return Condition(
        type=type_,
        status=status,
        reason=reason or f"MPIJob{type_}",
        message="said before",
        last_update_time=at(when),
        since=at(when),
    )


def a_status(*, true: tuple[str, ...] = (names.CREATED,), started: float | None = 0, **given: Any) -> Status:
    conditions = tuple(a_condition(t) for t in true)
    start = None if started is None else at(started)
    return Status(conditions=conditions, start_time=start, observed_generation=1, **given)


def launched(number: int = 1, *, when: float = 1, workers: int = 2, before: tuple[Attempt, ...] = ()) -> Status:
    """The status of a job whose attempt `number` runs."""
    attempt = Attempt(number=number, started=at(when), workers=workers)
    return a_status(true=(names.CREATED, names.RUNNING), attempts=(*before, attempt))


def running(job: Job | None = None, **given: Any) -> Observed:
    """A job in full swing: two workers ready, the launcher running."""
    job = job or a_job()
    seen = Observed(
        status=launched(workers=job.workers),
        workers=workers(job.workers),
        launcher=a_launcher(),
        published_hosts=job.hosts,
    )
    return replace(seen, **given)


def hosts(*indices: int) -> tuple[str, ...]:
    return tuple(names.worker_name("pi", i) for i in indices)
