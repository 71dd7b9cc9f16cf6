"""A role (launcher or worker) and the part of its pod template that every engine honours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from oarsman.job.policies import RestartPolicy


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
        """Whole devices: nvidia.com/gpu, amd.com/gpu, nvidia.com/vgpu, ... but not GPU memory or cores."""
        wanted = {**self.limits, **self.requests}
        return sum(int(amount) for name, amount in wanted.items() if name.rsplit("/", 1)[-1] in ("gpu", "vgpu"))


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
