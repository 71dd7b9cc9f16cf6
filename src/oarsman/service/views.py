"""What engines know, as what goes over the wire. Pure: nothing here asks anybody anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oarsman import names
from oarsman.backends import base as backend
from oarsman.job import state as domain
from oarsman.job.job import Job
from oarsman.job.remarks import remarks
from oarsman.job.sweep import sweep_of
from oarsman.manifest import to_yaml
from oarsman.plan import placement
from oarsman.plan.capacity.gang import asked_by, needed_by, priority_of
from oarsman.service import models
from oarsman.service.documents import as_given, completed
from oarsman.status import words
from oarsman.status.codec import to_wire
from oarsman.store.logs import stamp
from oarsman.text.secrets import hidden

_MOST_MACHINES = 4  # named in a row
_MOST_RANKS = 16_384  # rows of the rank table; beyond it nobody reads them


# -- jobs -------------------------------------------------------------------------------------------
def summary(record: backend.JobRecord) -> models.JobSummary:
    """A row of the jobs page. Cheap: ten thousand of them are made when a server starts."""
    job, status = record.job, record.status
    asked, attempt, scheduling = asked_by(job), status.attempt, job.run_policy.scheduling
    return models.JobSummary(
        key=job.key,
        name=job.name,
        namespace=job.namespace,
        uid=job.uid,
        engine=record.engine,
        state=words.state(status, deleting=record.deleting, stop_requested=record.stop_requested),
        reason=words.reason(status),
        message=words.message(status),
        cause=status.cause.summary if status.cause is not None else "",
        owner=record.owner,
        description=hidden(job.annotation(names.ANNOTATION_DESCRIPTION)),
        sweep=sweep_of(job),
        api_version=job.api_version.value,
        implementation=job.implementation.value,
        queue=scheduling.queue if scheduling is not None else "",
        priority=priority_of(job),
        queue_position=status.queue.position if status.queue is not None else None,
        workers=job.workers,
        workers_ready=status.worker.ready,
        slots_per_worker=job.slots_per_worker,
        ranks=ranks_asked_for(job),
        slots=job.slots,
        machines=_machines(status),
        total_replicas=job.total_replicas,
        cpus=float(asked.cpus),
        memory_bytes=int(asked.memory),
        gpus=asked.gpus,
        attempt=attempt.number if attempt is not None else 0,
        run=record.run,
        created=record.created_at,
        started=status.start_time,
        ended=status.completion_time,
        retry_at=status.retry_at,
        revision=record.revision,
    )


def ranks_asked_for(job: Job) -> int | None:
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


def waiting(record: backend.JobRecord) -> models.QueueEntry | None:
    """Its place in the queue, for a job that has one."""
    place = record.status.queue
    if place is None or record.status.finished or record.deleting:
        return None
    queued = record.status.condition(names.QUEUED)
    return models.QueueEntry(
        key=record.job.key,
        position=place.position,
        priority=priority_of(record.job),
        reason=place.reason,
        since=queued.since if queued is not None else record.created_at,
        owner=record.owner,
        wanted=models.AmountsView.of(backend.Amounts.of(needed_by(record.job))),
    )


class Texts:
    """Of the job seen last: whoever watches one sees it change, but seldom what was asked for."""

    def __init__(self) -> None:
        self._job: Job | None = None
        self._texts = "", ""

    def of(self, job: Job) -> tuple[str, str]:
        """As given, and completed."""
        if job is not self._job:
            self._job, self._texts = job, (to_yaml([as_given(job.document)]), to_yaml([completed(job)]))
        return self._texts


def whole_job(record: backend.JobRecord, texts: Texts | None = None) -> models.JobView:
    status = record.status
    given, complete = (texts or Texts()).of(record.job)
    return models.JobView(
        summary=summary(record),
        conditions=[models.ConditionView.of(found) for found in status.conditions],
        timeline=_timeline(status),
        attempts=[models.AttemptView.of(found) for found in status.attempts],
        cause=models.CauseView.of(status.cause) if status.cause is not None else None,
        ranks=list(ranks(record)),
        machines=dict(status.machines),
        manifest=given,
        completed=complete,
        document=document(record),
        folder=str(record.folder) if record.folder is not None else None,
        mpi=record.mpi,
        limits=record.limits,
        warnings=remarks(record.job),
    )


def document(record: backend.JobRecord) -> dict[str, Any]:
    """The MPIJob with its status, as Kubernetes would print it."""
    job, given = record.job, dict(record.job.document)
    metadata = {
        **dict(given.get("metadata") or {}),
        "name": job.name,
        "namespace": job.namespace,
        "uid": job.uid,
        "generation": job.generation,
        "resourceVersion": str(record.revision),
        "creationTimestamp": stamp(record.created_at),
    }
    head = {"apiVersion": job.api_version.value, "kind": names.KIND, "metadata": metadata}
    body = {name: value for name, value in given.items() if name not in (*head, "status")}
    return {**head, **body, "status": to_wire(record.status)}


def _machines(status: domain.Status) -> str:
    found = list(dict.fromkeys(status.machines.values()))
    more = f" +{len(found) - _MOST_MACHINES}" if len(found) > _MOST_MACHINES else ""
    return ", ".join(found[:_MOST_MACHINES]) + more


def _timeline(status: domain.Status) -> list[models.Step]:
    """In the order of time; of a job that waits, also since when."""
    steps = dict(status.timeline)
    queued = status.condition(names.QUEUED)
    if queued is not None and queued.status:
        steps.setdefault("queued", queued.since)
    return [models.Step(name=name, time=time) for name, time in sorted(steps.items(), key=lambda step: step[1])]


def ranks(record: backend.JobRecord) -> Iterator[models.RankView]:
    """Every rank that was seen or is planned. What is not known of one is left empty, not guessed."""
    job, status = record.job, record.status
    seen = status.placement
    planned = dict(enumerate(placement.planned(job, status.machines)))
    if seen and job.launch is not None and job.launch.in_shell:  # the plan is that of a script's first launch
        planned = {rank: host for rank, host in planned.items() if seen.get(rank) == host}
    culprit, code = (status.cause.rank, status.cause.exit_code) if status.cause is not None else (None, None)
    state = "exited" if status.finished else "running" if status.phase == names.RUNNING else ""
    well = status.is_true(names.SUCCEEDED)
    for rank in range(min(max((*planned, *seen), default=-1) + 1, _MOST_RANKS)):
        meant = planned.get(rank)
        yield models.RankView(
            rank=rank,
            host=seen.get(rank, meant or ""),
            planned_host=meant,
            state=state if rank in seen else "",
            exit_code=0 if well else code if rank == culprit else None,
        )


# -- what a job said and did --------------------------------------------------------------------------
def log_page(page: backend.LogPage) -> models.LogPageView:
    lines = [_log_line(placed.line, placed.after) for placed in page.lines]
    live = None if page.live is None else [_log_line(line, page.after) for line in page.live]
    return models.LogPageView(lines=lines, before=page.before, after=page.after, attempt=page.attempt, live=live)


def _log_line(line: backend.LogLine, after: str) -> models.LogLineView:
    return models.LogLineView(
        after=after,
        time=line.time,
        rank=line.rank,
        host=line.host,
        stream="err" if line.stream == "err" else "out",
        text=encodable(line.text),
    )


def encodable(text: str) -> str:
    """Without halves of characters, which JSON cannot carry; a program that writes bytes can produce them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def log_query(only: models.LogFilter) -> backend.LogQuery:
    return backend.LogQuery(
        ranks=tuple(only.ranks),
        workers=tuple(only.workers),
        launcher_only=only.launcher,
        stream=only.stream,
        search=only.search or None,
        attempt=only.attempt,
    )


# -- before it runs -----------------------------------------------------------------------------------
def hosts_with_ranks(ranks: Mapping[int, str]) -> dict[str, list[int]]:
    placed: dict[str, list[int]] = {}
    for rank, name in ranks.items():
        placed.setdefault(name, []).append(rank)
    return placed


# -- the place -----------------------------------------------------------------------------------------
def discreet(host: models.HostView, mine: set[str]) -> models.HostView:
    """What others hold stays visible as an amount, whose it is does not."""
    holdings = [held if held.key in mine else held.model_copy(update={"key": ""}) for held in host.holdings]
    return host.model_copy(update={"holdings": holdings})


def summed(found: Sequence[models.AmountsView]) -> models.AmountsView:
    return models.AmountsView(
        cpus=sum(one.cpus for one in found),
        memory_bytes=sum(one.memory_bytes for one in found),
        gpus=sum(one.gpus for one in found),
    )
