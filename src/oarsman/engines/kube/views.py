"""The fields of Kubernetes objects that are looked at; the rest never enters memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from oarsman import names
from oarsman.engines.kube.client import Meta
from oarsman.job.job import ApiVersion


class _View(msgspec.Struct, frozen=True, rename="camel"):
    """Missing fields are empty, whatever the version of the server."""


class Waiting(_View, frozen=True):
    reason: str = ""
    message: str = ""


class Running(_View, frozen=True):
    started_at: datetime | None = None


class Terminated(_View, frozen=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class State(_View, frozen=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(_View, frozen=True):
    name: str = ""
    state: State = State()


class ObjectCondition(_View, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class PodStatus(_View, frozen=True):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""

    conditions: list[ObjectCondition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []

    def condition(self, type_: str) -> ObjectCondition | None:
        return next((c for c in self.conditions if c.type == type_), None)


class PodSpec(_View, frozen=True):
    node_name: str = ""


class Pod(_View, frozen=True):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class JobStatus(_View, frozen=True):
    conditions: list[ObjectCondition] = []


class BatchJob(_View, frozen=True):
    metadata: Meta
    status: JobStatus = JobStatus()


class ConfigMap(_View, frozen=True):
    metadata: Meta
    data: dict[str, str] = {}


class _Fields(msgspec.Struct, frozen=True):
    spec: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="f:spec")


class ManagedFields(_View, frozen=True):
    api_version: str = ""
    subresource: str = ""
    time: datetime | None = None
    fields_v1: _Fields | None = msgspec.field(default=None, name="fieldsV1")

    def document(self) -> dict[str, Any]:
        about = "f:spec" if self.fields_v1 is not None and bytes(self.fields_v1.spec) else "f:status"
        time = self.time.isoformat() if self.time else ""
        return {"apiVersion": self.api_version, "subresource": self.subresource, "time": time, "fieldsV1": {about: {}}}


class JobMeta(Meta, frozen=True, rename="camel"):
    managed_fields: list[ManagedFields] = msgspec.field(default_factory=list)


class MPIJobView(_View, frozen=True):
    """The job itself is kept whole: its templates become pods."""

    metadata: JobMeta
    spec: dict[str, Any] = {}
    status: dict[str, Any] | None = None

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    def document(self) -> dict[str, Any]:
        """As `manifest` reads it. The API version is still the stored one; see `document_of`."""
        meta = self.metadata
        metadata = {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "generation": meta.generation,
            "creationTimestamp": meta.creation_timestamp.isoformat() if meta.creation_timestamp else None,
            "labels": meta.labels,
            "annotations": meta.annotations,
            "managedFields": [entry.document() for entry in meta.managed_fields],
        }
        return {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": metadata,
            "spec": self.spec,
            "status": self.status or {},
        }


# -- which API version a job was written in ------------------------------------------------------------
# One CRD serves both versions and stores one of them, so every object is read back as v2beta1. What was
# meant is told, in this order, by our own annotation, by what the operator wrote down when it first saw
# the job, by fields only one version has, and by the record of who first wrote the spec in which version
# (later edits come in the version that a tool prefers, which says nothing about the author).
_ONLY_V1 = ("mainContainer", "cleanPodPolicy")
_ONLY_V2BETA1 = ("sshAuthMountPath", "mpiImplementation", "launcherCreationPolicy", "runLauncherAsWorker")


def version_of(document: Mapping[str, Any]) -> ApiVersion:
    metadata = document.get("metadata") or {}
    said = (metadata.get("annotations") or {}).get(names.ANNOTATION_API_VERSION)
    noted = (document.get("status") or {}).get("writtenAs")
    for known in (said, noted):
        if known in (ApiVersion.V1.value, ApiVersion.V2BETA1.value):
            return ApiVersion(known)
    if document.get("apiVersion") == ApiVersion.V1.value:
        return ApiVersion.V1
    spec = document.get("spec") or {}
    if any(field in spec for field in _ONLY_V2BETA1):
        return ApiVersion.V2BETA1
    if any(field in spec for field in _ONLY_V1):
        return ApiVersion.V1
    written = [entry for entry in metadata.get("managedFields") or () if _wrote_spec(entry)]
    first: Mapping[str, Any] = min(written, key=lambda entry: str(entry.get("time") or ""), default={})
    return ApiVersion.V1 if first.get("apiVersion") == ApiVersion.V1.value else ApiVersion.V2BETA1


def document_of(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The object as its author wrote it."""
    return {**stored, "apiVersion": version_of(stored).value}


def _wrote_spec(entry: Mapping[str, Any]) -> bool:
    fields = entry.get("fieldsV1") or {}
    return not entry.get("subresource") and ("f:spec" in fields or not fields)
