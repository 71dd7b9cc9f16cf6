"""What a host of a job is given: variables, folder, volumes, limits. Decided here, carried out by the job agent.

Also the judge of what this engine cannot honour: that is refused before anything starts, in words
that say what to change.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from oarsman import names
from oarsman.engines.hosts.core.cgroups import Slices
from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.core.separation import Separation, only_loopback
from oarsman.engines.hosts.local.host_network import address_of
from oarsman.job.install import with_install
from oarsman.job.job import Implementation, Job
from oarsman.job.mpi import launcher_variables
from oarsman.job.role import Container, Role, Volume, VolumeMount
from oarsman.text.sentence import Text

_REFERENCE = re.compile(r"\$(\$|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))")
# Left over from a launcher or a batch system around us; an MPI would believe them.
_FOREIGN = re.compile(
    r"^(OMPI_COMM_|OMPI_UNIVERSE|PMI_|PMIX_|PRTE_|HYDI_|HYDRA_|SLURM_|PBS_|LSB_|OARSMAN_(?!STATE|LANG))"
)


def refusal(job: Job, *, folder: Path, separation: Separation) -> str | None:
    """The first thing in this job that cannot be honoured on this machine, or None."""
    return next(all_refusals(job, folder=folder, separation=separation), None)


def all_refusals(job: Job, *, folder: Path, separation: Separation) -> Iterator[str]:
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
        yield from _container_refusals(role.container, f"{where}.containers[{role.main}]", folder)
        for mount in role.container.mounts:
            yield from _mount_refusals(role, mount, where, separation)


def _container_refusals(container: Container, where: str, folder: Path) -> Iterator[str]:
    for variable in container.env:
        if variable.other_source:
            why = Text("{source} exists on Kubernetes only; give the value", source=variable.other_source)
            yield _about(f"{where}.env[{variable.name}]", why)
    if container.env_from:
        yield _about(f"{where}.envFrom", Text("exists on Kubernetes only; give the variables under env"))
    if container.working_dir and not (folder / container.working_dir).is_dir():
        why = Text("{path} is not a folder on this machine", path=container.working_dir)
        yield _about(f"{where}.workingDir", why)


def _mount_refusals(role: Role, mount: VolumeMount, where: str, separation: Separation) -> Iterator[str]:
    volume = next((v for v in role.volumes if v.name == mount.name), None)
    field = f"{where}.volumes[{mount.name}]"
    if volume is None or volume.kind not in ("emptyDir", "hostPath"):
        kind = volume.kind if volume is not None else "missing"
        why = Text("a volume of kind {kind} cannot be had on one machine; use emptyDir or hostPath", kind=kind)
        yield _about(field, why)
        return
    if volume.kind == "hostPath" and not _is_made(volume) and not os.path.exists(volume.host_path or ""):
        yield _about(field, Text("{path} does not exist on this machine", path=volume.host_path))
    if _is_in_place(volume, mount):
        return
    if not separation.mounts:
        yield _about(field, Text("this machine allows no private mounts ({why})", why=separation.trouble))
    if not os.path.exists(mount.mount_path):
        template = Text("the mount point {path} does not exist on this machine; create it or choose another")
        yield _about(field, Text(template, path=mount.mount_path))


def _about(field: str, why: str) -> str:
    return Text("{field}: {problem}", field=field, problem=why)


def _is_made(volume: Volume) -> bool:
    """Whether its folder is made for the job if it is not there."""
    in_memory = volume.kind == "emptyDir" and volume.medium == "Memory"
    return (volume.kind == "emptyDir" and not in_memory) or volume.host_path_type == "DirectoryOrCreate"


def _is_in_place(volume: Volume, mount: VolumeMount) -> bool:
    """A folder of the machine, wanted under its own name: it can be had without a mount too."""
    return volume.kind == "hostPath" and volume.host_path == mount.mount_path and not mount.sub_path


def wants_private_network(job: Job, separation: Separation) -> bool:
    """Unless the job shares the machine's network; where that leads nowhere, sharing it would only do harm."""
    shares = job.annotation(names.ANNOTATION_NETWORK, "private") == "host"
    return separation.network and (not shares or only_loopback())


def remarks(job: Job, separation: Separation, slices: Slices) -> list[str]:
    """What is done differently here, each in one plain sentence."""
    image = job.launcher.container.image
    notes: list[str] = (
        [Text("image {image} is not pulled: the programs of this machine run", image=image)] if image else []
    )
    if not separation.names:
        notes.append(Text("all ranks run as one host, workers are names only: {why}", why=separation.trouble))
    roles = [role for role in (job.launcher, job.worker) if role is not None]
    if any("memory" in role.container.resources.limits for role in roles) and not slices.memory:
        notes.append(Text("memory limits are not enforced: no control group can be made here"))
    worker = job.worker.container.argv if job.worker is not None else ()
    if worker and os.path.basename(worker[0]) not in ("sshd", "sleep"):
        notes.append(Text("the worker's own command is not run: a worker is reached without sshd here"))
    return notes


