"""What jobs meet on a host: its clock, PATH, folder, disk and GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from oarsman.engines.bare.over_ssh.checking.findings import FAIL, OK, WARN, Finding, HostSeen
from oarsman.engines.bare.over_ssh.inventory import RackHost
from oarsman.engines.bare.over_ssh.probe import HostFacts, HostMpi

SKEW_ODD, SKEW_WRONG = 2.0, 30.0  # seconds
LEAST_FREE = 100 << 20  # bytes


def clock(seen: HostSeen) -> Finding:
    """What the way there and back took is not the clock's fault: only what is beyond it counts."""
    name, off = seen.host.name, max(abs(seen.skew) - seen.within, 0.0)
    if off <= SKEW_ODD:
        return Finding(
            host=name, step="clock", level=OK, message=f"its clock is right within {max(abs(seen.skew), 0.1):.1f} s"
        )
    where = "ahead" if seen.skew > 0 else "behind"
    return Finding(
        host=name,
        step="clock",
        level=FAIL if off > SKEW_WRONG else WARN,
        message=f"{name}: its clock is {abs(seen.skew):.0f} s {where}",
        hint="set it there, by chrony or ntp",
    )


def surroundings(host: RackHost, facts: HostFacts) -> Iterator[Finding]:
    looks: tuple[Callable[[RackHost, HostFacts], Finding], ...] = (_path, _folder, _disk, _gpus)
    for look in looks:
        yield look(host, facts)


def _path(host: RackHost, facts: HostFacts) -> Finding:
    """ssh runs commands in a shell that has read less than that of a person who logs in."""
    alone = _first([mpi for mpi in facts.mpis if mpi.in_path], facts.path)
    login = _first([mpi for mpi in facts.mpis if mpi.in_login_path], facts.login_path or "")
    hint = "jobs of oarsman still find it; plain mpirun does not: add the folder in ~/.bashrc, before it returns"
    if login is None or (alone is not None and alone.real == login.real):
        return Finding(host=host.name, step="PATH", level=OK, message="a command over ssh sees what a login sees")
    if alone is None or (_named(login) and not _named(alone)):
        folder = PurePosixPath(login.launcher).parent
        message = f"{host.name}: mpirun is only found in a login shell, where files such as ~/.profile add {folder}"
        return Finding(host=host.name, step="PATH", level=WARN, message=message, hint=hint)
    message = f"{host.name}: a command over ssh finds {alone.launcher}, a login shell {login.launcher}"
    hint = "let both find the same, or say in the inventory which it is (mpi: /opt/openmpi)"
    return Finding(host=host.name, step="PATH", level=OK if host.mpi else WARN, message=message, hint=hint)


def _first(mpis: list[HostMpi], path: str) -> HostMpi | None:
    folders = path.split(":")

    def place(mpi: HostMpi) -> int:
        folder = str(PurePosixPath(mpi.launcher).parent)
        return folders.index(folder) if folder in folders else len(folders)

    return min(mpis, key=place, default=None)


def _named(mpi: HostMpi) -> bool:
    """Whether it is called what people type."""
    return PurePosixPath(mpi.launcher).name in ("mpirun", "mpiexec")


def _folder(host: RackHost, facts: HostFacts) -> Finding:
    if not facts.folder_problem:
        return Finding(host=host.name, step="folder", level=OK, message=f"{facts.folder} can be written")
    return Finding(
        host=host.name,
        step="folder",
        level=FAIL,
        message=f"{host.name}: jobs cannot keep their files in {facts.folder or host.folder}: {facts.folder_problem}",
        hint="let the user write there, or name another folder in the inventory (folder: /scratch/oarsman)",
    )


def _disk(host: RackHost, facts: HostFacts) -> Finding:
    places = {facts.folder: facts.folder_free, "/tmp": facts.temporary_free}
    known = {place: free for place, free in places.items() if free is not None}
    if not known:
        return Finding(host=host.name, step="disk", level=WARN, message=f"{host.name}: how much is free is not known")
    place, free = min(known.items(), key=lambda item: item[1])
    if free >= LEAST_FREE:
        return Finding(host=host.name, step="disk", level=OK, message=f"{free >> 20} MiB are free for {place}")
    message = f"{host.name}: the disk is full: {free >> 20} MiB are free for {place}"
    return Finding(host=host.name, step="disk", level=FAIL, message=message, hint="make room there")


def _gpus(host: RackHost, facts: HostFacts) -> Finding:
    count, wanted = len(facts.gpus), host.gpus
    if wanted is None or wanted == count:
        return Finding(host=host.name, step="GPUs", level=OK, message=f"{count} GPUs")
    return Finding(
        host=host.name,
        step="GPUs",
        level=FAIL if count < wanted else WARN,
        message=f"{host.name}: {count} GPUs were found, the inventory says {wanted}",
        hint="correct the inventory, or look at nvidia-smi there",
    )
