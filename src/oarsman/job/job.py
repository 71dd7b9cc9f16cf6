"""What was asked: one MPIJob, whichever API version it was written in.

A `Job` is complete (every default is filled in) and valid (every rule was checked). The rest of
the program never looks at the manifest again and never asks which version it came from, except
to choose between the two transports and launcher kinds, which are fields here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from oarsman import names
from oarsman.job.launch import LaunchLine
from oarsman.job.policies import RunPolicy
from oarsman.job.role import Role


class ApiVersion(str, Enum):
    V1 = "kubeflow.org/v1"
    V2BETA1 = "kubeflow.org/v2beta1"


class Implementation(str, Enum):
    OPENMPI = "OpenMPI"
    INTEL = "Intel"
    MPICH = "MPICH"


class Transport(str, Enum):
    """How mpirun reaches a worker: v2beta1 logs in, v1 executes through the API server."""

    SSH = "ssh"
    EXEC = "exec"


class LauncherKind(str, Enum):
    JOB = "Job"
    POD = "Pod"


class LauncherCreation(str, Enum):
    AT_STARTUP = "AtStartup"
    WAIT_FOR_WORKERS_READY = "WaitForWorkersReady"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    name: str
    namespace: str = names.DEFAULT_NAMESPACE
    uid: str = ""
    generation: int = 1
    created_at: datetime | None = None
    owner: str = ""  # who submitted it, where that is known
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    api_version: ApiVersion = ApiVersion.V2BETA1

    slots_per_worker: int = 1
    launcher: Role
    worker: Role | None  # None: a launcher-only job
    run_policy: RunPolicy = RunPolicy()
    implementation: Implementation = Implementation.OPENMPI
    implementation_stated: bool = False  # False: the default, which an engine may improve on
    transport: Transport = Transport.SSH
    launcher_kind: LauncherKind = LauncherKind.JOB
    launcher_creation: LauncherCreation = LauncherCreation.AT_STARTUP
    run_launcher_as_worker: bool = False
    main_container: str | None = None
    ssh_auth_mount_path: str = "/root/.ssh"

    launch: LaunchLine | None = None  # None: the launcher does not visibly start MPI
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)  # as given, for display

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def workers(self) -> int:
        return self.worker.replicas if self.worker is not None else 0

    @property
    def total_replicas(self) -> int:
        return self.workers + 1

    @property
    def launcher_host(self) -> str:
        return names.launcher_name(self.name)

    def worker_host(self, index: int) -> str:
        return names.worker_name(self.name, index)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that take ranks, in hostfile order."""
        workers = tuple(self.worker_host(i) for i in range(self.workers))
        first = (self.launcher_host,) if self.run_launcher_as_worker or not workers else ()
        return first + workers

    @property
    def slots(self) -> int:
        return len(self.hosts) * self.slots_per_worker

    @property
    def elastic(self) -> bool:
        """Whether the launcher itself follows workers that come and go."""
        return self.launch is not None and self.launch.elastic

    @property
    def rewrites_launch_line(self) -> bool:
        """Whether options are spelled so that both generations of Open MPI take them. Others have no such trouble."""
        wanted = self.annotation(names.ANNOTATION_REWRITE, "true") != "false"
        return wanted and self.implementation is Implementation.OPENMPI

    def annotation(self, name: str, default: str = "") -> str:
        return self.annotations.get(name, default)
