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
from oarsman.engines.hosts.ssh.trouble import trouble, without_name
from oarsman.text.sentence import Text

STEPS = ("name", "port", "host key", "login")
_STOPPED_AT = {
    **dict.fromkeys(("unresolvable",), "name"),
    **dict.fromkeys(("refused", "timeout", "unreachable", "jump"), "port"),
    **dict.fromkeys(("host-key-unknown", "host-key-changed"), "host key"),
}
_FINE = {
    "name": Text("its name is known"),
    "port": Text("its port answers"),
    "host key": Text("its host key is the known one"),
    "login": Text("it lets us log in"),
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
    "name": Text("it knows the name"),
    "port": Text("it reaches the ssh port"),
    "host key": Text("it knows the host key"),
    "login": Text("it may log in"),
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
        message = Text("{host} has no ssh to go to {others}", host=here, others=there)
        yield Finding(
            host=here,
            other=there,
            step="port",
            level=WARN,
            message=message,
            hint=Text("jobs of oarsman do not need it"),
        )
        return
    found = trouble(seen.other, seen.code, seen.said) if seen.code else None
    last = stopped_at(found.kind) if found else ""
    for step in STEPS:
        if found is not None and step == last:
            why = without_name(found.message)
            message = Text("{host} cannot log in to {others}: {why}", host=here, others=there, why=why)
            yield Finding(host=here, other=there, step=step, level=WARN, message=message, hint=_advice(step))
            return
        yield Finding(host=here, other=there, step=step, level=OK, message=_WAY_FINE[step])


def _advice(step: str) -> str:
    if step in ("host key", "login"):
        return Text("jobs of oarsman do not need it; 'oarsman hosts trust' sets it up for plain mpirun")
    if step == "name":
        return Text(
            "jobs of oarsman use addresses; for plain mpirun and programs that use names, add it to /etc/hosts there"
        )
    return Text("jobs of oarsman do not need it; plain mpirun does")


def _calling_back(seen: WaySeen) -> Finding:
    """What every mpirun needs: its daemons on the other hosts connect to it, and ranks to each other."""
    here, there = seen.host, seen.other.name
    if seen.untried or seen.call == NO_TOOL:
        why = seen.untried or Text("{host} has neither ssh nor bash to try it with", host=here)
        message = Text("whether {host} can connect to {others} was not tried: {why}", host=here, others=there, why=why)
        return Finding(host=here, other=there, step="call-back", level=SKIPPED, message=message)
    if seen.call == CONNECTED:
        message = Text("it connects to an mpirun there ({address})", address=seen.address)
        return Finding(host=here, other=there, step="call-back", level=OK, message=message)
    return Finding(
        host=here,
        other=there,
        step="call-back",
        level=FAIL,
        message=Text(
            "{host} cannot connect to {other} ({address}): {why}",
            host=here,
            other=there,
            address=seen.address,
            why=_why(seen.call),
        ),
        hint=Text(
            "mpirun needs this: open the firewall between the hosts, or name another network for them (interface:)"
        ),
    )


def _why(said: str) -> str:
    """The system's words for it are the last of what was said."""
    reason = said.rpartition(": ")[2].strip()
    match reason.lower():
        case "connection timed out" | "operation timed out" | "":
            return Text("no answer, as if a firewall dropped it")
        case "connection refused":
            return Text("refused, although an mpirun listens there, as if a firewall did it")
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
            message = Text(
                "{host}: {user} has the user id {own} there, and {uid} on the other hosts",
                host=host,
                user=own.user,
                own=own.uid,
                uid=uid,
            )
            hint = Text("files in shared folders belong to somebody else there; give the user the same id everywhere")
            yield Finding(host=host, step="user", level=FAIL if shared else WARN, message=message, hint=hint)
        elif own.user != user and host not in chosen:
            message = Text(
                "{host}: the user is {own} there, and {user} on the other hosts", host=host, own=own.user, user=user
            )
            yield Finding(host=host, step="user", level=WARN, message=message, hint=Text("say user: in the inventory"))
        else:
            yield Finding(
                host=host, step="user", level=OK, message=Text("the user is {user} ({uid})", user=own.user, uid=own.uid)
            )


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
            message = Text("{host}: {mpi} did not say in time which MPI it is", host=host, mpi=unclear.launcher)
            return Finding(
                host=host, step="MPI", level=FAIL, message=message, hint=Text("try it there: mpirun --version")
            )
        hint = Text(
            "install the MPI that the other hosts have, or say in the inventory where it is (mpi: /opt/openmpi)"
        )
        return Finding(
            host=host, step="MPI", level=FAIL, message=Text("{host}: no MPI was found", host=host), hint=hint
        )
    if _kind(own) != common:
        same = next((mpi.found for mpi in facts.mpis if mpi.found and _kind(mpi.found) == common), None)
        hint = (
            Text("say mpi: {path} for it in the inventory", path=same.launcher)
            if same
            else Text("install {mpi} there", mpi=_called(alike[0]))
        )
        message = Text("{host} has {own}, the other hosts {theirs}", host=host, own=own, theirs=alike[0])
        return Finding(host=host, step="MPI", level=FAIL, message=message, hint=hint)
    if _prefix(own) != prefix:
        there = any(mpi.found and (_kind(mpi.found), _prefix(mpi.found)) == (common, prefix) for mpi in facts.mpis)
        message = Text(
            "{host} has its MPI in {own}, the other hosts in {theirs}", host=host, own=_prefix(own), theirs=prefix
        )
        hint = Text("mpirun looks for its parts in the same folder everywhere: install it there")
        hint = Text("say mpi: {path} for it in the inventory", path=prefix) if there else hint
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
            host=name,
            step="clock",
            level=OK,
            message=Text("its clock is right within {seconds} s", seconds=f"{max(abs(seen.skew), 0.1):.1f}"),
        )
    template = Text("{host}: its clock is {seconds} s ahead")
    template = template if seen.skew > 0 else Text("{host}: its clock is {seconds} s behind")
    return Finding(
        host=name,
        step="clock",
        level=FAIL if off > SKEW_WRONG else WARN,
        message=Text(template, host=name, seconds=f"{abs(seen.skew):.0f}"),
        hint=Text("set it there, by chrony or ntp"),
    )


