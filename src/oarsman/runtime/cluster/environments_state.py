"""How far an environment is: what was written down of it, or else what its build looks like now. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from oarsman import names
from oarsman.engines.kube import environments as kept
from oarsman.engines.kube import views
from oarsman.runtime.environments import EnvironmentRecord, EnvironmentWanted, State

Result = dict[str, Any]
_LONGEST: Final = 300
NO_CLAIM: Final = f"there is no claim {kept.CLAIM} in this namespace"
CLAIM_HINT: Final = "make one that several nodes can mount; docs/guide/kubernetes.md has the lines for kubectl apply"


def record(found: views.ConfigMap, result: Result, used_by: Sequence[str]) -> EnvironmentRecord:
    meta, data = found.metadata, found.data
    state: State = result["state"]
    return EnvironmentRecord(
        wanted=wanted_of(found), state=state, message=result.get("message", ""),
        owner=meta.annotations.get(names.ANNOTATION_SUBMITTED_BY, ""),
        created_at=meta.creation_timestamp or datetime.fromtimestamp(0, UTC),
        built_at=datetime.fromisoformat(result["builtAt"]) if result.get("builtAt") else None,
        digest=data.get(kept.DIGEST, ""), python=result.get("python", ""),
        packages=tuple(result.get("packages", ())), size_bytes=result.get("sizeBytes"), used_by=tuple(used_by),
    )  # fmt: skip


def wanted_of(found: views.ConfigMap) -> EnvironmentWanted:
    """One that somebody else has written by hand may lack anything, or have more."""
    said = _parsed(found.data.get(kept.SPEC, ""))
    fields = {name: said[name] for name in EnvironmentWanted.__dataclass_fields__ if name in said}
    return EnvironmentWanted(**{**fields, "name": found.metadata.labels.get(kept.LABEL, "")})


def result_of(digest: str, build: views.Job | None, pod: views.Pod | None) -> Result:
    """What the build has come to. `state` is always there."""
    ended = kept.end_of(build)
    last = pod.status.container_statuses[0].state.terminated if pod and pod.status.container_statuses else None
    if ended == kept.READY:
        at = last.finished_at if last is not None else None
        when = at or datetime.now(UTC)
        told = _parsed(last.message) if last is not None else {}
        return {kept.DIGEST: digest, "state": kept.READY, "builtAt": when.isoformat(), **_bounded(told)}
    if ended == kept.FAILED:
        return {kept.DIGEST: digest, "state": kept.FAILED, "message": _why_failed(build, pod, last)}
    if build is None:
        return {"state": kept.FAILED, "message": "its build was taken away before it ended; build it again"}
    if pod is None:
        return {
            "state": "Waiting",
            "message": f"its Job has made no pod yet; see kubectl describe job {build.metadata.name}",
        }
    if pod.status.phase == "Pending":
        return {"state": "Waiting", "message": _why_waiting(pod)}
    return {"state": "Building"}


def _why_failed(build: views.Job | None, pod: views.Pod | None, last: views.Terminated | None) -> str:
    """pip's last error, or else the last line; the Job's own words where no container ran."""
    lines = [line.strip() for line in (last.message if last is not None else "").splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    if errors or lines:
        return (errors or lines)[-1][:_LONGEST]
    if last is not None:
        return f"the build ended with code {last.exit_code}" + (f" ({last.reason})" if last.reason else "")
    if pod is not None and (pod.status.message or pod.status.reason):
        return (pod.status.message or pod.status.reason)[:_LONGEST]
    said = [c.message for c in build.status.conditions if c.type == "Failed"] if build is not None else []
    return (said[-1] if said else "the build failed")[:_LONGEST]


def _why_waiting(pod: views.Pod) -> str:
    placed = pod.status.condition("PodScheduled")
    if placed is not None and placed.status == "False":
        if kept.CLAIM in placed.message and "not found" in placed.message:
            return f"{NO_CLAIM}: {CLAIM_HINT}"
        return f"not scheduled: {placed.message or placed.reason}"[:_LONGEST]
    for container in pod.status.container_statuses:
        waiting = container.state.waiting
        if waiting is not None and waiting.reason not in ("", "ContainerCreating", "PodInitializing"):
            return f"{waiting.reason}: {waiting.message}".rstrip(": ")[:_LONGEST]
    return ""


def _bounded(told: Mapping[str, Any]) -> Result:
    """A pod's last words are anybody's: only what has the right shape is taken over."""
    packages, size = told.get("packages"), told.get("sizeBytes")
    return {
        "python": str(told.get("python") or "")[:40],
        "packages": [str(package)[:200] for package in packages][:500] if isinstance(packages, list) else [],
        "sizeBytes": size if isinstance(size, int) else None,
    }


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
