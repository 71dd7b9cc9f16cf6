"""What a manifest that is silent means, in each version. Nothing outside this file knows the differences.

v1 starts a bare launcher pod and reaches workers through the API server; v2beta1 starts a Job and
logs in over SSH. v1 lets the launcher take ranks when it holds a GPU; v2beta1 asks explicitly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oarsman.job.job import (
    ApiVersion,
    CleanPodPolicy,
    Container,
    Implementation,
    LauncherCreation,
    LauncherKind,
    RestartPolicy,
    Transport,
)
from oarsman.manifest.document import AnyMPIJob, MPIJobV1

DEFAULT_SSH_PATH = "/root/.ssh"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFacts:
    """What the version alone decides."""

    transport: Transport
    launcher_kind: LauncherKind
    launcher_restarts: RestartPolicy
    worker_restarts: RestartPolicy


FACTS = {
    ApiVersion.V1: VersionFacts(
        transport=Transport.EXEC,
        launcher_kind=LauncherKind.POD,
        launcher_restarts=RestartPolicy.NEVER,
        worker_restarts=RestartPolicy.NEVER,
    ),
    ApiVersion.V2BETA1: VersionFacts(
        transport=Transport.SSH,
        launcher_kind=LauncherKind.JOB,
        launcher_restarts=RestartPolicy.ON_FAILURE,
        worker_restarts=RestartPolicy.NEVER,
    ),
}


def api_version(document: AnyMPIJob) -> ApiVersion:
    return ApiVersion(document.api_version)


def clean_pod_policy(document: AnyMPIJob) -> CleanPodPolicy:
    """runPolicy's word counts; v1's older field at the top of the spec speaks where that is silent."""
    said = document.spec.run_policy.clean_pod_policy
    if said is None and isinstance(document, MPIJobV1):
        said = document.spec.clean_pod_policy
    return CleanPodPolicy(said) if said is not None else CleanPodPolicy.NONE


def implementation(document: AnyMPIJob) -> tuple[Implementation, bool]:
    """The MPI, and whether the manifest says so."""
    said = None if isinstance(document, MPIJobV1) else document.spec.mpi_implementation
    return (Implementation(said), True) if said is not None else (Implementation.OPENMPI, False)


def launcher_creation(document: AnyMPIJob) -> LauncherCreation:
    if isinstance(document, MPIJobV1):
        return LauncherCreation.AT_STARTUP
    return LauncherCreation(document.spec.launcher_creation_policy)


def launcher_takes_ranks(document: AnyMPIJob, containers: Iterable[Container]) -> bool:
    if isinstance(document, MPIJobV1):
        return any("gpu" in name for container in containers for name in container.resources.limits)
    return document.spec.run_launcher_as_worker


def ssh_auth_mount_path(document: AnyMPIJob) -> str:
    return DEFAULT_SSH_PATH if isinstance(document, MPIJobV1) else document.spec.ssh_auth_mount_path


def main_container(document: AnyMPIJob) -> str | None:
    return (document.spec.main_container or None) if isinstance(document, MPIJobV1) else None
