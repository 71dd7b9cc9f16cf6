"""What a host of a job is given: variables, folder, volumes, limits. Decided here, carried out by the job agent.

What cannot be honoured is refused before anything starts, in words that say what to change.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from oarsman import names
from oarsman.engines.hosts.core import confinement, limits, shims
from oarsman.engines.hosts.core.cgroups import Slices
from oarsman.engines.hosts.core.host_specs import HostSpecs, role_of
from oarsman.engines.hosts.core.installed_mpi import below_its_own
from oarsman.engines.hosts.core.job_agent import ORDERS
from oarsman.engines.hosts.core.job_spec import Confinement, JobSpec, LocalHostSpec, Mount, Separation
from oarsman.engines.hosts.core.limits import Limits
from oarsman.engines.hosts.core.linux import ip_command, only_loopback
from oarsman.engines.hosts.local import capacity
from oarsman.engines.hosts.local.host import address_of
from oarsman.job.confined import confined_by
from oarsman.job.job import Implementation, Job, Role, Volume, VolumeMount
from oarsman.job.mpi import launcher_variables
from oarsman.text import units
from oarsman.text.sentence import Text, dump, sentences

_MOST_GIVEN = 256 << 20  # bytes that the hosts of somebody else's job are given: they are written down at once
PRIVATE_MASTER_PORT = 29500  # PyTorch's own default; nobody else is on a private network
# Left over from a launcher or a batch system around us; an MPI would believe them.
_FOREIGN = re.compile(
    r"^(OMPI_COMM_|OMPI_UNIVERSE|PMI_|PMIX_|PRTE_|HYDI_|HYDRA_|SLURM_|PBS_|LSB_|OARSMAN_(?!STATE|LANG))"
)


def all_refusals(
    job: Job, *, folder: Path, separation: Separation, environment: Mapping[str, str], looks: bool = True
) -> Iterator[str]:
    """What of this job cannot be honoured on this machine. looks: whether what it names is there counts, too."""
    if unconfined := confinement.refusal(environment, separation):
        yield unconfined
    confined = confined_by(environment) is not None
    said = len(json.dumps(dict(environment))) + len(json.dumps(job.document))
    if confined and said * (job.workers + 1) > _MOST_GIVEN:  # each host is given all of it
        template = Text("its manifest and variables are too long for {count} hosts: {size}")
        yield Text(template, count=job.workers + 1, size=units.size(said))
    if not job.launcher.container.argv:
        yield Text(
            "the launcher has no command. Images are not run on this machine, so there is no entry point to fall back "
            "on: add {field}",
            field="spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].command",
        )
    roles = [("Launcher", job.launcher)] + ([("Worker", job.worker)] if job.worker is not None else [])
    for name, role in roles:
        where = f"spec.mpiReplicaSpecs.{name}.template.spec"
        if role.init_containers:
            why = Text("only the MPI container runs on this machine; do it in the launch command")
            yield _about(f"{where}.initContainers", why)
        if len(role.containers) > 1:
            yield _about(f"{where}.containers", Text("only the MPI container runs on this machine; remove the others"))
        main, container = f"{where}.containers[{role.main}]", role.container
        for variable in container.env:
            if variable.other_source:
                why = Text("{source} exists on Kubernetes only; give the value", source=variable.other_source)
                yield _about(f"{main}.env[{variable.name}]", why)
        if container.env_from:
            yield _about(f"{main}.envFrom", Text("exists on Kubernetes only; give the variables under env"))
        if looks and container.working_dir and not (folder / container.working_dir).is_dir():
            why = Text("{path} is not a folder on this machine", path=container.working_dir)
            yield _about(f"{main}.workingDir", why)
        for mount in container.mounts:
            yield from _mount_refusals(role, mount, where, separation, looks=looks, confined=confined)


def _mount_refusals(
    role: Role, mount: VolumeMount, where: str, separation: Separation, *, looks: bool, confined: bool
) -> Iterator[str]:
    volume = next((v for v in role.volumes if v.name == mount.name), None)
    field = f"{where}.volumes[{mount.name}]"
    if volume is None or volume.kind not in ("emptyDir", "hostPath"):
        kind = volume.kind if volume is not None else "missing"
        why = Text("a volume of kind {kind} cannot be had on one machine; use emptyDir or hostPath", kind=kind)
        yield _about(field, why)
        return
    own_name = volume.kind == "hostPath" and volume.host_path == mount.mount_path and not mount.sub_path
    if confined and (mount.sub_path or (volume.kind == "hostPath" and not own_name)):
        # The server, which sees more than the job may, would look for it.
        why = Text("through this server a folder of the machine has its own name, and a volume is mounted as a whole")
        yield _about(field, why)
        return
    if looks and volume.kind == "hostPath" and not _is_made(volume) and not os.path.exists(volume.host_path or ""):
        yield _about(field, Text("{path} does not exist on this machine", path=volume.host_path))
    if own_name:
        return  # a folder of the machine, wanted under its own name: it can be had without a mount too
    if not separation.mounts:
        yield _about(field, Text("this machine allows no private mounts ({why})", why=separation.trouble))
    if looks and not os.path.exists(mount.mount_path):
        template = Text("the mount point {path} does not exist on this machine; create it or choose another")
        yield _about(field, Text(template, path=mount.mount_path))


def _about(field: str, why: str) -> str:
    return Text("{field}: {problem}", field=field, problem=why)


def _is_made(volume: Volume) -> bool:
    """Whether its folder is made for the job if it is not there."""
    in_memory = volume.kind == "emptyDir" and volume.medium == "Memory"
    return (volume.kind == "emptyDir" and not in_memory) or volume.host_path_type == "DirectoryOrCreate"


def wants_private_network(job: Job, separation: Separation) -> bool:
    """Unless the job shares the machine's network; where that leads nowhere, sharing it would only do harm."""
    shares = job.annotation(names.ANNOTATION_NETWORK, "private") == "host"
    return separation.network and (not shares or only_loopback())


