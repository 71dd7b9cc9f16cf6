"""Documents for people: a job's as given, as a fresh start, with defaults filled in; and templates to start from."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from oarsman import names
from oarsman.job.job import ApiVersion, Job
from oarsman.service.models import Template
from oarsman.text.catalogue import N_

Document = dict[str, Any]
_OF_ANOTHER_JOB = names.SERVERS_OWN | {"finalizers"}
_OF_ANOTHER_RUN = (
    names.ANNOTATION_STOP,
    names.ANNOTATION_ATTEMPT,
    names.ANNOTATION_SUBMITTED_BY,
    names.ANNOTATION_API_VERSION,
    names.ANNOTATION_RUN,
)


def as_given(document: Mapping[str, Any]) -> Document:
    """Without what a server keeps in it for itself."""
    given = {name: value for name, value in document.items() if name != "status"}
    metadata = given.get("metadata")
    if isinstance(metadata, Mapping) and "managedFields" in metadata:
        given["metadata"] = {name: value for name, value in metadata.items() if name != "managedFields"}
    return given


def for_another_run(document: Mapping[str, Any]) -> Document:
    """A copy that can be submitted: what was true of the first run alone is not in it."""
    fresh = copy.deepcopy(as_given(document))
    metadata = fresh["metadata"] = {k: v for k, v in fresh["metadata"].items() if k not in _OF_ANOTHER_JOB}
    annotations = metadata.pop("annotations", None) or {}
    if kept := {name: value for name, value in annotations.items() if name not in _OF_ANOTHER_RUN}:
        metadata["annotations"] = kept
    return fresh


def completed(job: Job) -> Document:
    """The document with every default that the job was completed with. What was said stays as it was said."""
    document = copy.deepcopy(as_given(job.document))
    if not isinstance(document.get("spec"), dict):  # of one that is not valid, which only others than us submit
        return document
    document["metadata"].setdefault("namespace", job.namespace)
    spec = document["spec"]
    spec.setdefault("slotsPerWorker", job.slots_per_worker)
    policy = spec["runPolicy"] = dict(spec.get("runPolicy") or {})
    if "cleanPodPolicy" not in spec:  # v1's older place for it
        policy.setdefault("cleanPodPolicy", job.run_policy.clean_pod_policy.value)
    policy.setdefault("suspend", job.run_policy.suspend)
    if job.api_version is ApiVersion.V2BETA1:
        spec.setdefault("mpiImplementation", job.implementation.value)
        spec.setdefault("launcherCreationPolicy", job.launcher_creation.value)
        spec.setdefault("sshAuthMountPath", job.ssh_auth_mount_path)
        spec.setdefault("runLauncherAsWorker", job.run_launcher_as_worker)
    roles = spec.get("mpiReplicaSpecs") or {}
    for name, role in (("Launcher", job.launcher), ("Worker", job.worker)):
        if role is not None and isinstance(roles.get(name), dict):
            roles[name].setdefault("replicas", role.replicas)
            roles[name].setdefault("restartPolicy", role.restart_policy.value)
    return document


_SEEDS = "seeds"  # in the examples of the tree; an installed package has them beside the starters
# name -> file, title, what it is good for. The order is that of the list shown.
_KNOWN = {
    "command": ("command.yaml", N_("An own command"), "Two workers that run whatever you write in its place."),
    "hello": ("hello.yaml", N_("Hello"), "Four ranks on two workers, each says where it runs."),
    "pi": ("pi.yaml", N_("Pi"), "Two ranks throw darts and add up their hits: the usual first MPI job."),
    "tensorflow-benchmarks": (
        f"{_SEEDS}/tensorflow-benchmarks-v2beta1.yaml",
        N_("TensorFlow benchmarks"),
        "ResNet-101 with Horovod on two workers of two GPUs each; on Kubernetes, where its image is.",
    ),
    "tensorflow-benchmarks-v1": (
        f"{_SEEDS}/tensorflow-benchmarks-v1.yaml",
        N_("TensorFlow benchmarks, v1"),
        "The same in the older API version.",
    ),
    "tensorflow-mnist-elastic": (
        f"{_SEEDS}/tensorflow-mnist-elastic.yaml",
        N_("Elastic training"),
        "Horovod Elastic with one to three workers; on Kubernetes, where its image is.",
    ),
    "failure": ("failure.yaml", N_("A failure"), "One rank of four gives up: see how that is explained."),
}


@cache
def all_templates() -> tuple[Template, ...]:
    return tuple(
        Template(name=name, title=title, description=description, manifest=_text(file))
        for name, (file, title, description) in _KNOWN.items()
    )


def _text(file: str) -> str:
    packaged = resources.files("oarsman.service").joinpath("starters", *file.split("/"))
    if packaged.is_file():
        return packaged.read_text("utf-8")
    return (Path(__file__).parents[3] / "examples" / file).read_text("utf-8")
