"""A door to jobs that exist in memory only: what is asked for happens at once, and whoever follows hears of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory_environments import MemoryEnvironments

from oarsman import names
from oarsman.backends.base import (
    EVERYTHING,
    Amounts,
    Batch,
    EventRecord,
    Fit,
    Holding,
    HostRecord,
    JobRecord,
    LogLine,
    LogPage,
    LogQuery,
    PlacedLine,
)
from oarsman.engines.contract import HostUsage, UsageSample
from oarsman.errors import ConflictError, NotFoundError, UserError
from oarsman.job.state import Attempt, Cause, Condition, QueuePlace, Status
from oarsman.manifest import builder, job_from_document
from oarsman.store.logs import stamp

T0 = datetime(2026, 1, 1, 8, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def a_document(name: str = "pi", **spec: Any) -> dict[str, Any]:
    shape = builder.Shape(processes=4, workers=2, cpus="1", memory="1Gi")
    document = builder.document(["./pi"], shape, builder.JobSettings(name=name))
    document["spec"].update(spec)
    return document


def a_status(*true: str, ended: datetime | None = None, **given: Any) -> Status:
    conditions = tuple(
        Condition(
            type=kind,
            status=True,
            reason=f"MPIJob{kind}",
            message=f"it is {kind.lower()}",
            last_update_time=at(1),
            since=at(1),
        )
        for kind in (names.CREATED, *true)
    )
    attempts = (Attempt(number=1, started=at(1), ended=ended),)
    return Status(conditions=conditions, start_time=at(1), completion_time=ended, attempts=attempts, **given)


RUNNING = a_status(names.RUNNING, placement={0: "pi-worker-0", 1: "pi-worker-0", 2: "pi-worker-1"})
SUCCEEDED = a_status(names.SUCCEEDED, ended=at(9), placement=dict.fromkeys(range(4), "pi-worker-0"))
FAILED = a_status(
    names.FAILED,
    ended=at(9),
    cause=Cause(
        summary="rank 1 on pi-worker-0 exited with code 3",
        rank=1,
        host="pi-worker-0",
        exit_code=3,
        last_lines=("no luck",),
        hint="look at rank 1",
    ),
)
QUEUED = replace(a_status(names.QUEUED), queue=QueuePlace(position=1, reason="needs 4 CPUs, 2 are free"))


class MemoryJobs:
    place = "local"
    home = "default"

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._records: dict[str, JobRecord] = {}
        self._gone: dict[str, int] = {}
        self._earlier: dict[str, JobRecord] = {}  # runs, by keys that end with their number
        self._revision = 0
        self._lines: dict[str, list[LogLine]] = {}
        self.submitted: list[dict[str, Any]] = []  # with what each job was submitted
        self.machines: Sequence[HostRecord] = ()
        self.environments = MemoryEnvironments()

    # -- for tests -----------------------------------------------------------------------------------
    def add(self, name: str = "pi", status: Status = RUNNING, owner: str = "ada", **given: Any) -> JobRecord:
        document = given.pop("document", None) or a_document(name)
        document["metadata"].update(given.pop("metadata", {}))
        again = f"-{self._revision}" if f"{given.get('namespace', self.home)}/{name}" in self._gone else ""
        job = replace(job_from_document(document), uid=f"uid-{name}{again}", created_at=given.get("created_at", T0))
        return self._put(
            JobRecord(
                **{
                    "job": job,
                    "status": status,
                    "created_at": T0,
                    "owner": owner,
                    "folder": Path("/"),
                    "engine": "local",
                    **given,
                }
            )
        )

    def _put(self, record: JobRecord) -> JobRecord:
        with self._change:
            self._revision += 1
            record = replace(record, revision=self._revision)
            self._records[record.job.key] = record
            self._gone.pop(record.job.key, None)
            self._change.notify_all()
        return record

    def record(self, key: str) -> JobRecord:
        if (found := self._earlier.get(key) or self._records.get(key)) is None:
            raise NotFoundError(f"there is no job {key}")
        return found

    def keep(self, key: str) -> None:
        """The job as it is becomes an earlier run, with what it said; another of its name can be added."""
        record = self._records.pop(key)
        self._earlier[f"{key}#{record.run}"] = record
        self._lines[f"{key}#{record.run}"] = self._lines.pop(key, [])

    def _asked(self, key: str, query: LogQuery) -> None:
        if query.uid not in ("", self.record(key).job.uid):
            raise NotFoundError(f"there is no job {key}")

    def records(self) -> Sequence[JobRecord]:
        return list(self._records.values())

    def become(self, key: str, status: Status) -> JobRecord:
        return self._put(replace(self.record(key), status=status))

    def vanish(self, key: str) -> None:
        with self._change:
            self._revision += 1
            del self._records[key]
            self._lines.pop(key, None)
            self._gone[key] = self._revision
            self._change.notify_all()

    def say(self, key: str, *texts: str, rank: int | None = 0, stream: str = "out") -> None:
        host = "pi-launcher" if rank is None else "pi-worker-0"
        with self._change:
            lines = self._lines.setdefault(key, [])
            lines += [LogLine(stamp(at(len(lines) + n)), rank, host, stream, text) for n, text in enumerate(texts)]
            self._change.notify_all()

    # -- what is wanted ------------------------------------------------------------------------------
    async def submit(
        self,
        document: Mapping[str, Any],
        *,
        environment: Mapping[str, str],
        folder: Path,
        replaces: str | None = None,
        owner: str | None = None,
    ) -> JobRecord:
        job = job_from_document(document)
        known = self._records.get(job.key)
        if known is not None and not (replaces == known.job.uid and known.status.finished):
            raise ConflictError(f"there is a job {job.key} already")
        self.submitted.append({"environment": dict(environment), "folder": folder, "owner": owner})
        return self.add(job.name, a_status(), owner or "nobody", document=dict(document), folder=folder)

    def _changed(self, key: str, edit: Any) -> JobRecord:
        record = self.record(key)
        if record.status.finished:
            raise ConflictError(f"{key} has ended")
        document = dict(record.job.document)
        document["spec"] = dict(document["spec"])
        edit(document["spec"])
        return self._put(replace(record, job=replace(job_from_document(document), uid=record.job.uid)))

    async def scale(self, key: str, workers: int, uid: str = "") -> JobRecord:
        def edit(spec: dict[str, Any]) -> None:
            roles = spec["mpiReplicaSpecs"]
            if "Worker" not in roles:
                raise UserError(f"{key} has no workers")
            spec["mpiReplicaSpecs"] = {**roles, "Worker": {**roles["Worker"], "replicas": workers}}

        return self._changed(key, edit)

    async def suspend(self, key: str, uid: str = "") -> JobRecord:
        return self._changed(key, lambda spec: spec.update(runPolicy={"suspend": True}))

    async def resume(self, key: str, uid: str = "") -> JobRecord:
        return self._changed(key, lambda spec: spec.update(runPolicy={"suspend": False}))

    async def stop(self, key: str, uid: str = "") -> JobRecord:
        return self._put(replace(self._changed(key, lambda _: None), stop_requested=True))

    async def delete(self, key: str, uid: str = "") -> None:
        self.record(key)
        self.vanish(key)

    # -- what it became ------------------------------------------------------------------------------
    async def get(self, key: str) -> JobRecord:
        return self.record(key)

    async def list(self, namespace: str | None = None) -> Sequence[JobRecord]:
        return [record for record in self._records.values() if namespace in (None, record.job.namespace)]

    async def runs(self, key: str) -> Sequence[JobRecord]:
        earlier = [record for name, record in self._earlier.items() if name.startswith(f"{key}#")]
        return [self.record(key), *reversed(earlier)]

    async def events(self, key: str) -> Sequence[EventRecord]:
        self.record(key)
        return [EventRecord(time=at(2), first_time=at(1), severity="Normal", reason="Admitted", message="go", count=2)]

    @staticmethod
    async def _until(ready: Callable[[], bool]) -> None:
        """Looks every now and then, which the real ones do not need: a test may change things from any thread."""
        while not ready():  # noqa: ASYNC110
            await asyncio.sleep(0.002)

    async def watch(self, key: str, *, timeout: float | None = None) -> AsyncGenerator[JobRecord, None]:  # noqa: ASYNC109
        self.record(key)
        seen = 0
        while True:
            await self._until(lambda: key not in self._records or self._records[key].revision > seen)  # noqa: B023
            if key not in self._records:
                return
            record = self._records[key]
            seen = record.revision
            yield record

    async def follow(self, namespace: str | None = None) -> AsyncGenerator[Batch, None]:
        with self._change:
            seen, first = self._revision, Batch(records=tuple(self._records.values()), whole=True)
        yield first
        while True:
            await self._until(lambda: self._revision > seen)  # noqa: B023 - it is asked at once
            with self._change:
                new = tuple(record for record in self._records.values() if record.revision > seen)
                gone = tuple(key for key, when in self._gone.items() if when > seen)
                seen = self._revision
            yield Batch(records=new, gone=gone)

    async def usage(self, key: str) -> Sequence[HostUsage]:
        return []

    async def usage_series(self, key: str, *, since: datetime | None = None) -> Sequence[UsageSample]:
        self.record(key)
        samples = [UsageSample(time=at(n), host="pi-worker-0", cpu_percent=50.0, memory_bytes=1 << 20) for n in (1, 2)]
        return [sample for sample in samples if since is None or sample.time >= since]

    # -- logs: a place is the number of lines before it ------------------------------------------------
    def _matching(self, key: str, query: LogQuery, start: int, end: int | None = None) -> list[PlacedLine]:
        lines = list(enumerate(self._lines.get(key, [])[:end], 1))[start:]
        return [
            PlacedLine(str(number), line)
            for number, line in lines
            if (not query.ranks or line.rank in query.ranks)
            and (query.stream is None or line.stream == query.stream)
            and (query.search or "") in line.text
        ]

    async def logs(self, key: str, query: LogQuery = EVERYTHING) -> AsyncGenerator[Sequence[LogLine], None]:
        self._asked(key, query)
        yield [placed.line for placed in self._matching(key, query, 0)]

    async def log_page(
        self,
        key: str,
        query: LogQuery = EVERYTHING,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int = 500,
    ) -> LogPage:
        self._asked(key, query)
        count = len(self._lines.get(key, ()))
        for place in (after, before):
            if place is not None and not (place.isascii() and place.isdecimal() and int(place) <= count):
                raise UserError(f"{place!r} is no place in this log", field="after")
        if after is not None:
            found = self._matching(key, query, int(after))
            end = str(count) if len(found) <= limit else found[limit - 1].after
            return LogPage(lines=tuple(found[:limit]), before=after, after=end, attempt=1)
        found = self._matching(key, query, 0, int(before) if before is not None else count)[-limit:]
        first = int(found[0].after) - 1 if found else 0
        return LogPage(lines=tuple(found), before=str(first) if first else None, after=before or str(count), attempt=1)

    async def log_follow(
        self, key: str, query: LogQuery = EVERYTHING, *, after: str | None = None
    ) -> AsyncGenerator[LogPage, None]:
        self._asked(key, query)
        place = int(after or 0)
        over = False
        while not over:
            await self._until(lambda: len(self._lines.get(key, ())) > place or self._over(key))  # noqa: B023
            over = self._over(key)
            page = await self.log_page(key, query, after=str(place))
            place = int(page.after)
            yield page

    def _over(self, key: str) -> bool:
        return key not in self._records or self._records[key].status.finished

    # -- the place -----------------------------------------------------------------------------------
    async def hosts(self) -> Sequence[HostRecord]:
        if self.machines:
            return self.machines
        held = tuple(Holding(key=key, amounts=Amounts(cpus=2.0)) for key in self._records)
        return [
            HostRecord(
                name="here",
                state="ready",
                total=Amounts(cpus=8.0, memory_bytes=1 << 34),
                held=Amounts(cpus=2.0 * len(held)),
                used=Amounts(cpus=0.5),
                holdings=held,
            )
        ]

    async def fit(self, document: Mapping[str, Any], *, owner: str | None = None) -> Fit:
        job_from_document(document)
        amounts = Amounts(cpus=2.0)
        return Fit(now=True, ever=True, wanted=amounts, free=amounts, total=amounts)

    async def has_folder(self, path: str) -> bool:
        return "\0" not in path and Path(path).is_absolute() and Path(path).is_dir()  # noqa: ASYNC240

    async def close(self) -> None:
        """Nothing is open."""