def remarks(job: Job, separation: Separation, slices: Slices) -> list[str]:
    notes: list[str] = []
    if image := job.launcher.container.image:
        notes.append(Text("image {image} is not pulled: the programs of this machine run", image=image))
    if not separation.names:
        notes.append(Text("all ranks run as one host, workers are names only: {why}", why=separation.trouble))
    if said := limits.not_kept(job, slices):
        notes.append(said)
    worker = job.worker.container.argv if job.worker is not None else ()
    if worker and os.path.basename(worker[0]) not in ("sshd", "sleep"):
        notes.append(Text("the worker's own command is not run: a worker is reached without sshd here"))
    return notes


@dataclass(frozen=True, kw_only=True)
class LocalHostSpecs(HostSpecs):
    silence: ClassVar[str] = "10"

    folder: Path  # where it was submitted
    job_folder: str
    separation: Separation
    slices: Slices = Slices(0)
    master_port: int = PRIVATE_MASTER_PORT

    def specification(self) -> JobSpec:
        spec = super().specification()
        return spec._replace(
            separation=self.separation,
            network="private" if self.private else "host",
            ip=ip_command(),
            cgroups=self.slices,
            master_port=self.master_port,
            limits=self._limits,
            limits_told=dump(self._limits_told),
            confinement=self._confinement,
        )

    @cached_property
    def _confinement(self) -> Confinement | None:
        """Of its run folder it sees all but where its agent takes orders."""
        wanted = confined_by(self.environment)
        if wanted is None:
            return None
        found = confinement.confinement(wanted, shown=[*filter(None, [self.packages]), self.run_folder])
        hidden = [*found.hidden, os.path.dirname(self.run_folder), f"{self.run_folder}/{ORDERS}"]
        return found._replace(hidden=hidden)

    @cached_property
    def _wanted_limits(self) -> Limits | None:
        return limits.read(self.environment.get(names.ENV_LIMITS, ""))

    @cached_property
    def _limits(self) -> Limits | None:
        return limits.fitted(self._wanted_limits) if self._wanted_limits is not None else None

    @property
    def _limits_told(self) -> str:
        wanted, given = self._wanted_limits, self._limits
        told = limits.told(wanted, given) if wanted is not None and given is not None else ""
        return sentences(filter(None, (told, limits.not_kept(self.job, self.slices))))

    @cached_property
    def private(self) -> bool:
        return wants_private_network(self.job, self.separation)

    def address(self, member: str) -> str:
        return address_of(self._index(member), launcher=self.is_launcher(member), private=self.private)

    @property
    def _etc(self) -> str:
        return names.MPI_CONFIG_DIR if self.separation.etc else f"{self.run_folder}/etc/mpi"

    def _launched(self, argv: list[str]) -> list[str]:
        chosen = self.job.annotation(names.ANNOTATION_MPI)  # a manifest may name the path of an image
        stated = self.job.launcher.container.working_dir or "."
        path = below_its_own(os.path.normpath(self.folder / stated / argv[0]))
        if chosen or (self.job.path_is_of_image and not os.access(path, os.X_OK)):
            path = os.path.basename(argv[0])
        return [*shims.starter(), "mpirun", path, *argv[1:]]

    def _users(self, member: str) -> dict[str, str]:
        path = self._path(member, self._passed.get("PATH", os.defpath), f"{self.run_folder}/bin")
        return self._passed | {"PATH": path}

    @cached_property
    def _passed(self) -> dict[str, str]:
        return {key: value for key, value in self.environment.items() if not _FOREIGN.match(key)}

    def _ours(self, member: str) -> dict[str, str]:
        job, family = self.job, self.mpi.family
        agent = f"{self.run_folder}/bin/ssh"
        hostfile = f"{self._etc}/{names.HOSTFILE}"
        given = dict(launcher_variables(hostfile=hostfile, agent=agent, slots=job.slots_per_worker))
        if self.is_launcher(member):  # what its shims want to know
            rewrite = job.rewrites_launch_line and family.implementation is Implementation.OPENMPI
            given |= {
                "OARSMAN_MPI": self.mpi.folder,
                "OARSMAN_MPIRUN": self.mpi.by_another_name,
                "OARSMAN_FAMILY": family.value,
                "OARSMAN_HOSTS": " ".join(job.hosts),
                "OARSMAN_SLOTS": str(job.slots_per_worker),
                "OARSMAN_MASTER_PORT": str(self.master_port),
                "OARSMAN_REWRITE": "1" if rewrite else "0",
                "OARSMAN_RANK": "\n".join([*shims.starter(), "rank"]),
            }
        else:  # a daemon on a worker may have to reach further workers
            given = {key: value for key, value in given.items() if value == agent}
        given |= {
            names.ENV_JOB: job.uid,
            "OARSMAN_RUN": self.run_folder,
            "OMPI_MCA_btl": "^ofi",  # it costs a second per start and serves no purpose on one machine
            # Every host believes that the whole machine is its own, and would bind its first rank to the first core.
            "OMPI_MCA_hwloc_base_binding_policy": "none",
            "PRTE_MCA_hwloc_default_binding_policy": "none",
            "I_MPI_PIN": "0",
        }
        if self._confinement is None:  # its agent opens the logs of one that is confined
            given["OARSMAN_LOGS"] = f"{self.job_folder}/logs"
        if os.getuid() == 0 and self._confinement is None:
            given |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if not self.separation.names:
            given["OARSMAN_PLAIN"] = "1"
        cpus = self._limits.cpus if self._limits else ()
        if job.slots > (len(cpus) or capacity.cpu_count()):
            given["OMPI_MCA_mpi_yield_when_idle"] = "1"
        return given | self._own(member)

    def _own(self, member: str) -> dict[str, str]:
        """What differs from host to host."""
        role = "launcher" if self.is_launcher(member) else "worker"
        own = {names.ENV_ROLE: role, names.ENV_HOST: member, "TMPDIR": f"{self.run_folder}/t/{self._short(member)}"}
        if member in self.gpus:
            own["CUDA_VISIBLE_DEVICES"] = ",".join(self.gpus[member])
        return own

    def _host(self, member: str) -> LocalHostSpec:
        role = role_of(self.job, member)
        container = role.container
        memory, cpus = (container.resources.limits.get(name) for name in ("memory", "cpu"))
        environment = self.given_to(member)
        own = self._own(member) | self._fields(member)
        own |= {"PATH": environment["PATH"], "OARSMAN_MPI": self.mpi.folder}
        return LocalHostSpec(
            role=own[names.ENV_ROLE],
            index=self._index(member),
            environment=environment,
            own=own,
            temp=own["TMPDIR"],
            folder=str(self.folder / (container.working_dir or ".")),
            umask=int(self.environment.get(names.ENV_UMASK, "022"), 8),
            memory=int(memory) if memory else None,
            cpus=float(cpus) if cpus else None,
            mounts=[*filter(None, (self._mount(role, mount, member) for mount in container.mounts))],
        )

    def _mount(self, role: Role, mount: VolumeMount, member: str) -> Mount | None:
        volume = next(volume for volume in role.volumes if volume.name == mount.name)
        if self._confinement is not None and volume.kind == "hostPath":
            return None  # it is there under its own name
        source = volume.host_path or f"{self.job_folder}/volumes/{member}/{volume.name}"
        size = f",size={int(volume.size_limit)}" if volume.size_limit else ""
        return Mount(
            source=os.path.join(source, mount.sub_path) if mount.sub_path else source,
            target=mount.mount_path,
            read_only=mount.read_only,
            memory=volume.kind == "emptyDir" and volume.medium == "Memory",
            options=f"mode=1777{size}",
            make=_is_made(volume),
        )
