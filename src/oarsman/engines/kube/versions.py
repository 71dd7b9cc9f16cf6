"""Which API version a job was written in.

One CRD serves both versions and stores one of them, so every object is read back as v2beta1. What was
meant is told, in this order, by our own annotation, by what the operator wrote down when it first saw
the job, by fields only one version has, and by the record of who first wrote the spec in which version
(later edits come in the version that a tool prefers, which says nothing about the author).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oarsman import names
from oarsman.job.job import ApiVersion

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
