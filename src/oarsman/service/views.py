"""What engines know, as what goes over the wire. Pure: nothing here asks anybody anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oarsman import names
from oarsman.backends import base as backend
from oarsman.engines.contract import UsageSample
from oarsman.errors import Problem
from oarsman.job import state as domain
from oarsman.job.job import Job as DomainJob
from oarsman.job.sweep import sweep_of
from oarsman.manifest import to_yaml
from oarsman.plan import placement
from oarsman.plan.capacity.gang import asked_by, needed_by, priority_of
from oarsman.service.documents import as_given, completed
from oarsman.service.models import (
    AmountsView,
    AttemptView,
    CauseView,
    ConditionView,
    EventView,
    FindingView,
    FitView,
    HoldingView,
    HostView,
    Job,
    JobSummary,
    LogFilter,
    LogLineView,
    LogPageView,
    ProblemView,
    QueueEntry,
    RankView,
    Step,
    UsagePoint,
)

QUEUED_STEP = "queued"
_MOST_RANKS = 16_384  # rows of the rank table; beyond it nobody reads them


# -- jobs -------------------------------------------------------------------------------------------
def summary(record: backend.JobRecord) -> JobSummary:
    """A row of the jobs page. Cheap: ten thousand of them are made when a server starts."""
    job, status = record.job, record.status
    asked = asked_by(job)
    condition = status.condition(status.phase)
    attempt = status.attempt
    return JobSummary(
        key=job.key,
        name=job.name,
        namespace=job.namespace,
        uid=job.uid,
        engine=record.engine,
        state=state(record),
        reason=condition.reason if condition is not None else "",
        message=_message(status, condition),
        cause=status.cause.summary if status.cause is not None else "",
        owner=record.owner,
        description=job.annotation(names.ANNOTATION_DESCRIPTION),
        sweep=sweep_of(job),
        api_version=job.api_version.value,
        implementation=job.implementation.value,
        queue=_queue(job),
        priority=priority_of(job),
        queue_position=status.queue.position if status.queue is not None else None,
        workers=job.workers,
        workers_ready=status.worker.ready,
        slots_per_worker=job.slots_per_worker,
        ranks=ranks_asked_for(job),
        total_replicas=job.total_replicas,
        cpus=float(asked.cpus),
        memory_bytes=int(asked.memory),
        gpus=asked.gpus,
        attempt=attempt.number if attempt is not None else 0,
        created=record.created_at,
        started=status.start_time,
        ended=status.completion_time,
        revision=record.revision,
    )


def state(record: backend.JobRecord) -> str:
    """One word; what the user has just asked for comes before what still is."""
    if record.deleting:
        return "Deleting"
    if record.stop_requested and not record.status.finished:
        return "Stopping"
    return "Pending" if record.status.phase == names.CREATED else record.status.phase


def _message(status: domain.Status, condition: domain.Condition | None) -> str:
    if status.queue is not None:
        return status.queue.reason
    return condition.message if condition is not None else ""


def ranks_asked_for(job: DomainJob) -> int | None:
    """How many the launch line starts; None where only the launcher knows."""
    line = job.launch
    if line is None:
        return None
    if line.processes is not None:
        return line.processes
    if line.per_socket or line.unclear or line.elastic or line.hosts or line.contexts != 1:
        return None
    hosts = job.workers + 1 if job.run_launcher_as_worker or not job.workers else job.workers
    return hosts * (line.per_node or job.slots_per_worker)


def _queue(job: DomainJob) -> str:
    scheduling = job.run_policy.scheduling
    return scheduling.queue if scheduling is not None else ""


def waiting(record: backend.JobRecord) -> QueueEntry | None:
    """Its place in the queue, for a job that has one."""
    place = record.status.queue
    if place is None or record.status.finished or record.deleting:
        return None
    queued = record.status.condition(names.QUEUED)
    wanted = needed_by(record.job)
    return QueueEntry(
        key=record.job.key,
        position=place.position,
        priority=priority_of(record.job),
        reason=place.reason,
        since=queued.last_transition_time if queued is not None else record.created_at,
        owner=record.owner,
        wanted=AmountsView(cpus=float(wanted.cpus), memory_bytes=int(wanted.memory), gpus=wanted.gpus),
    )


def whole_job(record: backend.JobRecord) -> Job:
    status = record.status
    return Job(
        summary=summary(record),
        conditions=[_condition(found) for found in status.conditions],
        timeline=_timeline(status),
        attempts=[_attempt(found) for found in status.attempts],
        cause=cause(status.cause),
        ranks=list(ranks(record)),
        machines=dict(status.machines),
        manifest=to_yaml([as_given(record.job.document)]),
        completed=to_yaml([completed(record.job)]),
        folder=str(record.folder) if record.folder is not None else None,
    )


def cause(found: domain.Cause | None) -> CauseView | None:
    if found is None:
        return None
    return CauseView(
        summary=found.summary,
        rank=found.rank,
        host=found.host,
        exit_code=found.exit_code,
        signal=found.signal,
        memory_limit_hit=found.memory_limit_hit,
        last_lines=found.last_lines,
        hint=found.hint,
    )


def _condition(found: domain.Condition) -> ConditionView:
    return ConditionView(
        type=found.type,
        status=found.status,
        reason=found.reason,
        message=found.message,
        since=found.last_transition_time,
    )


def _attempt(found: domain.Attempt) -> AttemptView:
    return AttemptView(
        number=found.number,
        started=found.started_at,
        ended=found.finished_at,
        outcome=found.outcome,
        workers=found.workers,
        cause=cause(found.cause),
    )


def _timeline(status: domain.Status) -> list[Step]:
    """In the order of time; of a job that waits, also since when."""
    steps = dict(status.timeline)
    queued = status.condition(names.QUEUED)
    if queued is not None and queued.status:
        steps.setdefault(QUEUED_STEP, queued.last_transition_time)
    return [Step(name=name, time=time) for name, time in sorted(steps.items(), key=lambda step: step[1])]


def ranks(record: backend.JobRecord) -> Iterator[RankView]:
    """Every rank that was seen or is planned. What is not known of one is left empty, not guessed."""
    job, status = record.job, record.status
    seen = status.placement
    planned = planned_ranks(job, status.machines)
    culprit = status.cause.rank if status.cause is not None else None
    for rank in range(min(max(len(planned), max(seen, default=-1) + 1), _MOST_RANKS)):
        meant = planned[rank] if rank < len(planned) else None
        yield RankView(
            rank=rank,
            host=seen.get(rank, meant or ""),
            planned_host=meant,
            state=_rank_state(status, rank in seen),
            exit_code=_rank_exit(status, rank, culprit),
        )


def planned_ranks(job: DomainJob, machines: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Host of each rank, where the launch line says enough to know."""
    return placement.planned(job, machines)


