"""The MPIJobs of a cluster, kept by its API server. Their key is "namespace/name".

A status is written with the version it was read at: whoever wrote in between is never overwritten, the
turn is just taken again. Events are recorded, and numbers counted, only after it was accepted.
"""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

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
from oarsman.status.codec import from_wire, to_wire, with_others

Mpijob = views.MPIJobView
_LARGEST_SPEC: Final = 500_000  # bytes: all of an object has to fit into 1.5 MiB
_COUNTS: Final = "replicaStatuses"
_BETWEEN_COUNTS: Final = 3.0  # seconds
_WITHOUT_DOCUMENT: Final[Mapping[str, Any]] = {"document": {}}  # which nobody asks for here; the cache has it


class KubeRecords:
    def __init__(
        self,
        kube: Kube,
        mpijobs: Informer[Mpijob],
        metrics: Metrics,
        again: Callable[[str, float], None] = lambda key, seconds: None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`again` is asked for another turn of a job in so many seconds."""
        self._kube = kube
        self._again = again
        self._clock = clock
        self._mpijobs = mpijobs
        self._metrics = metrics
        self._recorder = EventRecorder(kube, instance=socket.gethostname())
        self._uids: dict[str, str] = {}  # by key
        self._written: dict[str, float] = {}  # when
        self._phases: dict[str, str] = {}
        self._in_phase: Counter[str] = Counter()

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
            identity=_WITHOUT_DOCUMENT,
            collected=meta.deletion_timestamp is not None,
        )

    def document(self, record: Record[Mpijob]) -> Mapping[str, Any]:
        return views.document_of(record.stored.document())

    def last_valid(self, record: Record[Mpijob]) -> Mapping[str, Any] | None:
        spec = (record.stored.status or {}).get(names.VALID_SPEC)
        if spec is None:
            return None
        document = self.document(record)
        generation = {"generation": record.status.observed_generation}
        return {**document, "spec": spec, "metadata": {**document["metadata"], **generation}}

    def assignment(self, record: Record[Mpijob], job: Job) -> Assignment:
        stop = job.annotation(names.ANNOTATION_STOP) == "true"
        return Assignment(job=job, status=record.status, environment={}, folder=Path("/"), stop_requested=stop)

    async def write(self, record: Record[Mpijob], job: Job | None, plan: Plan, *, settled: bool) -> None:
        stored, meta, wire = record.stored, record.stored.metadata, to_wire(plan.status)
        if not plan.status.attempts:  # as upstream: one that was never made has no state
            wire["replicaStatuses"].pop("Launcher", None)
        if job is not None:
            wire |= {names.WRITTEN_AS: job.api_version.value} | _kept(record)
            wire["replicaStatuses"]["Worker"]["selector"] = f"{names.LABEL_JOB}={job.name},{names.LABEL_ROLE}=worker"
        before = stored.status
        wire = with_others(wire, before or {})
        if wire != before and not self._may_wait(record.key, wire, before):
            body = {
                "apiVersion": kinds.MPIJOBS.api_version,
                "kind": names.KIND,
                "metadata": {"name": meta.name, "namespace": meta.namespace, "resourceVersion": meta.resource_version},
                "spec": stored.spec_text,
                "status": wire,
            }
            try:
                written = await self._kube.replace(
                    kinds.MPIJOBS, meta.name, body, meta.namespace, subresource="status", view=Mpijob
                )
            except NotFound:
                self._mpijobs.drop(meta.namespace, meta.name, meta.uid)
                return
            self._mpijobs.put(written, tell=False)  # what follows from it, the plan has said
            self._written[record.key] = self._clock()
            self._metrics.status_writes.inc()
        self._count(record.key, record.status, plan.status, job)
        version = job.api_version.value if job is not None else kinds.MPIJOBS.api_version
        about = ObjectRef(api_version=version, kind=names.KIND, name=meta.name, namespace=meta.namespace, uid=meta.uid)
        for event in plan.events:
            await self._recorder.record(about, event.severity.value, event.reason, event.message)

    def _may_wait(self, key: str, wire: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """Counts change with every pod. Where nothing else did, they are written now and then.

        That no pod is left is told at once: whoever lends a suspended job its places waits for it.
        """
        if _lives(before) and not _lives(wire):
            return False
        left = self._written.get(key, -_BETWEEN_COUNTS) + _BETWEEN_COUNTS - self._clock()
        if left <= 0 or {**wire, _COUNTS: None} != {**before, _COUNTS: None}:
            return False
        self._again(key, left)
        return True

    async def leave(self, record: Record[Mpijob]) -> None:
        """Who runs it writes its status, too."""

    async def remove(self, record: Record[Mpijob]) -> None:
        meta = record.stored.metadata
        if not await self._kube.delete(kinds.MPIJOBS, meta.name, meta.namespace, uid=meta.uid):
            self._mpijobs.drop(meta.namespace, meta.name, meta.uid)

    def keeps(self, uid: str) -> bool:
        return False

    def uid_of(self, key: str) -> str | None:
        return self._uids.get(key)

    def forgotten(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        self._metrics.job_gone(namespace, names.launcher_name(name))
        del self._uids[key]
        self._written.pop(key, None)
        if (before := self._phases.pop(key, None)) is not None:
            self._in_phase[before] -= 1
            self._metrics.jobs(self._in_phase)

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
        last = self._phases.get(key)
        if last != after.phase:
            self._phases[key] = after.phase
            self._in_phase[after.phase] += 1
            if last is not None:
                self._in_phase[last] -= 1
            self._metrics.jobs(self._in_phase)


def _kept(record: Record[Mpijob]) -> dict[str, Any]:
    """The spec that is carried out while the present one is not valid: another leader must go on with the same one."""
    if not record.mistaken:
        return {}
    spec = record.valid.spec if record.valid is not None else (record.stored.status or {}).get(names.VALID_SPEC)
    return {names.VALID_SPEC: spec} if spec and len(msgspec.json.encode(spec)) <= _LARGEST_SPEC else {}


def _lives(status: Mapping[str, Any]) -> bool:
    return any(count.get("active") for count in (status.get(_COUNTS) or {}).values())
