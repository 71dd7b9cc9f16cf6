"""Jobs as the operator reads them, from small documents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from oarsman.job.job import Job
from oarsman.manifest import job_from_document

V1, V2BETA1 = "kubeflow.org/v1", "kubeflow.org/v2beta1"
UID = "uid-1"
Object = dict[str, Any]


def document(
    *,
    workers: int | None = 2,
    version: str = V2BETA1,
    launcher: Object | None = None,
    worker: Object | None = None,
    command: list[str] | None = None,
    annotations: dict[str, str] | None = None,
    name: str = "pi",
    namespace: str = "default",
    launcher_role: Object | None = None,
    worker_role: Object | None = None,
    **spec: Any,
) -> Object:
    """`launcher` and `worker` are pod specs or parts of one; `spec` is the rest of the MPIJob's."""
    wanted = ["mpirun", "./pi"] if command is None else command
    main: Object = {"name": "mpi", "image": "pi"}
    roles: Object = {
        "Launcher": {
            "template": {"spec": {"containers": [main | ({"command": wanted} if wanted else {})], **(launcher or {})}},
            **(launcher_role or {}),
        }
    }
    if workers is not None:
        template = {"spec": {"containers": [dict(main)], **(worker or {})}}
        roles["Worker"] = {"replicas": workers, "template": template, **(worker_role or {})}
    return {
        "apiVersion": version,
        "kind": "MPIJob",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": UID,
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": annotations or {},
        },
        "spec": {"mpiReplicaSpecs": roles, **spec},
    }


def a_kube_job(*, uid: str = UID, annotations: dict[str, str] | None = None, **given: Any) -> Job:
    return replace(job_from_document(document(**given)), uid=uid, annotations=annotations or {})