class LocalHostSpecs:
    """Makes the job agent's specification for one job."""

    def __init__(
        self,
        job: Job,
        *,
        environment: Mapping[str, str],
        folder: Path,
        mpi: FoundMpi,
        separation: Separation,
        job_folder: str,
        run_folder: str,
        starter: list[str],
        master_port: int,
        ranks_share_cores: bool,
        private: bool,
        gpus: Mapping[str, tuple[str, ...]],
        packages: Path | None = None,
    ) -> None:
        self._job = job
        self._base = {key: value for key, value in environment.items() if not _FOREIGN.match(key)}
        self._umask = int(environment.get(names.ENV_UMASK, "022"), 8)
        self._folder = folder
        self._mpi = mpi
        self._separation = separation
        self._job_folder = job_folder
        self._run = run_folder
        self._starter = starter
        self._port = master_port
        self._share = ranks_share_cores
        self._gpus = gpus
        self._packages = packages
        self.private = private
        self._etc = names.MPI_CONFIG_DIR if separation.etc else f"{run_folder}/etc/mpi"

    def address(self, host: str) -> str:
        launcher = host == self._job.launcher_host
        return address_of(0 if launcher else int(host.rpartition("-")[2]), launcher=launcher, private=self.private)

    def hosts(self) -> dict[str, dict[str, Any]]:
        job = self._job
        result = {job.launcher_host: self._host(job.launcher, job.launcher_host, "launcher", 0)}
        if job.worker is not None:
            for index in range(job.workers):
                name = job.worker_host(index)
                result[name] = self._host(job.worker, name, "worker", index)
        return result

    def launcher_argv(self) -> list[str]:
        container = self._job.launcher.container
        environment = self.environment(self._job.launcher, self._job.launcher_host, "launcher")
        argv = [self._local_path(expand(word, environment)) for word in container.argv]
        launcher = os.path.basename(argv[0])
        if argv[0] != launcher and self._job.launch is not None and not self._job.launch.in_shell:
            named = argv[0] if os.access(argv[0], os.X_OK) else launcher
            if launcher in ("mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra"):
                argv = [*self._starter, "mpirun", named, *argv[1:]]
        return with_install(self._job.annotation(names.ANNOTATION_INSTALL), argv)

    def environment(self, role: Role, host: str, kind: str) -> dict[str, str]:
        """The user's own variables, then ours, then the template's; what our parts rely on cannot be changed."""
        environment = self._base | {"PATH": self._path(self._base.get("PATH", os.defpath), launcher=kind == "launcher")}
        agent = f"{self._run}/bin/ssh"
        hostfile = f"{self._etc}/{names.HOSTFILE}"
        given = launcher_variables(hostfile=hostfile, agent=agent, slots=self._job.slots_per_worker)
        if kind != "launcher":  # a daemon on a worker may have to reach further workers
            given = {key: value for key, value in given.items() if value == agent}
        ours = {**given, **self._ours(kind), **self._own(host, kind)}
        environment |= ours
        for variable in role.container.env:
            if variable.field_path is not None:
                environment[variable.name] = self._field(variable.field_path, role, host)
            else:
                environment[variable.name] = self._local_path(expand(variable.value, environment))
        return environment | {key: value for key, value in ours.items() if key.startswith(("OARSMAN_", "K_MPI"))}

    def _ours(self, kind: str) -> dict[str, str]:
        job = self._job
        variables = {
            names.ENV_JOB: job.uid,
            "OARSMAN_RUN": self._run,
            "OARSMAN_LOGS": f"{self._job_folder}/logs",
            "OMPI_MCA_btl": "^ofi",  # it costs a second per start and serves no purpose on one machine
            # Every host believes that the whole machine is its own, and would bind its first rank to the first core.
            "OMPI_MCA_hwloc_base_binding_policy": "none",
            "PRTE_MCA_hwloc_default_binding_policy": "none",
            "I_MPI_PIN": "0",
        }
        if os.getuid() == 0:
            variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if not self._separation.names:
            variables |= {"OARSMAN_PLAIN": "1"}
        if self._share:
            variables["OMPI_MCA_mpi_yield_when_idle"] = "1"
        if kind == "launcher":
            rewrite = job.rewrites_launch_line and self._mpi.family.implementation is Implementation.OPENMPI
            variables |= {
                "OARSMAN_MPI": self._mpi.folder,
                "OARSMAN_FAMILY": self._mpi.family.value,
                "OARSMAN_HOSTS": " ".join(job.hosts),
                "OARSMAN_SLOTS": str(job.slots_per_worker),
                "OARSMAN_MASTER_PORT": str(self._port),
                "OARSMAN_REWRITE": "1" if rewrite else "0",
                "OARSMAN_RANK": "\n".join([*self._starter, "rank"]),
            }
        return variables

    def _own(self, host: str, kind: str) -> dict[str, str]:
        """What differs from host to host."""
        own = {names.ENV_ROLE: kind, names.ENV_HOST: host, "TMPDIR": self._temp(host, kind)}
        if host in self._gpus:
            own["CUDA_VISIBLE_DEVICES"] = ",".join(self._gpus[host])
        elif kind == "launcher" and self._gpus:
            own["CUDA_VISIBLE_DEVICES"] = ""
        return own

    def _temp(self, host: str, kind: str) -> str:
        """Short, because MPI makes sockets below it, whose paths must not be long."""
        return f"{self._run}/t/{'l' if kind == 'launcher' else host.rpartition('-')[2]}"

    def _host(self, role: Role, host: str, kind: str, index: int) -> dict[str, Any]:
        limits = role.container.resources.limits
        memory, cpus = limits.get("memory"), limits.get("cpu")
        container = role.container
        environment = self.environment(role, host, kind)
        own = self._own(host, kind) | {
            v.name: self._field(v.field_path, role, host) for v in container.env if v.field_path is not None
        }
        own |= {"PATH": environment["PATH"], "OARSMAN_MPI": self._mpi.folder}
        return {
            "role": kind,
            "index": index,
            "environment": environment,
            "own": own,
            "temp": own["TMPDIR"],
            "folder": str(self._folder / (container.working_dir or ".")),
            "umask": self._umask,
            "memory": int(memory) if memory else None,
            "cpus": float(cpus) if cpus else None,
            "mounts": [self._mount(role, mount, host) for mount in container.mounts],
        }

    def _path(self, path: str, *, launcher: bool) -> str:
        """The launcher finds our shims first, then everybody the job's packages. A chosen MPI comes before the
        user's PATH, a found one after it."""
        chosen = bool(self._job.annotation(names.ANNOTATION_MPI))
        parts = [self._mpi.folder, path] if chosen else [path, self._mpi.folder]
        parts = [f"{self._packages}/bin", *parts] if self._packages is not None else parts
        return os.pathsep.join([f"{self._run}/bin", *parts] if launcher else parts)

    def _local_path(self, text: str) -> str:
        """Where /etc/mpi cannot be provided, what refers to it is pointed to where its files are."""
        return text if self._etc == names.MPI_CONFIG_DIR else text.replace(names.MPI_CONFIG_DIR, self._etc)

    def _field(self, path: str, role: Role, host: str) -> str:
        return field_value(self._job, path, role, host=host, node=host, address=self.address(host))

    @staticmethod
    def _volume(role: Role, mount: VolumeMount) -> Volume:
        return next(volume for volume in role.volumes if volume.name == mount.name)

    def _mount(self, role: Role, mount: VolumeMount, host: str) -> dict[str, Any]:
        volume = self._volume(role, mount)
        source = volume.host_path or f"{self._job_folder}/volumes/{host}/{volume.name}"
        in_memory = volume.kind == "emptyDir" and volume.medium == "Memory"
        size = f",size={int(volume.size_limit)}" if volume.size_limit else ""
        return {
            "source": os.path.join(source, mount.sub_path) if mount.sub_path else source,
            "target": mount.mount_path,
            "read_only": mount.read_only,
            "memory": in_memory,
            "options": f"mode=1777{size}",
            "make": _is_made(volume),
        }


def field_value(job: Job, path: str, role: Role, *, host: str, node: str, address: str) -> str:
    """What a fieldRef of the manifest refers to."""
    metadata: Mapping[str, Any] = role.template.get("metadata") or {}
    simple = {
        "metadata.name": host,
        "metadata.namespace": job.namespace,
        "metadata.uid": job.uid,
        "spec.nodeName": node,
        "spec.serviceAccountName": "default",
        "status.podIP": address,
        "status.podIPs": address,
        "status.hostIP": address,
    }
    if path in simple:
        return simple[path]
    if match := re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    return ""


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Kubernetes' own references: $(NAME) is replaced if known, $$(NAME) stays $(NAME)."""

    def replace(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return environment.get(match[2], match[0])

    return _REFERENCE.sub(replace, text)
