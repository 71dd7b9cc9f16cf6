"""The Kubernetes objects of an environment (ConfigMap, build Job, clean-up Job), and the state they amount to. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import resources
from typing import Any, Final

from oarsman import names
from oarsman.engines.kube import environments as kept
from oarsman.engines.kube import views
from oarsman.engines.kube.client import PartialObject
from oarsman.job.environment import EnvironmentRecord, EnvironmentWanted, without_secrets
from oarsman.store.environments import MPI, last_error
from oarsman.text.secrets import masked
from oarsman.text.sentence import Text

Document = dict[str, Any]

BUILD: Final = "build"  # its container
BUILDS: Final = "builds"  # in the ConfigMap: every digest that was ever built under this name
_REQUIREMENTS: Final = "OARSMAN_REQUIREMENTS"
_ANYBODY: Final = 65532  # where the namespace lets nobody be root, and the image does not say who else to be
_CLEAR_UP: Final = """
cd "$OARSMAN_PLACE" || exit 1
for digest in $OARSMAN_DIGESTS; do rm -rf "$digest" "builds/$digest-"*; done
"""


def config_map(wanted: EnvironmentWanted, digest: str, builds: Iterable[str], owner: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": kept.object_name(wanted.name),
            "labels": {kept.LABEL: wanted.name},
            "annotations": {names.ANNOTATION_SUBMITTED_BY: owner},
        },
        "data": {
            kept.SPEC: json.dumps(asdict(without_secrets(wanted))),
            kept.DIGEST: digest,
            BUILDS: " ".join(dict.fromkeys((*builds, digest))),
        },
    }


def build_job(wanted: EnvironmentWanted, digest: str, *, restricted: bool) -> Document:
    script = (resources.files("oarsman.backends.kube") / "environment_build.sh").read_text()
    variables = {
        "OARSMAN_DIGEST": digest,
        "OARSMAN_PYTHON": wanted.python or "",
        _REQUIREMENTS: _requirements(wanted),
    }
    labels, name = {kept.LABEL: wanted.name}, kept.build_name(wanted.name, digest)
    job = _job(name, labels, wanted.image or "", script, variables, restricted)
    if wanted != without_secrets(wanted):
        given = job["spec"]["template"]["spec"]["containers"][0]["env"][-1]
        del given["value"]
        given["valueFrom"] = {"secretKeyRef": {"name": name, "key": _REQUIREMENTS}}
    return job


def build_secret(wanted: EnvironmentWanted, job: PartialObject) -> Document | None:
    """What the build alone is to read, where there are credentials in it; it goes with its Job."""
    if wanted == without_secrets(wanted):
        return None
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job.metadata.name, "uid": job.metadata.uid}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": job.metadata.name,
            "labels": {kept.LABEL: wanted.name},
            "ownerReferences": [owner],
        },
        "stringData": {_REQUIREMENTS: _requirements(wanted)},
    }


def _requirements(wanted: EnvironmentWanted) -> str:
    return "\n".join([wanted.requirements, *([MPI[wanted.mpi]] if wanted.mpi else [])])


def clearing_job(digests: Iterable[str], image: str, *, restricted: bool) -> Document:
    """Has no label of an environment: there is none any more."""
    wanted = list(digests)
    variables = {"OARSMAN_DIGESTS": " ".join(wanted)}
    job = _job(clearing_name(wanted[0]), {}, image, _CLEAR_UP, variables, restricted)
    job["spec"]["ttlSecondsAfterFinished"] = 60
    return job


def clearing_name(digest: str) -> str:
    return f"oarsman-env-clear-{digest}"


def _job(
    name: str, labels: dict[str, str], image: str, script: str, variables: dict[str, str], restricted: bool
) -> Document:
    nobody = {"runAsNonRoot": True, "runAsUser": _ANYBODY, "fsGroup": _ANYBODY} if restricted else {}
    container = {
        "name": BUILD,
        "image": image,
        "command": ["/bin/sh", "-c", script],
        # A server would read $(NAME) in a value as a variable.
        "env": [
            {"name": key, "value": value.replace("$", "$$")}
            for key, value in {"OARSMAN_PLACE": kept.PLACE, **variables}.items()
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": kept.CLAIM, "mountPath": kept.PLACE}],
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, **nobody},
        "containers": [container],
        "volumes": [{"name": kept.CLAIM, "persistentVolumeClaim": {"claimName": kept.CLAIM}}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {"backoffLimit": 0, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


Result = dict[str, Any]
_LONGEST: Final = 300
NO_CLAIM: Final = Text("there is no claim {claim} in this namespace", claim=kept.CLAIM)
CLAIM_HINT: Final = Text(
    "make one that several nodes can mount; docs/guide/kubernetes.md has the lines for kubectl apply"
)


def record(found: views.ConfigMap, result: Result, used_by: Sequence[str]) -> EnvironmentRecord:
    return EnvironmentRecord(
        wanted=wanted_of(found),
        state=result["state"],
        message=result.get("message", ""),
        owner=found.metadata.annotations.get(names.ANNOTATION_SUBMITTED_BY, ""),
        created_at=found.metadata.creation_timestamp or datetime.fromtimestamp(0, UTC),
        built_at=datetime.fromisoformat(result["builtAt"]) if result.get("builtAt") else None,
        digest=found.data.get(kept.DIGEST, ""),
        python=result.get("python", ""),
        packages=tuple(result.get("packages", ())),
        size_bytes=result.get("sizeBytes"),
        used_by=tuple(used_by),
    )


def wanted_of(found: views.ConfigMap) -> EnvironmentWanted:
    """One that somebody else has written by hand may lack anything, or have more."""
    said = _parsed(found.data.get(kept.SPEC, ""))
    fields = {name: said[name] for name in EnvironmentWanted.__dataclass_fields__ if name in said}
    return EnvironmentWanted(**{**fields, "name": found.metadata.labels.get(kept.LABEL, "")})


def result_of(digest: str, build: views.BatchJob | None, pod: views.Pod | None) -> Result:
    """What the build has come to. `state` is always there."""
    ended = kept.end_of(build)
    last = pod.status.container_statuses[0].state.terminated if pod and pod.status.container_statuses else None
    if ended == kept.READY:
        when = (last.finished_at if last is not None else None) or datetime.now(UTC)
        told = _parsed(last.message) if last is not None else {}
        packages, size = told.get("packages"), told.get("sizeBytes")
        return {  # a pod's last words are anybody's: only what has the right shape is taken over
            kept.DIGEST: digest,
            "state": kept.READY,
            "builtAt": when.isoformat(),
            "python": str(told.get("python") or "")[:40],
            "packages": [str(package)[:200] for package in packages][:500] if isinstance(packages, list) else [],
            "sizeBytes": size if isinstance(size, int) else None,
        }
    if ended == kept.FAILED:
        return {kept.DIGEST: digest, "state": kept.FAILED, "message": _why_failed(build, pod, last)}
    if build is None:
        return {"state": kept.FAILED, "message": Text("its build was deleted before it finished; build it again")}
    if pod is None:
        why = Text("its Job has created no pod yet; see kubectl describe job {name}", name=build.metadata.name)
        return {"state": "Waiting", "message": why}
    if pod.status.phase == "Pending":
        return {"state": "Waiting", "message": _why_waiting(pod)}
    return {"state": "Building"}


def _why_failed(build: views.BatchJob | None, pod: views.Pod | None, last: views.Terminated | None) -> str:
    """What the build said last; the Job's own words where no container ran."""
    if last is not None and (said := last_error(last.message)):
        return masked(said)
    if last is not None:
        what = Text("the build ended with code {code}", code=last.exit_code)
        return Text("{what} ({why})", what=what, why=last.reason) if last.reason else what
    if pod is not None and (pod.status.message or pod.status.reason):
        return (pod.status.message or pod.status.reason)[:_LONGEST]
    told = [c.message for c in build.status.conditions if c.type == "Failed"] if build is not None else []
    return told[-1][:_LONGEST] if told else Text("the build failed")


def _why_waiting(pod: views.Pod) -> str:
    placed = pod.status.condition("PodScheduled")
    if placed is not None and placed.status == "False":
        if kept.CLAIM in placed.message and "not found" in placed.message:
            return Text("{what}: {why}", what=NO_CLAIM, why=CLAIM_HINT)
        return Text("not scheduled: {why}", why=(placed.message or placed.reason)[: _LONGEST - 15])
    for container in pod.status.container_statuses:
        waiting = container.state.waiting
        if waiting is not None and waiting.reason not in ("", "ContainerCreating", "PodInitializing"):
            return f"{waiting.reason}: {waiting.message}".rstrip(": ")[:_LONGEST]
    return ""


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
