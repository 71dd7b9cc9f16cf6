"""A service in memory: jobs become what a test says, and whoever watches them is told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from oarsman.errors import ConflictError, NotFoundError
from oarsman.manifest import documents, job_from_document, to_yaml
from oarsman.service import models as m
from oarsman.service.models import ALL_JOBS, ALL_LINES

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ENDS = ("Succeeded", "Failed", "Stopped")
_LOOK_AGAIN_SECONDS = 0.002


class MemoryService:
    def __init__(self) -> None:
        self.change = threading.Condition()
        self.kept: dict[str, m.JobView] = {}
        self.earlier: dict[tuple[str, int | None], m.JobView] = {}  # runs
        self.lines: dict[str, list[m.LogLineView]] = {}
        self.created: list[m.Create] = []
        self.asked: list[str] = []  # the names of the methods called
        self.closed = False
        self._numbers = count(1)

    # -- for tests -----------------------------------------------------------------------------------
    def become(self, key: str, state: str, **more: Any) -> None:
        """The job is in another state; `more` are fields of Job, or of its summary."""
        with self.change:
            job = self.kept[key]
            summary = {"state": state, "revision": next(self._numbers)}
            if state in ENDS:
                summary["ended"] = NOON + timedelta(seconds=90)
            if state == "Running":
                summary["started"] = NOON
            fields = {name: more.pop(name) for name in list(more) if name in m.JobView.model_fields}
            kind = "Failed" if state == "Stopped" else state
            condition = m.ConditionView(type=kind, status=True, reason=state, message="", since=NOON)
            self.kept[key] = job.model_copy(
                update={
                    "summary": job.summary.model_copy(update={**summary, **more}),
                    "conditions": [condition],
                    **fields,
                }
            )
            self.change.notify_all()

    def say(self, key: str, *texts: str, rank: int | None = 0, stream: str = "out") -> None:
        with self.change:
            lines = self.lines[key]
            for text in texts:
                lines.append(
                    m.LogLineView(after=str(len(lines) + 1), time=NOON, rank=rank, host="w", stream=stream, text=text)  # type: ignore[arg-type]
                )
            self.change.notify_all()

    def add(self, name: str, state: str = "Pending", **summary: Any) -> str:
        document = {**DOCUMENT, "metadata": {"name": name}}
        key = self._add(document)
        self.become(key, state, **summary)
        return key

    def _add(self, document: Mapping[str, Any]) -> str:
        job = job_from_document(document)
        number = next(self._numbers)
        summary = m.JobSummary(
            key=job.key,
            name=job.name,
            namespace=job.namespace,
            uid=str(number),
            engine="local",
            state="Pending",
            api_version="v2beta1",
            implementation="OpenMPI",
            workers=job.workers,
            workers_ready=0,
            slots_per_worker=job.slots_per_worker,
            total_replicas=job.workers + 1,
            ranks=job.slots,
            created=NOON + timedelta(seconds=number),
            owner="ada",
            revision=number,
        )
        text = to_yaml([document])
        with self.change:
            if job.key in self.kept:
                raise ConflictError(f"there is a job {job.key} already", field="metadata.name", hint="another name")
            self.kept[job.key] = m.JobView(summary=summary, manifest=text, completed=text)
            self.lines[job.key] = []
            self.change.notify_all()
        return job.key

    def vanish(self, key: str) -> None:
        self._job(key)
        with self.change:
            del self.kept[key]
            self.change.notify_all()

    async def close(self) -> None:
        self.closed = True

    # -- the methods of Service ------------------------------------------------------------------------
    async def info(self) -> m.ServerInfo:
        self.asked.append("info")
        me = m.Identity(name="ada", role=m.Role.USER)
        return m.ServerInfo(version="1", engine="local", home="default", accounts=True, me=me)

    async def overview(self) -> m.Overview:
        return m.Overview(states={"Running": 1}, total=m.AmountsView(cpus=4), held=m.AmountsView(cpus=1))

    async def jobs(self, query: m.JobQuery = ALL_JOBS) -> m.JobList:
        self.asked.append("jobs")
        found = [job.summary for job in self.kept.values() if not query.states or job.summary.state in query.states]
        found = [row for row in found if not query.search or query.search in row.name]
        start = int(query.cursor or 0)
        end = start + query.limit
        return m.JobList(items=found[start:end], total=len(found), next=str(end) if end < len(found) else None)

    async def job(self, key: str, *, run: int | None = None) -> m.JobView:
        return self._job(key) if run is None else self.earlier[key, run]

    async def runs(self, key: str) -> Sequence[m.JobSummary]:
        earlier = [job.summary for (name, _), job in self.earlier.items() if name == key]
        return [self._job(key).summary, *reversed(earlier)]

    def _job(self, key: str) -> m.JobView:
        with self.change:
            self.asked.append("job")
            self.change.notify_all()
        if key not in self.kept:
            raise NotFoundError(f"there is no job {key}", hint="look at the list")
        return self.kept[key]

    async def create(self, wanted: m.Create) -> m.JobView:
        self.created.append(wanted)
        if wanted.manifest is not None:
            (document,) = documents(wanted.manifest, "manifest")
        else:
            document = dict(wanted.document or {})
        return self.kept[self._add(document)]

    async def delete(self, key: str) -> None:
        self.vanish(key)

    async def scale(self, key: str, workers: int) -> m.JobView:
        self.become(key, self._job(key).summary.state, workers=workers)
        return self.kept[key]

    async def suspend(self, key: str) -> m.JobView:
        self.become(key, "Suspended")
        return self.kept[key]

    async def resume(self, key: str) -> m.JobView:
        self.become(key, "Running")
        return self.kept[key]

    async def stop(self, key: str) -> m.JobView:
        self.asked.append("stop")
        if self._job(key).summary.state in ENDS:
            raise ConflictError(f"{key} has ended")
        self.become(key, "Stopped", reason="StoppedByUser", message="it was stopped")
        return self.kept[key]

    async def rerun(self, key: str) -> m.JobView:
        if self._job(key).summary.state not in ENDS:
            raise ConflictError(f"{key} has not ended", hint="stop it first")
        document, ended = self._document(key), self.kept[key]
        self.earlier[key, ended.summary.run] = ended
        self.vanish(key)
        self._add(document)
        summary = self.kept[key].summary.model_copy(update={"run": ended.summary.run + 1})
        self.kept[key] = self.kept[key].model_copy(update={"summary": summary})
        return self.kept[key]

    async def clone(self, key: str, wanted: m.Clone) -> m.JobView:
        document = _merged(self._document(key), wanted.patch)
        document["metadata"]["name"] = wanted.name or f"{document['metadata']['name']}-2"
        return self.kept[self._add(document)]

    def _document(self, key: str) -> dict[str, Any]:
        (document,) = documents(self._job(key).manifest)
        return document

    async def changes(self, query: m.JobQuery = ALL_JOBS) -> AsyncGenerator[m.JobChange, None]:
        yield m.JobChange(reset=True)
        for job in list(self.kept.values()):
            yield m.JobChange(changed=job.summary)

    async def watch(self, key: str) -> AsyncGenerator[m.JobView, None]:
        last: m.JobView | None = self._job(key)
        while last is not None:
            yield last
            before = last
            while self.kept.get(key) is before:  # noqa: ASYNC110 - a test may change things from any thread
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            last = self.kept.get(key)

    async def events(self, key: str, *, run: int | None = None) -> Sequence[m.EventView]:
        await self.job(key, run=run)
        return [m.EventView(time=NOON, first_time=NOON, severity="Normal", reason="Created", message="made")]

    def _matching(self, key: str, only: m.LogFilter) -> list[m.LogLineView]:
        self._job(key)
        lines = [line for line in self.lines[key] if not only.ranks or line.rank in only.ranks]
        lines = [line for line in lines if only.stream in (None, line.stream)]
        return [line for line in lines if only.search is None or only.search in line.text]

    async def log(
        self,
        key: str,
        only: m.LogFilter = ALL_LINES,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int = 500,
    ) -> m.LogPageView:
        lines = self._matching(key, only)
        if after is not None:
            found = [line for line in lines if int(line.after) > int(after)][:limit]
        else:
            found = [line for line in lines if before is None or int(line.after) <= int(before)][-limit:]
        above = int(found[0].after) - 1 if found else 0
        end = str(len(self.lines[key]))
        return m.LogPageView(lines=found, before=str(above) if above else None, after=end, attempt=1)

    async def follow_log(
        self, key: str, only: m.LogFilter = ALL_LINES, *, after: str | None = None
    ) -> AsyncGenerator[m.LogPageView, None]:
        place = int(after or 0)
        while True:
            while len(self.lines[key]) <= place and self.kept[key].summary.state not in ENDS:  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
            with self.change:
                end = len(self.lines[key])
                over = self.kept[key].summary.state in ENDS
            found = [line for line in self._matching(key, only) if place < int(line.after) <= end]
            place = end
            if found:
                yield m.LogPageView(lines=found, before=None, after=str(end), attempt=1)
            if over:
                return

    async def download_log(self, key: str, only: m.LogFilter = ALL_LINES) -> AsyncGenerator[bytes, None]:
        for line in self._matching(key, only):
            yield f"{line.text}\n".encode()

    async def usage(self, key: str, *, since: datetime | None = None, run: int | None = None) -> Sequence[m.UsagePoint]:
        await self.job(key, run=run)
        points = [
            m.UsagePoint(time=NOON + timedelta(seconds=n), host="w", cpu_percent=50, memory_bytes=n) for n in range(3)
        ]
        return [point for point in points if since is None or point.time >= since]

    async def progress(self, key: str, *, run: int | None = None) -> m.Progress:
        await self.job(key, run=run)
        points = [m.MetricPoint(time=NOON + timedelta(seconds=n), value=1 / (n + 1), step=n) for n in range(3)]
        late = m.RankProgress(rank=1, host="w", state="running", step=1, behind="at step 1, the others at 2")
        return m.Progress(series=[m.MetricSeries(name="loss", rank=0, points=points)], ranks=[late])

    async def preview(self, wanted: m.Create) -> m.PreviewView:
        (document,) = documents(wanted.manifest) if wanted.manifest else [dict(wanted.document or {})]
        return m.PreviewView(document=document, ranks=job_from_document(document).slots)

    async def templates(self) -> Sequence[m.Template]:
        return [m.Template(name="hello", title="Hello", manifest="...")]

    async def convert(self, document: Mapping[str, Any], api_version: str) -> m.Converted:
        manifest = to_yaml([{**document, "apiVersion": f"kubeflow.org/{api_version}"}])
        return m.Converted(manifest=manifest, losses=["something"])

    async def hosts(self) -> Sequence[m.HostView]:
        return [m.HostView(name="<b>h</b>", state="ready", total=m.AmountsView(cpus=4), held=m.AmountsView(cpus=1))]

    async def queue(self) -> Sequence[m.QueueEntry]:
        return [m.QueueEntry(key="default/q", position=1, priority=0, reason="no room", since=NOON)]


def _merged(document: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(document)
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(made.get(name), dict):
            made[name] = _merged(made[name], value)
        else:
            made[name] = value
    return made


DOCUMENT: dict[str, Any] = {
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "metadata": {"name": "pi"},
    "spec": {
        "slotsPerWorker": 1,
        "mpiReplicaSpecs": {
            "Launcher": {"template": {"spec": {"containers": [{"name": "l", "command": ["mpirun", "-n", "2", "pi"]}]}}},
            "Worker": {"replicas": 2, "template": {"spec": {"containers": [{"name": "w"}]}}},
        },
    },
}
MANIFEST = to_yaml([DOCUMENT])
