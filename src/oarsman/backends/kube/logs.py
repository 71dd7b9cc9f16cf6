"""What a job on a cluster wrote: its launcher's log, read so that it looks as it would on one machine.

The launcher's container has the words of every rank; mpirun's tags say whose they are. The containers of workers
have words of their own (their sshd), which are shown to those who ask for a worker.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

from oarsman.backends.base import JobRecord, LogLine, LogQuery
from oarsman.backends.kube import follow, lookups, records
from oarsman.backends.kube.log_lines import ContainerLogReader
from oarsman.backends.kube.pod_log import BEGINNING, PodLog, Spot
from oarsman.engines.kube.client import Kube, NotFound, resources
from oarsman.errors import NotFoundError
from oarsman.job.job import Job
from oarsman.job.state import Attempt
from oarsman.portal import running
from oarsman.status import mpirun_words
from oarsman.store.logs import stamp
from oarsman.text.sentence import Text

Batch = list[LogLine]


def read(kube: Kube, record: JobRecord, query: LogQuery) -> AsyncGenerator[Batch]:
    """Lines in batches, some of which may be empty: what is there now, or all until the attempt is over."""
    return _followed(kube, record, query) if query.follow else _present(kube, record, query)


# -- what is there now -------------------------------------------------------------------------------
async def _present(kube: Kube, record: JobRecord, query: LogQuery) -> AsyncGenerator[Batch]:
    launcher = await launcher_of(kube, record.job, query.attempt)
    if launcher is None and not query.workers:
        if (lines := kept(record, query.attempt)) is not None:
            yield lines
            raise gone(record, lines)
        return
    reader = ContainerLogReader(record, query)
    at_once = query.tail is None and not query.workers
    held: deque[LogLine] = deque(maxlen=query.tail)
    if launcher is not None:
        log = log_of_launcher(kube, record.job, launcher)
        async for written in log.read(tail=query.tail if reader.takes_all else None, since=query.since):
            batch = reader.read(written)
            if at_once:
                yield batch
            else:
                held.extend(batch)
        held.extend(reader.rest())
    own: Batch = []
    for index in query.workers:
        async for written in log_of_worker(kube, record.job, index).read(since=query.since):
            own += reader.of_worker(record.job.worker_host(index), written)
    if query.workers:
        held = deque(sorted([*held, *own], key=lambda line: line.stamp), maxlen=query.tail)
    yield list(held)
    if not query.workers:
        reader.check()


def kept(record: JobRecord, number: int | None) -> Batch | None:
    """Of a job whose pod is gone: what its failure left in the status is all there is. None: there was no such pod."""
    attempts = [a for a in record.status.attempts if number in (None, a.number)]
    return _last_lines(record, attempts[-1]) if attempts else None


def gone(record: JobRecord, lines: Batch) -> NotFoundError:
    key = record.job.key
    message = Text("the launcher pod of {key} is gone, and its log with it", key=key)
    if lines:
        template = Text(
            "the launcher pod of {key} is gone, and its log with it; its status kept the last {count} lines"
        )
        message = Text(template, key=key, count=len(lines))
    hint = Text("the pod was deleted; to keep logs, write them to a volume")
    return NotFoundError(message, hint=hint)


def _last_lines(record: JobRecord, attempt: Attempt) -> Batch:
    newest = attempt is record.status.attempts[-1]
    cause = attempt.cause or (record.status.cause if newest else None)
    when = attempt.ended or record.status.completion_time or record.created_at
    if cause is None:
        return []
    rank, host = cause.rank, cause.host or record.job.launcher_host
    if mpirun_words.blamed(cause.last_lines) is not None:  # they are the launcher's, perhaps with those of other ranks
        rank, host = None, record.job.launcher_host
    return [LogLine(stamp(when), rank, host, "err", text) for text in cause.last_lines]


# -- as it comes -------------------------------------------------------------------------------------
async def _followed(kube: Kube, record: JobRecord, query: LogQuery) -> AsyncGenerator[Batch]:
    job = record.job
    number = query.attempt or await newest_attempt(kube, record)
    launcher = await begun(kube, record, number)
    record = await as_it_is_now(kube, record)
    if launcher is None:
        if (lines := kept(record, number)) is not None:
            yield lines
            raise gone(record, lines)
        return
    reader = ContainerLogReader(record, query)
    log = log_of_launcher(kube, job, launcher)
    tail = query.tail
    if tail is not None and not reader.takes_all:
        found: deque[LogLine] = deque(maxlen=tail)
        async for written in log.read(since=query.since):
            found.extend(reader.read(written))
        yield list(found)
        tail = None
    beside: Batch = []  # workers' own words, gathered while the launcher speaks

    async def gather(index: int) -> None:
        async for written in log_of_worker(kube, job, index).read(since=query.since, follow=True):
            beside.extend(reader.of_worker(job.worker_host(index), written))

    async with running(*map(gather, query.workers)):
        async for written in log.read(tail=tail, since=query.since, follow=True):
            batch = [*beside, *reader.read(written)]
            beside.clear()
            yield batch
            reader.check(over=False)
        yield [*beside, *reader.rest()]
    if not query.workers:
        reader.check()


async def begun(kube: Kube, record: JobRecord, number: int) -> lookups.Pod | None:
    """The launcher pod of the attempt, as soon as it has a log; None: the attempt is over and there is no pod."""
    async with running(_started(kube, record.job, number), _over(kube, record, number)) as tasks:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task in done and (launcher := task.result()) is not None:
                return launcher
    return await launcher_of(kube, record.job, number)  # over, perhaps with a log that we have not seen begin


async def _started(kube: Kube, job: Job, number: int) -> lookups.Pod | None:
    """The launcher pod of the attempt, once its program was started or cannot be any more."""
    container = job.launcher.container.name
    states = follow.objects(kube, resources.PODS, job.namespace, labels=lookups.selector(job, "launcher"))
    async with aclosing(states):
        async for found in states:
            pod = lookups.newest(found.values(), number)
            if pod is not None and (lookups.started(pod, container) or lookups.ended(pod, container)):
                return pod
    return None


async def _over(kube: Kube, record: JobRecord, number: int) -> None:
    """Returns when the attempt, or the job, has ended."""
    job = record.job
    states = follow.one(kube, resources.MPIJOBS, job.namespace, job.name)
    async with aclosing(states):
        async for found in states:
            status = records.record(found).status
            ended = any(a.number == number and a.ended is not None for a in status.attempts)
            if ended or status.finished:
                return


# -- where it is -------------------------------------------------------------------------------------
async def launcher_of(kube: Kube, job: Job, attempt: int | None) -> lookups.Pod | None:
    found = await kube.list(resources.PODS, job.namespace, labels=lookups.selector(job, "launcher"))
    return lookups.newest(found, attempt)


async def newest_attempt(kube: Kube, record: JobRecord) -> int:
    newest = await launcher_of(kube, record.job, None)
    known = [a.number for a in record.status.attempts]
    return max([*known, lookups.attempt_of(newest) if newest is not None else 1])


async def as_it_is_now(kube: Kube, record: JobRecord) -> JobRecord:
    """As the job is now: where its ranks are may be known by now."""
    try:
        return records.record(await kube.get(resources.MPIJOBS, record.job.name, record.job.namespace))
    except NotFound:
        return record


def log_of_launcher(kube: Kube, job: Job, pod: lookups.Pod, after: Spot = BEGINNING) -> PodLog:
    return PodLog(kube, job.namespace, pod["metadata"]["name"], job.launcher.container.name, after=after)


def log_of_worker(kube: Kube, job: Job, index: int, after: Spot = BEGINNING) -> PodLog:
    container = job.worker.container.name if job.worker is not None else ""
    return PodLog(kube, job.namespace, job.worker_host(index), container, after=after)
