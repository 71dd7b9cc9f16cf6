"""What all objects of a job share: names, labels, owner; and the options of whoever runs the operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from oarsman import names
from oarsman.engines.kube.client.resources import Resource
from oarsman.job.job import ApiVersion, Job


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeOptions:
    cluster_domain: str = ""  # appended to the names of hosts; empty: names end in .svc
    kubectl_image: str = "oarsman/kubectl-delivery:latest"  # any image with a shell and kubectl
    gang_scheduler: str = ""  # volcano, kubernetes, or the name of a scheduler with the scheduler-plugins' PodGroup
    barrier_seconds: int = 300  # how long a worker that has an address may refuse a login


Object = dict[str, Any]

LAUNCHER: Final = names.ROLE_LAUNCHER
WORKER: Final = "worker"
OPERATOR_NAMES: Final = {ApiVersion.V1: "mpijob-controller", ApiVersion.V2BETA1: "mpi-operator"}


def owner(job: Job) -> Object:
    return {
        "apiVersion": job.api_version.value,
        "kind": names.KIND,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned(job: Job, resource: Resource, name: str, **parts: Any) -> Object:
    """An object other than a pod. `app` is the label upstream puts there; ours lets us watch our own alone."""
    labels = {"app": job.name, names.LABEL_JOB: job.name, names.LABEL_OPERATOR: OPERATOR_NAMES[job.api_version]}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": job.namespace, "labels": labels, "ownerReferences": [owner(job)]},
        **parts,
    }


def selector(job: Job) -> dict[str, str]:
    return {names.LABEL_OPERATOR: OPERATOR_NAMES[job.api_version], names.LABEL_JOB: job.name}


def pod_labels(job: Job, index: int | None) -> dict[str, str]:
    """Of a worker, or, without an index, of the launcher."""
    role = LAUNCHER if index is None else WORKER
    master = role == LAUNCHER and job.api_version is ApiVersion.V1  # as clients of v1 look for it
    labels = {**selector(job), names.LABEL_ROLE: names.ROLE_MASTER if master else role}
    if index is not None:
        labels[names.LABEL_INDEX] = str(index + int(job.run_launcher_as_worker))
    elif job.run_launcher_as_worker:
        labels[names.LABEL_INDEX] = "0"
    if job.api_version is ApiVersion.V1:  # the labels of both of its earlier operators
        labels |= {
            "group-name": names.GROUP,
            "mpi-job-name": job.name,
            "mpi-job-role": role,
            "training.kubeflow.org/replica-type": role,
        }
    return labels


def host(job: Job, pod: str, options: KubeOptions) -> str:
    """The name a pod is reached by."""
    domain = f".{options.cluster_domain}" if options.cluster_domain else ""
    return f"{pod}.{job.name}.{job.namespace}.svc{domain}"
