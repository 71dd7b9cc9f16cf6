"""The MPIJobs of a cluster, kept by its API server. Their key is "namespace/name".

A status is written with the version it was read at: whoever wrote in between is never overwritten, the
turn is just taken again. Events are recorded, and numbers counted, only after it was accepted.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oarsman import names
from oarsman.control.health import Metrics
from oarsman.control.reconciler import Record
from oarsman.engines.contract import Assignment
from oarsman.engines.kube import views
from oarsman.engines.kube.client import Informer, Kube, NotFound
from oarsman.engines.kube.client import resources as kinds
from oarsman.engines.kube.events import EventRecorder, ObjectRef
from oarsman.job.job import Job
from oarsman.job.state import Status
from oarsman.plan.actions import Plan
from oarsman.status.codec import from_wire, to_wire

Mpijob = views.MPIJobView


class KubeRecords:
    def __init__(self, kube: Kube, mpijobs: Informer[Mpijob], metrics: Metrics) -> None:
        self._kube = kube
        self._mpijobs = mpijobs
        self._metrics = metrics
        self._recorder = EventRecorder(kube, instance=socket.gethostname())
        self._uids: dict[str, str] = {}  # by key
        self._phases: dict[str, str] = {}

    def read(self, key: str) -> Record[Mpijob] | None:
        namespace, _, name = key.partition("/")
        stored = self._mpijobs.get(namespace, name)
        if stored is None:
            return None
        meta = stored.metadata
        self._uids[key] = meta.uid
        return Record(
            key=key,
            uid=meta.uid,
            generation=meta.generation,
            version=(meta.uid, meta.generation, tuple(sorted(meta.annotations.items()))),
            status=from_wire(stored.status),
            stored=stored,
            collected=meta.deletion_timestamp is not None,
        )

    def document(self, record: Record[Mpijob]) -> Mapping[str, Any]:
        return views.document_of(record.stored.document())

    def assignment(self, record: Record[Mpijob], job: Job) -> Assignment:
        stop = job.annotation(names.ANNOTATION_STOP) == "true"
        return Assignment(job=job, status=record.status, environment={}, folder=Path("/"), stop_requested=stop)

    async def write(self, record: Record[Mpijob], job: Job | None, plan: Plan, *, settled: bool) -> None:
        stored, meta, wire = record.stored, record.stored.metadata, to_wire(plan.status)
        if job is not None:
            wire |= {"writtenAs": job.api_version.value}
            wire["replicaStatuses"]["Worker"]["selector"] = f"{names.LABEL_JOB}={job.name},{names.LABEL_ROLE}=worker"
        if wire != (stored.status or {}):
            body = {
                "apiVersion": kinds.MPIJOBS.api_version,
                "kind": names.KIND,
                "metadata": {"name": meta.name, "namespace": meta.namespace, "resourceVersion": meta.resource_version},
                "spec": stored.spec,
                "status": wire,
            }
            try:
                written = await self._kube.replace(
                    kinds.MPIJOBS, meta.name, body, meta.namespace, subresource="status", view=Mpijob
                )
            except NotFound:
                return
            self._mpijobs.put(written)
            self._metrics.status_writes.inc()
        self._count(record.key, record.status, plan.status, job)
        version = job.api_version.value if job is not None else kinds.MPIJOBS.api_version
        about = ObjectRef(api_version=version, kind=names.KIND, name=meta.name, namespace=meta.namespace, uid=meta.uid)
        for event in plan.events:
            await self._recorder.record(about, event.severity.value, event.reason, event.message)

    async def leave(self, record: Record[Mpijob]) -> None:
        """Who runs it writes its status, too."""

    async def remove(self, record: Record[Mpijob]) -> None:
        meta = record.stored.metadata
        await self._kube.delete(kinds.MPIJOBS, meta.name, meta.namespace, uid=meta.uid)

    def keeps(self, uid: str) -> bool:
        return False

    def uid_of(self, key: str) -> str | None:
        return self._uids.get(key)

    def forgotten(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        self._metrics.job_gone(namespace, names.launcher_name(name))
        del self._uids[key]
        if self._phases.pop(key, None) is not None:
            self._metrics.jobs(Counter(self._phases.values()))

    def _count(self, key: str, before: Status, after: Status, job: Job | None) -> None:
        if before.condition(names.CREATED) is None and after.condition(names.CREATED) is not None:
            self._metrics.created.inc()
        if after.finished and not before.finished:
            (self._metrics.successful if after.is_true(names.SUCCEEDED) else self._metrics.failed).inc()
        if job is not None and after.attempts:
            self._metrics.launcher_seen(job.namespace, job.launcher_host)
        launched = after.timeline.get("launched")
        if job is not None and job.created_at and launched and "launched" not in before.timeline:
            self._metrics.started_after((launched - job.created_at).total_seconds())
        if self._phases.get(key) != after.phase:
            self._phases[key] = after.phase
            self._metrics.jobs(Counter(self._phases.values()))
