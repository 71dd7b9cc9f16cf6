"""What was asked: one MPIJob, whichever API version it was written in.

A `Job` is complete (every default is filled in) and valid (every rule was checked). The rest of
the program never looks at the manifest again and never asks which version it came from, except
to choose between the two transports and launcher kinds, which are fields here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from oarsman import names
from oarsman.errors import Problem
from oarsman.job.launch import LaunchLine


# -- policies: what each one does is decided in `plan/policies/`, one file each -----------------------------
class CleanPodPolicy(str, Enum):
    NONE = "None"
    RUNNING = "Running"
    ALL = "All"


class RestartPolicy(str, Enum):
    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    ALWAYS = "Always"
    EXIT_CODE = "ExitCode"  # 1-127 is permanent, 128-255 is worth another try


class ManagedBy(str, Enum):
    US = "kubeflow.org/mpi-operator"
    TRAINING_OPERATOR = "kubeflow.org/training-operator"  # v1's name for the same thing
    MULTIKUEUE = "kueue.x-k8s.io/multikueue"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingPolicy:
    min_available: int | None = None
    queue: str = ""
    min_resources: Mapping[str, Decimal] | None = None
    priority_class: str = ""
    schedule_timeout_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPolicy:
    clean_pod_policy: CleanPodPolicy = CleanPodPolicy.NONE
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None  # None: see plan/policies/retry.py
    suspend: bool = False
    managed_by: ManagedBy | None = None
    scheduling: SchedulingPolicy | None = None


# -- roles: launcher and worker, and the part of their pod template that every engine honours ----------------
@dataclass(frozen=True, slots=True, kw_only=True)
class EnvVar:
    name: str
    value: str = ""
    field_path: str | None = None  # valueFrom.fieldRef.fieldPath
    other_source: str | None = None  # secretKeyRef, configMapKeyRef, resourceFieldRef: Kubernetes only


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    name: str
    kind: str  # emptyDir, hostPath, configMap, ...
    host_path: str | None = None
    host_path_type: str = ""
    medium: str = ""  # emptyDir: "" or "Memory"
    size_limit: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeMount:
    name: str
    mount_path: str
    sub_path: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Amounts in base units: cores, bytes, devices."""

    requests: Mapping[str, Decimal] = field(default_factory=dict)
    limits: Mapping[str, Decimal] = field(default_factory=dict)

    def effective(self, name: str) -> Decimal:
        """What must be there: the request, or the limit where no request was made."""
        return self.requests.get(name, self.limits.get(name, Decimal(0)))

    @property
    def gpus(self) -> int:
        return sum(int(amount) for name, amount in {**self.limits, **self.requests}.items() if is_gpu(name))


def is_gpu(resource: str) -> bool:
    """A whole device: gpu, nvidia.com/gpu, amd.com/gpu, nvidia.com/vgpu, ... but not its memory or cores."""
    return resource.rsplit("/", 1)[-1] in ("gpu", "vgpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    name: str
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str | None = None
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[str, ...] = ()  # names of the sources, Kubernetes only
    resources: Resources = Resources()
    mounts: tuple[VolumeMount, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        return self.command + self.args


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    replicas: int = 1
    restart_policy: RestartPolicy = RestartPolicy.NEVER
    containers: tuple[Container, ...]
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    main: int = 0  # which container is the MPI one
    template: Mapping[str, Any] = field(default_factory=dict, repr=False)  # the whole pod template, for Kubernetes

    @property
    def container(self) -> Container:
        return self.containers[self.main]


# -- the job -------------------------------------------------------------------------------------------------
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
    warnings: tuple[Problem, ...] = field(default=(), compare=False)  # what is read all the same

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
    def launcher_path(self) -> str:
        """Where its launch line says that the launcher of its MPI is; empty: it may be any. What a shell is told, it
        looks for itself, and what is installed before, nobody can look for."""
        line = self.launch
        if line is None or line.in_shell or line.launcher == "horovodrun" or self.annotation(names.ANNOTATION_INSTALL):
            return ""
        return line.path if "/" in line.path and "$" not in line.path else ""

    @property
    def mpi_path(self) -> str:
        """Where its MPI is, if it says so: its launcher, or a folder of it."""
        chosen = self.annotation(names.ANNOTATION_MPI)
        return self.launcher_path if not chosen else chosen if "/" in chosen else ""

    @property
    def is_ours(self) -> bool:
        """Whether it is left to us and nobody else (managedBy)."""
        return self.run_policy.managed_by in (None, ManagedBy.US, ManagedBy.TRAINING_OPERATOR)

    @property
    def limits_memory(self) -> bool:
        return any(role and "memory" in role.container.resources.limits for role in (self.launcher, self.worker))

    @property
    def path_is_of_image(self) -> bool:
        """Whether that path was written for the image that the job names. Elsewhere its MPI is whichever is there."""
        return bool(self.launcher.container.image) and not self.annotation(names.ANNOTATION_MPI)

    @property
    def rewrites_launch_line(self) -> bool:
        """Whether options are spelled so that both generations of Open MPI take them. Others have no such trouble."""
        wanted = self.annotation(names.ANNOTATION_REWRITE, "true") != "false"
        return wanted and self.implementation is Implementation.OPENMPI

    def annotation(self, name: str, default: str = "") -> str:
        return self.annotations.get(name, default)