def surroundings(host: SshHost, facts: HostFacts) -> Iterator[Finding]:
    looks: tuple[Callable[[SshHost, HostFacts], Finding], ...] = (_path, _folder, _disk, _gpus)
    for look in looks:
        yield look(host, facts)


def _path(host: SshHost, facts: HostFacts) -> Finding:
    """ssh runs commands in a shell that has read less than that of a person who logs in."""
    alone = _first([mpi for mpi in facts.mpis if mpi.in_path], facts.path)
    login = _first([mpi for mpi in facts.mpis if mpi.in_login_path], facts.login_path or "")
    hint = Text("jobs of oarsman still find it; plain mpirun does not: add the folder in ~/.bashrc, before it returns")
    if login is None or (alone is not None and alone.real == login.real):
        return Finding(host=host.name, step="PATH", level=OK, message=Text("a command over ssh sees what a login sees"))
    if alone is None or (_named(login) and not _named(alone)):
        folder = PurePosixPath(login.launcher).parent
        message = Text(
            "{host}: mpirun is only found in a login shell, where files such as ~/.profile add {folder}",
            host=host.name,
            folder=folder,
        )
        return Finding(host=host.name, step="PATH", level=WARN, message=message, hint=hint)
    message = Text(
        "{host}: a command over ssh finds {one}, a login shell {other}",
        host=host.name,
        one=alone.launcher,
        other=login.launcher,
    )
    hint = Text("let both find the same, or say in the inventory which it is (mpi: /opt/openmpi)")
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
        return Finding(
            host=host.name, step="folder", level=OK, message=Text("{folder} can be written", folder=facts.folder)
        )
    return Finding(
        host=host.name,
        step="folder",
        level=FAIL,
        message=Text(
            "{host}: jobs cannot keep their files in {folder}: {why}",
            host=host.name,
            folder=facts.folder or host.folder,
            why=facts.folder_problem,
        ),
        hint=Text("let the user write there, or name another folder in the inventory (folder: /scratch/oarsman)"),
    )


def _disk(host: SshHost, facts: HostFacts) -> Finding:
    places = {facts.folder: facts.folder_free, "/tmp": facts.temporary_free}
    known = {place: free for place, free in places.items() if free is not None}
    if not known:
        return Finding(
            host=host.name,
            step="disk",
            level=WARN,
            message=Text("{host}: how much is free is not known", host=host.name),
        )
    place, free = min(known.items(), key=lambda item: item[1])
    if free >= LEAST_FREE:
        return Finding(
            host=host.name,
            step="disk",
            level=OK,
            message=Text("{n} MiB are free for {folder}", n=free >> 20, folder=place),
        )
    message = Text(
        "{host}: the disk is full: {n} MiB are free for {folder}", host=host.name, n=free >> 20, folder=place
    )
    return Finding(host=host.name, step="disk", level=FAIL, message=message, hint=Text("make room there"))


def _gpus(host: SshHost, facts: HostFacts) -> Finding:
    count, wanted = len(facts.gpus), host.gpus
    if wanted is None or wanted == count:
        return Finding(host=host.name, step="GPUs", level=OK, message=Text("{n} GPUs", n=count))
    return Finding(
        host=host.name,
        step="GPUs",
        level=FAIL if count < wanted else WARN,
        message=Text(
            "{host}: {n} GPUs were found, the inventory says {wanted}", host=host.name, n=count, wanted=wanted
        ),
        hint=Text("correct the inventory, or look at nvidia-smi there"),
    )
