"""What the hosts of a job are given, wherever they are: variables, launch line, devices. Makes the JobSpec."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from oarsman import names
from oarsman.engines.hosts.core.installed_mpi import LAUNCHERS, FoundMpi
from oarsman.engines.hosts.core.job_spec import HostSpec, JobSpec
from oarsman.job.environment import with_install
from oarsman.job.job import Job, Role
from oarsman.job.references import References

SHIMMED = (*LAUNCHERS, "prterun")
_GRACE_SECONDS = 10


def members_of(job: Job) -> list[str]:
    return [job.launcher_host, *(job.worker_host(index) for index in range(job.workers))]


def role_of(job: Job, member: str) -> Role:
    return job.launcher if member == job.launcher_host or job.worker is None else job.worker


@dataclass(frozen=True, kw_only=True)
class HostSpecs(ABC):
    silence: ClassVar[str]  # seconds after which a host that says nothing is lost

    job: Job
    environment: Mapping[str, str]  # of whoever submitted
    mpi: FoundMpi
    run_folder: str  # here
    gpus: Mapping[str, tuple[str, ...]]  # by member
    packages: str = ""  # the environment it runs in

    def specification(self) -> JobSpec:
        job = self.job
        return JobSpec(
            uid=job.uid,
            job=job.name,
            run_folder=self.run_folder,
            implementation=self.mpi.family.implementation.value,
            mpi=str(self.mpi),
            launcher_host=job.launcher_host,
            launcher_argv=self._launcher_argv(),
            launcher_is_mpirun=job.launch is not None and not job.launch.in_shell and not job.launch.elastic,
            grace=_GRACE_SECONDS,
            silence=self._silence,
            hosts={member: self._host(member) for member in members_of(job)},
            gpus=self.gpus,
            stdin=self.environment.get(names.ENV_INPUT, ""),
        )

    @property
    def _silence(self) -> int:
        return math.ceil(float(self.job.annotation(names.ANNOTATION_SILENCE, self.silence)))

    def is_launcher(self, member: str) -> bool:
        return member == self.job.launcher_host

    def _index(self, member: str) -> int:
        return 0 if self.is_launcher(member) else int(member.rpartition("-")[2])

    def _short(self, member: str) -> str:
        """For paths below which MPI makes sockets, whose paths must not be long."""
        return "l" if self.is_launcher(member) else str(self._index(member))

    def _launcher_argv(self) -> list[str]:
        job = self.job
        known = self.given_to(job.launcher_host)
        references = References()
        argv = [self._local_path(references.replaced(word, known)) for word in job.launcher.container.argv]
        named = os.path.basename(argv[0])
        if argv[0] != named and named in SHIMMED and job.launch is not None and not job.launch.in_shell:
            argv = self._launched(argv)
        return with_install(job.annotation(names.ANNOTATION_INSTALL), argv)

    def _node(self, member: str) -> str:
        """The machine that a member is on; on one machine each is its own."""
        return member

    def _local_path(self, text: str) -> str:
        """Where there is no /etc/mpi, what refers to it is pointed to where its files are."""
        return text.replace(names.MPI_CONFIG_DIR, self._etc)

    def _path(self, member: str, path: str, shims: str) -> str:
        """The launcher finds our shims first, then everybody the job's packages and the user's own PATH. The MPI comes
        last, however it was chosen: in its folder may be another python3, and the shims know where it is."""
        parts = [path, self.mpi.folder]
        parts = [f"{self.packages}/bin", *parts] if self.packages else parts
        return os.pathsep.join([shims, *parts] if self.is_launcher(member) else parts)

    def given_to(self, member: str) -> dict[str, str]:
        """Variables: the user's, ours, then the template's; what our parts rely on cannot be changed."""
        ours = self._ours(member)
        result = {**self._users(member), **ours}
        fields, references = self._fields(member), References()
        for variable in role_of(self.job, member).container.env:
            if variable.field_path is not None:
                result[variable.name] = fields[variable.name]
            else:
                result[variable.name] = self._local_path(references.replaced(variable.value, result))
        return result | {key: value for key, value in ours.items() if key.startswith(("OARSMAN_", "K_MPI"))}

    def _fields(self, member: str) -> dict[str, str]:
        """What the template says in fields of the pod."""
        role = role_of(self.job, member)
        wanted = {each.name: each.field_path for each in role.container.env if each.field_path is not None}
        if not wanted:
            return {}
        address = self.address(member)
        known = {
            "metadata.name": member,
            "metadata.namespace": self.job.namespace,
            "metadata.uid": self.job.uid,
            "spec.nodeName": self._node(member),
            "spec.serviceAccountName": "default",
            **dict.fromkeys(("status.podIP", "status.podIPs", "status.hostIP"), address),
        }
        metadata: Mapping[str, Any] = role.template.get("metadata") or {}
        for kind in ("labels", "annotations"):
            known |= {f"metadata.{kind}['{key}']": str(value) for key, value in (metadata.get(kind) or {}).items()}
        return {name: known.get(path, "") for name, path in wanted.items()}

    @property
    @abstractmethod
    def _etc(self) -> str:
        """Where the launcher finds the files of /etc/mpi."""

    @abstractmethod
    def address(self, member: str) -> str: ...

    @abstractmethod
    def _host(self, member: str) -> HostSpec: ...

    @abstractmethod
    def _launched(self, argv: list[str]) -> list[str]:
        """The same with a shim before it: its launcher is named by a path, and would not be found on PATH."""

    @abstractmethod
    def _users(self, member: str) -> dict[str, str]: ...

    @abstractmethod
    def _ours(self, member: str) -> dict[str, str]: ...


def hand_out_gpus(
    job: Job, there: Callable[[str], Sequence[str]], *, kept: Mapping[str, Sequence[str]], taken: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Devices for each member that asks for some, out of those where it is; those handed out before stay,
    unless others got them meanwhile."""
    wanted = {member: role_of(job, member).container.resources.gpus for member in members_of(job)}
    if not any(wanted.values()):
        return {}
    had = {member: tuple(kept.get(member, ())) for member in wanted}
    given = {
        member: devices
        for member, devices in had.items()
        if len(devices) == wanted[member] and not set(devices) & set(taken)
    }
    used = {*taken, *(device for devices in given.values() for device in devices)}
    for member, count in wanted.items():
        if member not in given:
            given[member] = tuple([device for device in there(member) if device not in used][:count])
            used.update(given[member])
    return given
