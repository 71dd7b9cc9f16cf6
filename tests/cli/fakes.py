"""Jobs that exist only in memory, for tests of the command: every answer is scripted, every call is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from memory_environments import MemoryEnvironments

from oarsman import names
from oarsman.backends.base import (
    EVERYTHING,
    Amounts,
    Batch,
    EventRecord,
    Fit,
    HostRecord,
    JobRecord,
    LogLine,
    LogPage,
    LogQuery,
    PlacedLine,
)
from oarsman.cli.main import cli
from oarsman.cli.session import Session
from oarsman.engines.contract import HostUsage, UsageSample
from oarsman.errors import ConflictError, NotFoundError
from oarsman.job.job import Job
from oarsman.job.state import Attempt, Cause, Condition, Status
from oarsman.manifest import builder, job_from_document
from oarsman.store.logs import stamp
from oarsman.text.sentence import Text

T0 = datetime(2026, 1, 1, 8, tzinfo=UTC)
NOW = T0 + timedelta(minutes=5)
MANIFEST = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi}
spec:
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher:
      template: {spec: {containers: [{name: l, image: pi, command: [mpirun, -np, "4", ./pi]}]}}
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: w, image: pi}]}}
"""


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def a_status(*true: str, attempts: int = 1, cause: Cause | None = None, **given: Any) -> Status:
    """A status in which these conditions are true."""
    ended = names.SUCCEEDED in true or names.FAILED in true
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
    given.setdefault("start_time", at(1))
    given.setdefault("completion_time", at(4.5) if ended else None)
    return Status(
        conditions=conditions,
        attempts=tuple(Attempt(number=n + 1, started=at(1)) for n in range(attempts)),
        cause=cause,
        **given,
    )


SUCCEEDED = a_status(names.SUCCEEDED)
RUNNING = a_status(names.RUNNING)
CAUSE = Cause(
    summary=Text(
        "{who} {did}",
        who=Text("rank {rank} on {host}", rank=1, host="pi-worker-0"),
        did=Text("exited with code {code}", code=3),
    ),
    rank=1,
    host="pi-worker-0",
    exit_code=3,
    last_lines=("Traceback", "ValueError: no"),
    hint="look at rank 1",
)
FAILED = a_status(names.FAILED, cause=CAUSE)


def a_job(name: str = "pi", namespace: str = "default") -> Job:
    document = builder.document(
        ["./pi"], builder.Shape(processes=4, workers=2), builder.JobSettings(name=name), suffix=""
    )
    document["metadata"]["namespace"] = namespace
    return replace(job_from_document(document), uid="uid-1")


def a_line(text: str, rank: int | None = 0, stream: str = "out") -> LogLine:
    host = "pi-launcher" if rank is None else f"pi-worker-{rank // 2}"
    return LogLine(stamp(at(2)), rank, host, stream, text)