def _rank_state(status: domain.Status, seen: bool) -> str:
    if status.finished:
        return "exited" if seen else ""
    return "running" if seen and status.is_true(names.RUNNING) else ""


def _rank_exit(status: domain.Status, rank: int, culprit: int | None) -> int | None:
    if status.is_true(names.SUCCEEDED):
        return 0
    return status.cause.exit_code if status.cause is not None and rank == culprit else None


# -- what a job said and did --------------------------------------------------------------------------
def event(found: backend.EventRecord) -> EventView:
    return EventView(
        time=found.time,
        first_time=found.first_time,
        severity=found.severity,
        reason=found.reason,
        message=found.message,
        count=found.count,
    )


def log_page(page: backend.LogPage) -> LogPageView:
    return LogPageView(
        lines=[_line(placed) for placed in page.lines], before=page.before, after=page.after, attempt=page.attempt
    )


def _line(placed: backend.PlacedLine) -> LogLineView:
    line = placed.line
    return LogLineView(
        after=placed.after,
        time=line.time,
        rank=line.rank,
        host=line.host,
        stream="err" if line.stream == "err" else "out",
        text=encodable(line.text),
    )


def encodable(text: str) -> str:
    """Without halves of characters, which JSON cannot carry; a program that writes bytes can produce them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def log_query(only: LogFilter) -> backend.LogQuery:
    return backend.LogQuery(
        ranks=tuple(only.ranks),
        workers=tuple(only.workers),
        launcher_only=only.launcher,
        stream=only.stream,
        search=only.search or None,
        attempt=only.attempt,
    )


def usage(sample: UsageSample) -> UsagePoint:
    return UsagePoint(
        time=sample.time,
        host=sample.host,
        cpu_percent=sample.cpu_percent,
        memory_bytes=sample.memory_bytes,
        received_bytes_per_second=sample.received_bytes_per_second,
        sent_bytes_per_second=sample.sent_bytes_per_second,
        gpu_percent=sample.gpu_percent,
        gpu_memory_bytes=sample.gpu_memory_bytes,
    )


# -- the place ----------------------------------------------------------------------------------------
def amounts(found: backend.Amounts) -> AmountsView:
    return AmountsView(cpus=found.cpus, memory_bytes=found.memory_bytes, gpus=found.gpus)


def host(found: backend.HostRecord) -> HostView:
    return HostView(
        name=found.name,
        state=found.state,
        message=found.message,
        total=amounts(found.total),
        held=amounts(found.held),
        used=amounts(found.used) if found.used is not None else None,
        holdings=[HoldingView(key=held.key, amounts=amounts(held.amounts)) for held in found.holdings],
        checked=found.checked_at,
        findings=[FindingView(level=one.level, message=one.message, hint=one.hint) for one in found.findings],
    )


def fit(found: backend.Fit) -> FitView:
    return FitView(
        now=found.now,
        ever=found.ever,
        reason=found.reason,
        wanted=amounts(found.wanted),
        free=amounts(found.free),
        total=amounts(found.total),
        machines=dict(found.machines),
    )


# -- before it runs -----------------------------------------------------------------------------------
def problem(found: Problem) -> ProblemView:
    return ProblemView(line=found.line, column=found.column, field=found.field, message=found.message, hint=found.hint)


def hosts_with_ranks(ranks: Mapping[int, str]) -> dict[str, list[int]]:
    placed: dict[str, list[int]] = {}
    for rank, name in ranks.items():
        placed.setdefault(name, []).append(rank)
    return placed
