"""MPIJobs and events as the server has them, to and from the records that every backend returns."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from oarsman import names
from oarsman.backends.base import EventRecord, JobRecord, current_user
from oarsman.engines.kube.client import resources
from oarsman.engines.kube.client.resources import Resource
from oarsman.engines.kube.views import document_of
from oarsman.errors import ManifestError
from oarsman.job.job import ApiVersion, Job
from oarsman.manifest import job_from_document, sketch
from oarsman.status.codec import from_wire
from oarsman.text.sentence import load

Document = dict[str, Any]
ENGINE = "kube"
_OF_ANOTHER_RUN = (names.ANNOTATION_STOP, names.ANNOTATION_ATTEMPT, names.ANNOTATION_RUN)
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def resource_of(document: Mapping[str, Any]) -> Resource:
    """The resource the document goes to: that of its own version, whose schema knows its fields."""
    return resources.MPIJOBS_V1 if document.get("apiVersion") == ApiVersion.V1.value else resources.MPIJOBS


def to_send(document: Mapping[str, Any], namespace: str, owner: str | None = None) -> Document:
    """The document as it is sent: without what another server, or another run, wrote into it."""
    metadata = {name: value for name, value in dict(document["metadata"]).items() if name not in names.SERVERS_OWN}
    given = metadata.get("annotations") or {}
    annotations = {
        names.ANNOTATION_TAG_OUTPUT: "true",
        **{name: value for name, value in given.items() if name not in _OF_ANOTHER_RUN},
        names.ANNOTATION_API_VERSION: document["apiVersion"],
        names.ANNOTATION_SUBMITTED_BY: owner or current_user(),
    }
    metadata = {**metadata, "namespace": metadata.get("namespace") or namespace, "annotations": annotations}
    return {**{name: value for name, value in document.items() if name != "status"}, "metadata": metadata}


def record(found: Mapping[str, Any]) -> JobRecord:
    metadata = found["metadata"]
    job, version = job_of(found), str(metadata.get("resourceVersion"))
    annotations = metadata.get("annotations") or {}
    run = str(annotations.get(names.ANNOTATION_RUN))  # anybody may write there
    return JobRecord(
        job=job,
        status=from_wire(found.get("status") or {}),
        created_at=job.created_at or datetime.fromtimestamp(0, UTC),
        owner=annotations.get(names.ANNOTATION_SUBMITTED_BY) or "",
        folder=None,
        engine=ENGINE,
        deleting="deletionTimestamp" in metadata,
        stop_requested=annotations.get(names.ANNOTATION_STOP) == "true",
        revision=int(version) if version.isdigit() else 0,  # opaque by contract, a number in practice
        run=int(run) if run.isdecimal() and len(run) < 10 else 1,
    )


class RecordCache:
    """Records by their name, so that an object which has not changed is not read a second time. For any thread."""

    def __init__(self, most: int = 20_000) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._records: dict[str, tuple[str, str, JobRecord]] = {}

    def record(self, found: Mapping[str, Any]) -> JobRecord:
        metadata = found["metadata"]
        key, uid, version = key_of(found), metadata.get("uid") or "", metadata.get("resourceVersion") or ""
        with self._lock:
            known = self._records.pop(key, None)
        if known is None or known[:2] != (uid, version) or not version:
            known = uid, version, record(found)
        with self._lock:
            self._records[key] = known  # at the end: the first ones are those not asked about for longest
            if len(self._records) > self._most:
                del self._records[next(iter(self._records))]
        return known[2]

    def forget(self, key: str) -> None:
        self._records.pop(key, None)


def key_of(found: Mapping[str, Any]) -> str:
    metadata = found["metadata"]
    return f"{metadata.get('namespace') or ''}/{metadata['name']}"


def job_of(found: Mapping[str, Any]) -> Job:
    """The job; of one that is not valid, which only others than us submit, as much as can be shown."""
    document = document_of({**found, "kind": names.KIND})
    # Without the server's bookkeeping, which kubectl hides as well.
    metadata = {name: value for name, value in document["metadata"].items() if name != "managedFields"}
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {name: value for name, value in annotations.items() if name != _APPLIED}
    document = {**document, "metadata": metadata}
    try:
        return job_from_document(document)
    except ManifestError:
        return sketch(document)


_LONG_AGO = datetime.fromtimestamp(0, UTC)


def event(item: Mapping[str, Any]) -> EventRecord:
    """Old events count and have two times; new ones are series and have one."""
    series = item.get("series") or {}
    created = _time((item.get("metadata") or {}).get("creationTimestamp"))
    first = _time(item.get("firstTimestamp")) or _time(item.get("eventTime")) or created or _LONG_AGO
    last = _time(series.get("lastObservedTime")) or _time(item.get("lastTimestamp")) or first
    return EventRecord(
        time=last,
        first_time=first,
        severity=item.get("type") or "Normal",
        reason=item.get("reason") or "",
        message=_message(item),
        count=series.get("count") or item.get("count") or 1,
    )


def _message(item: Mapping[str, Any]) -> str:
    """As it was made, if the operator says so; anybody may write events."""
    told = item.get("message") or ""
    written = ((item.get("metadata") or {}).get("annotations") or {}).get(names.EVENT_TEXT)
    try:
        made = load(json.loads(written)) if written else told
    except ValueError:
        return told
    return made if made == told else told


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