@dataclass
class FakeJobs:
    """`story`: the statuses a watch sees, in order. `lines`: what each attempt wrote."""

    records: dict[str, JobRecord] = field(default_factory=dict)
    story: Sequence[Status] = (SUCCEEDED,)
    lines: Mapping[int, Sequence[LogLine]] = field(default_factory=dict)
    happened: Sequence[EventRecord] = ()
    uses: Sequence[HostUsage] = ()
    series: Sequence[UsageSample] = ()
    machines: Sequence[HostRecord] = ()
    fits: Fit = field(
        default_factory=lambda: Fit(now=True, ever=True, wanted=Amounts(), free=Amounts(), total=Amounts())
    )
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    home: str = "default"
    place: str = "local"
    silent: bool = False  # a watch whose story is told waits for more, in vain
    environments: MemoryEnvironments = field(default_factory=MemoryEnvironments)

    def add(self, name: str = "pi", status: Status = RUNNING, namespace: str = "default", **given: Any) -> JobRecord:
        record = JobRecord(
            job=a_job(name, namespace),
            status=status,
            created_at=T0,
            owner="ada",
            folder=Path("/home/ada"),
            engine="local",
            revision=7,
            **given,
        )
        self.records[record.job.key] = record
        return record

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
        self.calls.append(("submit", job.key, replaces is not None))
        if job.key in self.records and replaces is None:
            raise ConflictError(f"job {job.key} exists")
        self.records[job.key] = record = JobRecord(
            job=job, status=Status(), created_at=T0, owner=owner or "ada", folder=folder, engine="local"
        )
        return record

    async def get(self, key: str) -> JobRecord:
        if key not in self.records:
            raise NotFoundError(f"no job {key}")
        return self.records[key]

    async def list(self, namespace: str | None = None) -> Sequence[JobRecord]:
        found = [record for key, record in self.records.items() if "#" not in key]
        return [record for record in found if namespace in (None, record.job.namespace)]

    async def runs(self, key: str) -> Sequence[JobRecord]:
        earlier = [record for known, record in self.records.items() if known.startswith(f"{key}#")]
        return [await self.get(key), *reversed(earlier)]

    async def _act(self, *call: Any) -> JobRecord:
        self.calls.append(call)
        return await self.get(call[1])

    async def scale(self, key: str, workers: int, uid: str = "") -> JobRecord:
        return await self._act("scale", key, workers)

    async def suspend(self, key: str, uid: str = "") -> JobRecord:
        return await self._act("suspend", key)

    async def resume(self, key: str, uid: str = "") -> JobRecord:
        return await self._act("resume", key)

    async def stop(self, key: str, uid: str = "") -> JobRecord:
        return await self._act("stop", key)

    async def delete(self, key: str, uid: str = "") -> None:
        await self._act("delete", key)
        del self.records[key]

    async def events(self, key: str) -> Sequence[EventRecord]:
        await self.get(key)
        return self.happened

    async def watch(self, key: str, *, timeout: float | None = None) -> AsyncGenerator[JobRecord, None]:  # noqa: ASYNC109
        for status in self.story:
            self.records[key] = replace(await self.get(key), status=status)
            yield self.records[key]
        if self.silent:
            await asyncio.Event().wait()

    async def logs(self, key: str, query: LogQuery = LogQuery()) -> AsyncGenerator[Sequence[LogLine], None]:  # noqa: B008 - as the protocol
        await self.get(key)
        self.calls.append(("logs", query))
        yield list(self.lines.get(query.attempt or 1, ()))

    async def usage(self, key: str) -> Sequence[HostUsage]:
        await self.get(key)
        return self.uses

    async def follow(self, namespace: str | None = None) -> AsyncGenerator[Batch, None]:
        yield Batch(records=tuple(await self.list(namespace)), whole=True)

    async def log_page(
        self,
        key: str,
        query: LogQuery = EVERYTHING,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int = 500,
    ) -> LogPage:
        """Places are the numbers of lines."""
        await self.get(key)
        lines = self.lines.get(query.attempt or 1, ())
        start, end = int(after or 0), int(before or len(lines))
        start, end = (start, min(end, start + limit)) if after is not None else (max(0, end - limit), end)
        return LogPage(
            lines=tuple(PlacedLine(str(number + 1), lines[number]) for number in range(start, end)),
            before=str(start) if start else None,
            after=str(end),
            attempt=query.attempt or 1,
        )

    async def log_follow(
        self,
        key: str,
        query: LogQuery = EVERYTHING,
        *,
        after: str | None = None,
    ) -> AsyncGenerator[LogPage, None]:
        yield await self.log_page(key, query, after=after or "0", limit=10_000)

    async def usage_series(self, key: str, *, since: datetime | None = None) -> Sequence[UsageSample]:
        await self.get(key)
        return [sample for sample in self.series if since is None or sample.time > since]

    async def hosts(self) -> Sequence[HostRecord]:
        return self.machines

    async def fit(self, document: Mapping[str, Any], *, owner: str | None = None) -> Fit:
        job_from_document(document)
        return self.fits

    async def close(self) -> None:
        """Nothing is open."""


def oarsman(jobs: FakeJobs, *words: str, stdin: str | bytes | None = None, **env: str) -> Result:
    """Run the command in this process. The result has stdout, stderr and exit_code."""

    def at(engine: str) -> FakeJobs:
        jobs.place = engine
        return jobs

    session = Session(factory=at, now=lambda: NOW)
    return CliRunner().invoke(cli, words, input=stdin, obj=session, env={"TZ": "UTC", **env}, catch_exceptions=False)
