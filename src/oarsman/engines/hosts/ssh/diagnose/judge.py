"""From answers to findings: the way from here, the ways between hosts, what must be alike, and what jobs meet there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeVar

from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.ssh.diagnose.findings import FAIL, OK, SKIPPED, WARN, Finding, HostSeen
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.probe import HostFacts, HostMpi
from oarsman.engines.hosts.ssh.trouble import trouble

STEPS = ("name", "port", "host key", "login")
_STOPPED_AT = {
    **dict.fromkeys(("unresolvable",), "name"),
    **dict.fromkeys(("refused", "timeout", "unreachable", "jump"), "port"),
    **dict.fromkeys(("host-key-unknown", "host-key-changed"), "host key"),
}
_FINE = {
    "name": "its name is known",
    "port": "its port answers",
    "host key": "its host key is the known one",
    "login": "it lets us log in",
}


def stopped_at(kind: str) -> str:
    """The step at which a trouble of this kind keeps ssh; what is unknown happened on the last one."""
    return _STOPPED_AT.get(kind, "login")


def reached(seen: HostSeen) -> Iterator[Finding]:
    """Each step up to the first that failed: nothing is known of those behind it."""
    name = seen.host.name
    last = stopped_at(seen.trouble.kind) if seen.trouble else ""
    for step in STEPS:
        if seen.trouble and step == last:
            yield Finding(host=name, step=step, level=FAIL, message=seen.trouble.message, hint=seen.trouble.hint)
            return
        yield Finding(host=name, step=step, level=OK, message=_FINE[step])


CONNECTED = "connected"
NO_TOOL = "no tool"  # neither ssh nor bash is there to connect with
NO_SSH = (126, 127)  # the shell's codes for a command that is not there, or is none


@dataclass(frozen=True, slots=True, kw_only=True)
class WaySeen:
    """What came of trying it on the first host."""

    host: str
    other: SshHost
    address: str  # of the other, in the network for MPI
    code: int | None = None  # of ssh to the other; None: not tried
    said: str = ""  # by ssh
    call: str = ""  # of connecting to the mpirun of the other: connected, or why not; empty: not tried
    untried: str = ""  # why it was not tried


_WAY_FINE = {
    "name": "it knows the name",
    "port": "it reaches the ssh port",
    "host key": "it knows the host key",
    "login": "it may log in",
}


def way(seen: WaySeen) -> Iterator[Finding]:
    yield from _logging_in(seen)
    yield _calling_back(seen)


def _logging_in(seen: WaySeen) -> Iterator[Finding]:
    """Only ever warnings: jobs of oarsman start everything from here, so hosts need not trust each other."""
    if seen.code is None:
        return
    here, there = seen.host, seen.other.name
    if seen.code in NO_SSH:
        message = f"{here} has no ssh to go to {there}"
        yield Finding(
            host=here, other=there, step="port", level=WARN, message=message, hint="jobs of oarsman do not need it"
        )
        return
    found = trouble(seen.other, seen.code, seen.said) if seen.code else None
    last = stopped_at(found.kind) if found else ""
    for step in STEPS:
        if found is not None and step == last:
            why = found.message.removeprefix(found.message.partition(": ")[0] + ": ")  # it begins with the name
            message = f"{here} cannot log in to {there}: {why}"
            yield Finding(host=here, other=there, step=step, level=WARN, message=message, hint=_advice(step))
            return
        yield Finding(host=here, other=there, step=step, level=OK, message=_WAY_FINE[step])


def _advice(step: str) -> str:
    if step in ("host key", "login"):
        return "jobs of oarsman do not need it; 'oarsman hosts trust' sets it up for plain mpirun"
    if step == "name":
        return "jobs of oarsman use addresses; for plain mpirun and programs that use names, add it to /etc/hosts there"
    return "jobs of oarsman do not need it; plain mpirun does"


def _calling_back(seen: WaySeen) -> Finding:
    """What every mpirun needs: its daemons on the other hosts connect to it, and ranks to each other."""
    here, there = seen.host, seen.other.name
    if seen.untried or seen.call == NO_TOOL:
        why = seen.untried or f"{here} has neither ssh nor bash to try it with"
        message = f"whether {here} can connect to {there} was not tried: {why}"
        return Finding(host=here, other=there, step="call-back", level=SKIPPED, message=message)
    if seen.call == CONNECTED:
        message = f"it connects to an mpirun there ({seen.address})"
        return Finding(host=here, other=there, step="call-back", level=OK, message=message)
    return Finding(
        host=here,
        other=there,
        step="call-back",
        level=FAIL,
        message=f"{here} cannot connect to {there} ({seen.address}): {_why(seen.call)}",
        hint="mpirun needs this: open the firewall between the hosts, or name another network for them (interface:)",
    )


def _why(said: str) -> str:
    """The system's words for it are the last of what was said."""
    reason = said.rpartition(": ")[2].strip()
    match reason.lower():
        case "connection timed out" | "operation timed out" | "":
            return "no answer, as if a firewall dropped it"
        case "connection refused":
            return "refused, although an mpirun listens there, as if a firewall did it"
        case _:
            return reason


_Value = TypeVar("_Value", bound=Hashable)


def most_common(values: Sequence[_Value]) -> _Value:
    """Of equals the first."""
    return Counter(values).most_common(1)[0][0]


def alike(seen: Sequence[HostSeen]) -> Iterator[Finding]:
    facts = {each.host.name: each.facts for each in seen if each.facts is not None}
    if facts:
        shared = any(each.host.shared for each in seen)
        chosen = {each.host.name for each in seen if each.host.user}
        yield from _users(facts, chosen, shared=shared)
        yield from _mpis(facts)


