"""The fields of Kubernetes objects that are looked at; the rest never enters memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from oarsman import names
from oarsman.engines.kube.client import Meta
from oarsman.engines.kube.client.codec import shared
from oarsman.job.job import ApiVersion
from oarsman.manifest.places import as_written

SCRIPTS = ("passwd.sh", "barrier.sh", "launch.sh", "worker.sh", "ssh.sh", "prepare.sh", names.KUBEXEC)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # the whole job once more


class _View(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Missing fields are empty, whatever the version of the server. There are no cycles for a collector to look for."""


class Waiting(_View, frozen=True, gc=False):
    reason: str = ""
    message: str = ""


class Running(_View, frozen=True, gc=False):
    started_at: datetime | None = None


class Terminated(_View, frozen=True, gc=False):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class State(_View, frozen=True, gc=False):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(_View, frozen=True, gc=False):
    name: str = ""
    state: State = State()


class ObjectCondition(_View, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None

    def __post_init__(self) -> None:
        for field in ("type", "status", "reason"):
            msgspec.structs.force_setattr(self, field, shared(getattr(self, field)))


_LOOKED_AT = ("PodScheduled", "Ready", "DisruptionTarget")  # conditions of a pod


class PodStatus(_View, frozen=True, gc=False):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""

    conditions: tuple[ObjectCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()

    def __post_init__(self) -> None:
        seen = tuple(condition for condition in self.conditions if condition.type in _LOOKED_AT)
        msgspec.structs.force_setattr(self, "conditions", seen)
        msgspec.structs.force_setattr(self, "phase", shared(self.phase))

    def condition(self, type_: str) -> ObjectCondition | None:
        return next((c for c in self.conditions if c.type == type_), None)


class PodSpec(_View, frozen=True, gc=False):
    node_name: str = ""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "node_name", shared(self.node_name))


class Pod(_View, frozen=True, gc=False):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class JobStatus(_View, frozen=True, gc=False):
    conditions: tuple[ObjectCondition, ...] = ()


class BatchJob(_View, frozen=True, gc=False):
    metadata: Meta
    status: JobStatus = JobStatus()


class ConfigMap(_View, frozen=True, gc=False):
    metadata: Meta
    data: dict[str, str] = {}

    def __post_init__(self) -> None:
        for file, text in self.data.items():
            if file in SCRIPTS:
                self.data[file] = shared(text)


class _There(msgspec.Struct, frozen=True, gc=False):
    """Whatever it is, nothing of it is kept."""


class _Fields(msgspec.Struct, frozen=True, gc=False):
    spec: _There | None = msgspec.field(default=None, name="f:spec")


class ManagedFields(_View, frozen=True, gc=False):
    api_version: str = ""
    subresource: str = ""
    time: datetime | None = None
    fields_v1: _Fields | None = msgspec.field(default=None, name="fieldsV1")

    def __post_init__(self) -> None:
        for field in ("api_version", "subresource"):
            msgspec.structs.force_setattr(self, field, shared(getattr(self, field)))

    def document(self) -> dict[str, Any]:
        about = "f:spec" if self.fields_v1 is not None and self.fields_v1.spec is not None else "f:status"
        time = self.time.isoformat() if self.time else ""
        return {"apiVersion": self.api_version, "subresource": self.subresource, "time": time, "fieldsV1": {about: {}}}


class JobMeta(Meta, frozen=True, rename="camel", gc=False):
    managed_fields: tuple[ManagedFields, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.annotations.pop(_LAST_APPLIED, None)


_NOTHING = msgspec.Raw(b"null")


class MPIJobView(_View, frozen=True, gc=False):
    """The job itself is kept whole, as the server spelled it: its templates become pods."""

    metadata: JobMeta
    spec_text: msgspec.Raw = msgspec.field(default=_NOTHING, name="spec")
    status_text: msgspec.Raw = msgspec.field(default=_NOTHING, name="status")

    def __post_init__(self) -> None:
        for field in ("spec_text", "status_text"):  # copies, or all that came with it would stay in memory
            msgspec.structs.force_setattr(self, field, getattr(self, field).copy())

    @property
    def spec(self) -> dict[str, Any]:
        return msgspec.json.decode(self.spec_text) or {}

    @property
    def status(self) -> dict[str, Any]:
        return msgspec.json.decode(self.status_text) or {}

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
            "status": self.status,
        }


_OF_META = ("uid", "generation", "deletion_timestamp", "labels", "annotations", "owner_references")


def differ(old: Any, new: Any) -> bool:
    """In anything that is looked at. Kubelets and controllers change much else."""
    parts = (part for part in old.__struct_fields__ if part != "metadata" and getattr(old, part) != getattr(new, part))
    return next(parts, None) is not None or any(
        getattr(old.metadata, field) != getattr(new.metadata, field) for field in _OF_META
    )


# -- which API version a job was written in ------------------------------------------------------------
# One CRD serves both versions and stores one of them, so every object is read back as v2beta1. What was meant is told,
# in this order, by our own annotation, by what the operator wrote down when it first saw the job, and by the field in
# which our definition has the server note it, which copies keep. Under a definition of others: by fields that only
# v2beta1 has (kubectl prints v1, so a copy comes through v1), by the record of who first wrote the spec in which
# version (later edits come in the one that a tool prefers, which says nothing about the author), by fields of v1.
_VERSIONS = [version.value for version in ApiVersion]
_ONLY_V1 = ("mainContainer", "cleanPodPolicy")
_ONLY_V2BETA1 = ("sshAuthMountPath", "mpiImplementation", "launcherCreationPolicy", "runLauncherAsWorker")


def version_of(document: Mapping[str, Any]) -> ApiVersion:
    metadata = document.get("metadata") or {}
    said = (metadata.get("annotations") or {}).get(names.ANNOTATION_API_VERSION)
    spec = document.get("spec") or {}
    for known in (said, (document.get("status") or {}).get(names.WRITTEN_AS), spec.get(names.WRITTEN_AS)):
        if known in _VERSIONS:
            return ApiVersion(known)
    if document.get("apiVersion") == ApiVersion.V1.value:
        return ApiVersion.V1
    if any(field in spec for field in _ONLY_V2BETA1):
        return ApiVersion.V2BETA1
    written = [entry for entry in metadata.get("managedFields") or () if _wrote_spec(entry)]
    first: Mapping[str, Any] = min(written, key=lambda entry: str(entry.get("time") or ""), default={})
    if first.get("apiVersion") in _VERSIONS:
        return ApiVersion(first["apiVersion"])
    return ApiVersion.V1 if any(field in spec for field in _ONLY_V1) else ApiVersion.V2BETA1


def document_of(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The object as its author wrote it."""
    version = version_of(stored).value
    return {**as_written(stored), "apiVersion": version}


def _wrote_spec(entry: Mapping[str, Any]) -> bool:
    fields = entry.get("fieldsV1") or {}
    return not entry.get("subresource") and ("f:spec" in fields or not fields)
