"""What the hosts of a job on other machines are given: scripts, variables, arguments of ssh."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from oarsman import names
from oarsman.engines.hosts.core.host_specs import SHIMMED, HostSpecs, role_of
from oarsman.engines.hosts.core.job_spec import JobSpec, LaunchFacts, SshAddress, SshHostSpec, SshWay
from oarsman.engines.hosts.ssh import scripts
from oarsman.engines.hosts.ssh.client import Ssh
from oarsman.engines.hosts.ssh.interfaces import Networks, unopposed, variables
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.probe import HostFacts
from oarsman.job.job import Implementation
from oarsman.job.mpi import Family, launcher_variables

_USAGE_SECONDS = 5
# What of the user's own surroundings is for the programs of a job, wherever they run.
_PASSED = re.compile(
    r"^(NCCL_|OMPI_MCA_|PRTE_MCA_|PMIX_MCA_|UCX_|FI_|GLOO_|IBV_|HOROVOD_|OMP_|KMP_|MKL_|I_MPI_|MPICH_|MPIR_CVAR_|TORCH_"
    r"|TF_|XLA_|PYTORCH_|LC_|LANG$|TZ$|PYTHON(UNBUFFERED|HASHSEED|WARNINGS|DONTWRITEBYTECODE)$)"
)
_KEPT_PATH = """'"$PATH"'"""  # the host's own, amid quoted words
# Open MPI writes its commands for the user's own shell unless it has to ask, but over our way a plain one reads them.
_SHELL = """\
case ${SHELL##*/} in sh | ash | bash | dash | ksh* | mksh | zsh | '') ;; *)
    export SHELL=/bin/sh OMPI_MCA_plm_rsh_assume_same_shell=0 PRTE_MCA_plm_ssh_assume_same_shell=0 ;;
esac
"""


def base_folder(uid: str) -> str:
    """Short, because MPI makes sockets below it; and nobody guesses it."""
    return f"/tmp/oarsman-{uid.replace('-', '')[:12]}"


@dataclass(frozen=True, kw_only=True)
class SshHostSpecs(HostSpecs):
    """GPUs are called "machine:device". Packages are in a folder that all machines share."""

    silence: ClassVar[str] = "7"  # a host that vanished is known for it, and all is cleared away, within ten

    places: Mapping[str, SshHost]  # member -> machine
    facts: Mapping[str, HostFacts]  # by machine
    networks: Networks
    ssh: Ssh
    folders: Mapping[str, str]  # machine -> the folder that commands start in

    # -- who is where --------------------------------------------------------------------------------------
    @cached_property
    def takers(self) -> tuple[str, ...]:
        """The members that take ranks."""
        job = self.job
        workers = tuple(job.worker_host(index) for index in range(job.workers))
        return (job.launcher_host, *workers) if job.run_launcher_as_worker or not workers else workers

    @cached_property
    def machines(self) -> dict[str, list[str]]:
        """Those on which ranks run, with the members on each, in the order of the members."""
        found: dict[str, list[str]] = {}
        for member in self.takers:
            found.setdefault(self.places[member].name, []).append(member)
        return found

    def slots(self, machine: str) -> int:
        return len(self.machines[machine]) * self.job.slots_per_worker

    def _leads(self, member: str) -> bool:
        """Whether everything on its machine runs in its name: to MPI the members there are one host."""
        return self._members_at(self.places[member].name)[0][0] == member

    def address(self, member: str) -> str:
        return self.networks.ends[self.places[member].name].address

    def _node(self, member: str) -> str:
        return self.places[member].name

    def folder(self, member: str) -> str:
        """This member's, on its machine."""
        return f"{base_folder(self.job.uid)}/{self._short(member)}"

    # -- the whole -----------------------------------------------------------------------------------------
    def specification(self) -> JobSpec:
        spec = super().specification()
        return spec._replace(
            transport="ssh",
            placement={member: host.name for member, host in self.places.items()},
            addresses={machine: end.address for machine, end in self.networks.ends.items()},
            cleanup={host.name: self.ssh.argv(host) for host in self.places.values()},
        )

    def _host(self, member: str) -> SshHostSpec:
        launcher = self.is_launcher(member)
        host = self.places[member]
        # One opens the connection to a machine, over which the others there go, and has to outlive them.
        beside_launcher = host.name == self.places[self.job.launcher_host].name
        opens = launcher if beside_launcher else self._leads(member)
        control = f"{self.run_folder}/c/{list(self.places.values()).index(host)}"
        stated = role_of(self.job, member).container.working_dir
        return SshHostSpec(
            role="launcher" if launcher else "worker",
            index=self._index(member),
            machine=host.name,
            way=SshAddress(name=host.name, address=host.address, user=host.user, port=host.port, jump=host.jump),
            temp=f"{self.run_folder}/t/{self._short(member)}",
            ssh=SshWay(
                control=control,
                follows=not opens,
                host_agent=self.ssh.argv(host, control=control, master=opens),
                # Where sshd allows no more sessions ssh goes another way by itself; its remark is nothing for a log.
                command=self.ssh.argv(host, control=control, options=("LogLevel=FATAL",)),
                typed=self.ssh.typed(host),
                config=self.ssh.config,
            ),
            host_agent=self._host_agent(member),
            run=self.folder(member),
            folder=os.path.join(self.folders[host.name], stated or "").rstrip("/") or "/",
            usage_every=_USAGE_SECONDS,
            hands_on=self._in_files and self._leads(member),
            members=self._members_at(host.name),
            launch=self._launch_facts() if launcher else None,
            aliases=self._aliases() if launcher else {},
            mpirun=self.mpi.launcher,
        )

    @property
    def _in_files(self) -> bool:
        """Open MPI 4 drops some of many short lines when it tags them: there it writes what a rank says into files."""
        return self.mpi.family is Family.OPENMPI4 and int(self.mpi.version.partition(".")[0]) >= 4

    def _members_at(self, machine: str) -> list[tuple[str, int]]:
        here = self.machines.get(machine) or [self.job.launcher_host]
        return [(member, self.job.slots_per_worker) for member in here]

    def _launch_facts(self) -> LaunchFacts:
        job, ends = self.job, self.networks.ends
        return LaunchFacts(
            family=self.mpi.family.value,
            rewrite=job.rewrites_launch_line and self.mpi.family.implementation is Implementation.OPENMPI,
            machines=[ends[machine].address for machine in self.machines],
            slots=[self.slots(machine) for machine in self.machines],
            members={ends[machine].address: self._members_at(machine) for machine in self.machines},
            rank=["/bin/sh", f"{base_folder(job.uid)}/rank.sh"],
            etc=self._etc,
            names={name: self.address(member) for name, member in self._aliases().items()},
            output=f"{base_folder(job.uid)}/run/o" if self._in_files else "",
        )

    def _aliases(self) -> dict[str, str]:
        """Whatever a launcher may call a machine, and the member that answers there."""
        leads = {machine: members[0] for machine, members in self.machines.items()}
        known = {self.facts[machine].hostname: lead for machine, lead in leads.items()}
        # What machines call themselves comes first, so that none takes the name of another.
        for machine, members in self.machines.items():
            known |= dict.fromkeys((machine, self.networks.ends[machine].address, *members), leads[machine])
        return known

    def _launched(self, argv: list[str]) -> list[str]:
        chosen = self.job.annotation(names.ANNOTATION_MPI)  # a manifest may name the path of an image
        named = os.path.basename(argv[0]) if chosen else argv[0]
        return ["/bin/sh", f"{self.folder(self.job.launcher_host)}/launch", named, *argv[1:]]

    @property
    def _etc(self) -> str:
        """There is no root to put files into /etc."""
        return f"{self.folder(self.job.launcher_host)}/etc/mpi"

    # -- what travels --------------------------------------------------------------------------------------
    def _host_agent(self, member: str) -> str:
        machine = self.places[member].name
        leads = self._leads(member)
        first = int(self.job.uid[:4], 16)
        given = {
            "BASE": base_folder(self.job.uid),
            "RUN": self.folder(member),
            "MARK": f"{names.ENV_JOB}={self.job.uid}" if self.is_launcher(member) or leads else "",
            "HANDS_ON": "yes" if self._in_files and leads else "",
            "SILENCE": str(self._silence),
            "PORTS": " ".join(str(20000 + (first + step * 997) % 12000) for step in range(16)),  # below ephemeral ones
            "FOLDER": self.folders[machine],
        }
        runs = " ".join(self.folder(each) for each, _ in self._members_at(machine))
        seats = f"slots={self.job.slots_per_worker} runs='{runs}'\n" if leads else ""
        files = scripts.writing(self._files(member), seats=seats)
        return scripts.assignments(given) + files + scripts.script("host_agent")

    def _files(self, member: str) -> dict[str, str]:
        run = self.folder(member)
        own = self._own(member) | self._fields(member)
        corrections = self._path_again(member) + self._concession(member)
        path = shlex.quote(self._path(member, "$PATH", self._shims)).replace("$PATH", _KEPT_PATH)
        env = scripts.exports(self.given_to(member)) + f"export PATH={path}\n" + _SHELL
        files = {"own": scripts.exports(own) + corrections, "env": env}
        if not self.is_launcher(member):
            return files
        scripts_of = {"ask": "askpass", "launch": "launch", "agent": "rsh_agent"}
        files |= {name: scripts.script(source) for name, source in scripts_of.items()}
        for name in ("ssh", "rsh"):
            files[f"bin/{name}"] = f'#!/bin/sh\nexec /bin/sh {run}/agent "$@"\n'
        for name in SHIMMED:
            files[f"bin/{name}"] = f'#!/bin/sh\nexec /bin/sh {run}/launch {name} "$@"\n'
        return files

    @property
    def _shims(self) -> str:
        """The launcher's."""
        return f"{self.folder(self.job.launcher_host)}/bin"

    def _path_again(self, member: str) -> str:
        """Hydra sends the launcher's PATH along. That of this machine, as its facts tell it, is put right again. Open
        MPI puts its folder in front; with an MPI in /usr/bin that would hide the user's own python."""
        path = self._path(member, self.facts[self.places[member].name].path, self._shims)
        path = path.removeprefix(f"{self._shims}:")
        again = f'case $PATH in *"{self._shims}"*) export PATH={shlex.quote(path)} ;; esac\n'
        if path.startswith(f"{self.mpi.folder}:"):
            return again
        folder = shlex.quote(self.mpi.folder)  # it stands at the end of our own; of another PATH nothing is taken
        within = f"{folder}:*:{folder} | {folder}:*:{folder}:*"
        return f"{again}while case $PATH in {within}) ;; *) false ;; esac; do PATH=${{PATH#*:}}; done\n"

    def _concession(self, member: str) -> str:
        """A script may decide by itself which interfaces are not used; told both ways, Open MPI uses no TCP at all."""
        words = "\n".join(self._told(member))
        for ours, theirs in (("include", "exclude"), ("exclude", "include")):
            if f"btl_tcp_if_{ours}" in words:
                return f'[ -z "${{OMPI_MCA_btl_tcp_if_{theirs}:-}}" ] || unset OMPI_MCA_btl_tcp_if_{ours}\n'
        return ""

    # -- variables -----------------------------------------------------------------------------------------
    def _users(self, member: str) -> dict[str, str]:
        """About networks, then the inventory's, then the user's own."""
        return {**self._told(member), **self._given(self.places[member])}

    def _ours(self, member: str) -> dict[str, str]:
        job = self.job
        ours = self._common(self.places[member].name) | self._own(member)
        if self.is_launcher(member):
            hostfile, agent = f"{self._etc}/{names.HOSTFILE}", f"{base_folder(job.uid)}/ssh"
            ours |= launcher_variables(hostfile=hostfile, agent=agent, slots=job.slots_per_worker)
            del ours["I_MPI_PERHOST"]  # machines may have several workers each; the hostfile has the slots of all
            ours |= {"OARSMAN_MPI": self.mpi.folder, "OARSMAN_MPIRUN": self.mpi.by_another_name}
            ours["OARSMAN_PATH_OF_IMAGE"] = "yes" if job.path_is_of_image else ""
        return ours

    def _given(self, host: SshHost) -> dict[str, str]:
        return {**host.environment, **{key: value for key, value in self.environment.items() if _PASSED.match(key)}}

    def _told(self, member: str) -> dict[str, str]:
        """About networks, as far as nobody else has decided."""
        host = self.places[member]
        stated = {variable.name for variable in role_of(self.job, member).container.env}
        given = {*self._given(host), *stated}
        return unopposed(variables(self.networks, host.name), given, self.job.launcher.container.argv)

    def _common(self, machine: str) -> dict[str, str]:
        facts = self.facts[machine]
        told = {
            names.ENV_JOB: self.job.uid,
            "OMPI_MCA_plm_rsh_no_tree_spawn": "1",  # only the launcher's machine can ask us
            "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        }
        slots = self.slots(machine) if machine in self.machines else 0
        if slots != facts.processors:
            # Other jobs may be there, and each would bind its first rank to the first core; or there are too few cores.
            told |= {"OMPI_MCA_hwloc_base_binding_policy": "none", "PRTE_MCA_hwloc_default_binding_policy": "none"}
            told["I_MPI_PIN"] = "0"
        if slots > facts.processors:
            told["OMPI_MCA_mpi_yield_when_idle"] = "1"
        if not self.networks.rdma:
            told["OMPI_MCA_btl"] = "^ofi"  # it costs a second per start and has nothing to drive here
        if facts.uid == 0:
            told |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return told

    def _own(self, member: str) -> dict[str, str]:
        """What differs from host to host."""
        machine = self.places[member].name
        run = self.folder(member)
        own = {names.ENV_HOST: member, "OARSMAN_MACHINE": machine}
        own |= {"OARSMAN_RUN": run, "TMPDIR": f"{run}/t"}
        own[names.ENV_ROLE] = "launcher" if self.is_launcher(member) else "worker"
        if any(self.gpus.values()):
            here = self.machines.get(machine, []) if own[names.ENV_ROLE] == "worker" or member in self.takers else []
            devices = [device.rpartition(":")[2] for each in here for device in self.gpus.get(each, ())]
            own["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
        return own