def _users(facts: Mapping[str, HostFacts], chosen: set[str], *, shared: bool) -> Iterator[Finding]:
    """Numbers decide who may read a file of a shared folder; names only matter where nobody chose them."""
    user = most_common([each.user for each in facts.values()])
    uid = most_common([each.uid for each in facts.values()])
    for host, own in facts.items():
        if own.uid != uid:
            message = f"{host}: {own.user} has the user id {own.uid} there, and {uid} on the other hosts"
            hint = "files in shared folders belong to somebody else there; give the user the same id everywhere"
            yield Finding(host=host, step="user", level=FAIL if shared else WARN, message=message, hint=hint)
        elif own.user != user and host not in chosen:
            message = f"{host}: the user is {own.user} there, and {user} on the other hosts"
            yield Finding(host=host, step="user", level=WARN, message=message, hint="say user: in the inventory")
        else:
            yield Finding(host=host, step="user", level=OK, message=f"the user is {own.user} ({own.uid})")


def first_mpi(facts: HostFacts) -> FoundMpi | None:
    """What would be used: they come in the order in which they are chosen."""
    return next((mpi.found for mpi in facts.mpis if mpi.found is not None), None)


def _mpis(facts: Mapping[str, HostFacts]) -> Iterator[Finding]:
    found = {host: mpi for host, own in facts.items() if (mpi := first_mpi(own)) is not None}
    common = most_common([_kind(mpi) for mpi in found.values()]) if found else ("", "")
    alike = [mpi for mpi in found.values() if _kind(mpi) == common]
    prefix = most_common([_prefix(mpi) for mpi in alike]) if alike else ""
    for host, own in facts.items():
        yield _mpi(host, own, found.get(host), common, prefix, alike)


def _mpi(
    host: str, facts: HostFacts, own: FoundMpi | None, common: tuple[str, str], prefix: str, alike: Sequence[FoundMpi]
) -> Finding:
    if own is None:
        unclear = next((mpi for mpi in facts.mpis), None)
        if unclear is not None:
            message = f"{host}: {unclear.launcher} did not say in time which MPI it is"
            return Finding(host=host, step="MPI", level=FAIL, message=message, hint="try it there: mpirun --version")
        hint = "install the MPI that the other hosts have, or say in the inventory where it is (mpi: /opt/openmpi)"
        return Finding(host=host, step="MPI", level=FAIL, message=f"{host}: no MPI was found", hint=hint)
    if _kind(own) != common:
        same = next((mpi.found for mpi in facts.mpis if mpi.found and _kind(mpi.found) == common), None)
        hint = f"say mpi: {same.launcher} for it in the inventory" if same else f"install {_called(alike[0])} there"
        message = f"{host} has {own}, the other hosts {alike[0]}"
        return Finding(host=host, step="MPI", level=FAIL, message=message, hint=hint)
    if _prefix(own) != prefix:
        there = any(mpi.found and (_kind(mpi.found), _prefix(mpi.found)) == (common, prefix) for mpi in facts.mpis)
        message = f"{host} has its MPI in {_prefix(own)}, the other hosts in {prefix}"
        hint = "mpirun looks for its parts in the same folder everywhere: install it there"
        hint = f"say mpi: {prefix} for it in the inventory" if there else hint
        return Finding(host=host, step="MPI", level=WARN if there else FAIL, message=message, hint=hint)
    return Finding(host=host, step="MPI", level=OK, message=str(own))


def _kind(mpi: FoundMpi) -> tuple[str, str]:
    return mpi.family.value, mpi.version.partition(".")[0]


def _called(mpi: FoundMpi) -> str:
    return str(mpi).partition(" (")[0]


def _prefix(mpi: FoundMpi) -> str:
    return str(PurePosixPath(mpi.launcher).parent.parent)


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


def surroundings(host: SshHost, facts: HostFacts) -> Iterator[Finding]:
    looks: tuple[Callable[[SshHost, HostFacts], Finding], ...] = (_path, _folder, _disk, _gpus)
    for look in looks:
        yield look(host, facts)


def _path(host: SshHost, facts: HostFacts) -> Finding:
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


def _folder(host: SshHost, facts: HostFacts) -> Finding:
    if not facts.folder_problem:
        return Finding(host=host.name, step="folder", level=OK, message=f"{facts.folder} can be written")
    return Finding(
        host=host.name,
        step="folder",
        level=FAIL,
        message=f"{host.name}: jobs cannot keep their files in {facts.folder or host.folder}: {facts.folder_problem}",
        hint="let the user write there, or name another folder in the inventory (folder: /scratch/oarsman)",
    )


def _disk(host: SshHost, facts: HostFacts) -> Finding:
    places = {facts.folder: facts.folder_free, "/tmp": facts.temporary_free}
    known = {place: free for place, free in places.items() if free is not None}
    if not known:
        return Finding(host=host.name, step="disk", level=WARN, message=f"{host.name}: how much is free is not known")
    place, free = min(known.items(), key=lambda item: item[1])
    if free >= LEAST_FREE:
        return Finding(host=host.name, step="disk", level=OK, message=f"{free >> 20} MiB are free for {place}")
    message = f"{host.name}: the disk is full: {free >> 20} MiB are free for {place}"
    return Finding(host=host.name, step="disk", level=FAIL, message=message, hint="make room there")


def _gpus(host: SshHost, facts: HostFacts) -> Finding:
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
