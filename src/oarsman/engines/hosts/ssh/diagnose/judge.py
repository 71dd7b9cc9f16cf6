"""What a check finds: from answers to findings, and the hosts that have to be left out for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os.path import basename, dirname

from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.probe import HostFacts, HostMpi
from oarsman.engines.hosts.ssh.trouble import Trouble, trouble, without_name
from oarsman.text.sentence import Text

OK, WARN, FAIL, SKIPPED = "ok", "warn", "fail", "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """One step of a check, of one host, or of the way from one host to another."""

    host: str  # empty: of all of them together
    step: str  # in one or two words
    level: str
    message: str
    other: str = ""  # the host at the far end
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSeen:
    """What came of asking a host about itself: facts, or what was in the way."""

    host: SshHost
    facts: HostFacts | None = None
    trouble: Trouble | None = None
    skew: float = 0.0  # seconds its clock is ahead of ours
    within: float = 0.0  # seconds by which that may be wrong: half of the time that the answer took


def unfit(hosts: Sequence[str], findings: Iterable[Finding]) -> dict[str, Finding]:
    """The hosts to leave out so that what is left has no failure, each with the failure that decided.

    Where the way between two hosts fails, one of them has to go: the one with the most such failures, and of equals
    the later in the inventory, as the first hosts are those that start jobs.
    """
    failures = [finding for finding in findings if finding.level == FAIL and finding.host in hosts]
    gone: dict[str, Finding] = {}
    for finding in failures:
        if not finding.other:
            gone.setdefault(finding.host, finding)
    ways = [finding for finding in failures if finding.other in hosts]
    while ways := [way for way in ways if way.host not in gone and way.other not in gone]:
        count = Counter(end for way in ways for end in (way.host, way.other))
        chosen = max(count, key=lambda name: (count[name], hosts.index(name)))
        gone[chosen] = next(way for way in ways if chosen in (way.host, way.other))
    return gone


# -- the way from here -------------------------------------------------------------------------------------------
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


def _stopped_at(found: Trouble) -> str:
    """The step at which it keeps ssh; what is unknown happened on the last one."""
    return _STOPPED_AT.get(found.kind, "login")


def _passed(host: str, fine: Mapping[str, str], found: Trouble | None, other: str = "") -> Iterator[Finding]:
    """Each step before the one that failed: nothing is known of those behind it."""
    for step, message in fine.items():
        if found is not None and step == _stopped_at(found):
            return
        yield Finding(host, step, OK, message, other)


def reached(seen: HostSeen) -> Iterator[Finding]:
    yield from _passed(seen.host.name, _FINE, seen.trouble)
    if found := seen.trouble:
        yield Finding(seen.host.name, _stopped_at(found), FAIL, found.message, hint=found.hint)


# -- the ways between hosts --------------------------------------------------------------------------------------
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
_TRUST = Text("jobs of oarsman do not need it; 'oarsman hosts trust' sets it up for plain mpirun")
_ADVICE = {
    "name": Text(
        "jobs of oarsman use addresses; for plain mpirun and programs that use names, add it to /etc/hosts there"
    ),
    "port": Text("jobs of oarsman do not need it; plain mpirun does"),
    "host key": _TRUST,
    "login": _TRUST,
}


def way(seen: WaySeen) -> Iterator[Finding]:
    if seen.code is not None:
        yield from _logging_in(seen, seen.code)
    yield _calling_back(seen)


def _logging_in(seen: WaySeen, code: int) -> Iterator[Finding]:
    """Only ever warnings: jobs of oarsman start everything from here, so hosts need not trust each other."""
    here, there = seen.host, seen.other.name
    if code in NO_SSH:
        message = Text("{host} has no ssh to go to {others}", host=here, others=there)
        yield Finding(here, "port", WARN, message, there, Text("jobs of oarsman do not need it"))
        return
    found = trouble(seen.other, code, seen.said) if code else None
    yield from _passed(here, _WAY_FINE, found, there)
    if found is not None:
        step, why = _stopped_at(found), without_name(found.message)
        message = Text("{host} cannot log in to {others}: {why}", host=here, others=there, why=why)
        yield Finding(here, step, WARN, message, there, _ADVICE[step])


def _calling_back(seen: WaySeen) -> Finding:
    """What every mpirun needs: its daemons on the other hosts connect to it, and ranks to each other."""
    here, there = seen.host, seen.other.name
    finding = partial(Finding, here, "call-back", other=there)
    if seen.untried or seen.call == NO_TOOL:
        why = seen.untried or Text("{host} has neither ssh nor bash to try it with", host=here)
        message = Text("not tested whether {host} can connect to {others}: {why}", host=here, others=there, why=why)
        return finding(SKIPPED, message)
    if seen.call == CONNECTED:
        return finding(OK, Text("it connects to an mpirun there ({address})", address=seen.address))
    why = seen.call.rpartition(": ")[2].strip()  # the system's words for it are the last of what was said
    match why.lower():
        case "connection timed out" | "operation timed out" | "":
            why = Text("no answer, as if a firewall dropped it")
        case "connection refused":
            why = Text("refused although an mpirun listens there; a firewall may reject it")
    template = Text("{host} cannot connect to {other} ({address}): {why}")
    hint = Text("mpirun needs this: open the firewall between the hosts, or name another network for them (interface:)")
    return finding(FAIL, Text(template, host=here, other=there, address=seen.address, why=why), hint=hint)


# -- what must be alike ------------------------------------------------------------------------------------------
def alike(seen: Sequence[HostSeen]) -> Iterator[Finding]:
    if facts := {each.host.name: each.facts for each in seen if each.facts is not None}:
        yield from _users(facts, seen)
        yield from _mpis(facts)


def _users(facts: Mapping[str, HostFacts], seen: Sequence[HostSeen]) -> Iterator[Finding]:
    """Numbers decide who may read a file of a shared folder; names only matter where nobody chose them."""
    shared = any(each.host.shared for each in seen)
    chosen = {each.host.name for each in seen if each.host.user}
    user = Counter(each.user for each in facts.values()).most_common(1)[0][0]  # here and below: of equals the first
    uid = Counter(each.uid for each in facts.values()).most_common(1)[0][0]
    for host, own in facts.items():
        if own.uid != uid:
            template = Text("{host}: {user} has the user id {own} there, and {uid} on the other hosts")
            message = Text(template, host=host, user=own.user, own=own.uid, uid=uid)
            hint = Text("files in shared folders belong to somebody else there; give the user the same id everywhere")
            yield Finding(host, "user", FAIL if shared else WARN, message, hint=hint)
        elif own.user != user and host not in chosen:
            template = Text("{host}: the user is {own} there, and {user} on the other hosts")
            message = Text(template, host=host, own=own.user, user=user)
            yield Finding(host, "user", WARN, message, hint=Text("say user: in the inventory"))
        else:
            yield Finding(host, "user", OK, Text("the user is {user} ({uid})", user=own.user, uid=own.uid))


def first_mpi(facts: HostFacts) -> FoundMpi | None:
    """What would be used: they come in the order in which they are chosen."""
    return next((mpi.found for mpi in facts.mpis if mpi.found is not None), None)


def _mpis(facts: Mapping[str, HostFacts]) -> Iterator[Finding]:
    found = {host: mpi for host, own in facts.items() if (mpi := first_mpi(own)) is not None}
    common = Counter(map(_kind, found.values())).most_common(1)[0][0] if found else ("", "")
    alike = [mpi for mpi in found.values() if _kind(mpi) == common]
    prefix = Counter(map(_prefix, alike)).most_common(1)[0][0] if alike else ""
    for host, own in facts.items():
        yield _mpi(host, own, found.get(host), common, prefix, alike)


def _mpi(
    host: str, facts: HostFacts, own: FoundMpi | None, common: tuple[str, str], prefix: str, alike: Sequence[FoundMpi]
) -> Finding:
    finding = partial(Finding, host, "MPI")
    if own is None and facts.mpis:
        message = Text("{host}: {mpi} did not say in time which MPI it is", host=host, mpi=facts.mpis[0].launcher)
        return finding(FAIL, message, hint=Text("try it there: mpirun --version"))
    if own is None:
        hint = Text(
            "install the MPI that the other hosts have, or say in the inventory where it is (mpi: /opt/openmpi)"
        )
        return finding(FAIL, Text("{host}: no MPI was found", host=host), hint=hint)
    if _kind(own) != common:
        same = next((mpi.found for mpi in facts.mpis if mpi.found and _kind(mpi.found) == common), None)
        hint = Text("install {mpi} there", mpi=str(alike[0]).partition(" (")[0])
        hint = Text("say mpi: {path} for it in the inventory", path=same.launcher) if same else hint
        message = Text("{host} has {own}, the other hosts {theirs}", host=host, own=own, theirs=alike[0])
        return finding(FAIL, message, hint=hint)
    if _prefix(own) != prefix:
        there = any(mpi.found and (_kind(mpi.found), _prefix(mpi.found)) == (common, prefix) for mpi in facts.mpis)
        template = Text("{host} has its MPI in {own}, the other hosts in {theirs}")
        hint = Text("mpirun looks for its parts in the same folder everywhere: install it there")
        hint = Text("say mpi: {path} for it in the inventory", path=prefix) if there else hint
        message = Text(template, host=host, own=_prefix(own), theirs=prefix)
        return finding(WARN if there else FAIL, message, hint=hint)
    return finding(OK, str(own))


def _kind(mpi: FoundMpi) -> tuple[str, str]:
    return mpi.family.value, mpi.version.partition(".")[0]


def _prefix(mpi: FoundMpi) -> str:
    return dirname(dirname(mpi.launcher))


# -- what jobs meet there ----------------------------------------------------------------------------------------
SKEW_ODD, SKEW_WRONG = 2.0, 30.0  # seconds
LEAST_FREE = 100 << 20  # bytes


def clock(seen: HostSeen) -> Finding:
    """What the way there and back took is not the clock's fault: only what is beyond it counts."""
    name, off = seen.host.name, max(abs(seen.skew) - seen.within, 0.0)
    if off <= SKEW_ODD:
        message = Text("its clock is right within {seconds} s", seconds=f"{max(abs(seen.skew), 0.1):.1f}")
        return Finding(name, "clock", OK, message)
    template = Text("{host}: its clock is {seconds} s ahead")
    template = template if seen.skew > 0 else Text("{host}: its clock is {seconds} s behind")
    message = Text(template, host=name, seconds=f"{abs(seen.skew):.0f}")
    level = FAIL if off > SKEW_WRONG else WARN
    return Finding(name, "clock", level, message, hint=Text("set it there, by chrony or ntp"))


def surroundings(host: SshHost, facts: HostFacts) -> list[Finding]:
    return [_path(host, facts), _folder(host, facts), _disk(host, facts), _gpus(host, facts)]


def _path(host: SshHost, facts: HostFacts) -> Finding:
    """ssh runs commands in a shell that has read less than that of a person who logs in."""
    alone = _first([mpi for mpi in facts.mpis if mpi.in_path], facts.path)
    login = _first([mpi for mpi in facts.mpis if mpi.in_login_path], facts.login_path or "")
    if login is None or (alone is not None and alone.real == login.real):
        return Finding(host.name, "PATH", OK, Text("a command over ssh sees what a login sees"))
    usual = ("mpirun", "mpiexec")  # what people type
    if alone is None or (basename(login.launcher) in usual and basename(alone.launcher) not in usual):
        template = Text("{host}: mpirun is only found in a login shell, where files such as ~/.profile add {folder}")
        message = Text(template, host=host.name, folder=dirname(login.launcher))
        hint = Text(
            "jobs of oarsman still find it; plain mpirun does not: add the folder in ~/.bashrc, before it returns"
        )
        return Finding(host.name, "PATH", WARN, message, hint=hint)
    template = Text("{host}: a command over ssh finds {one}, a login shell {other}")
    message = Text(template, host=host.name, one=alone.launcher, other=login.launcher)
    hint = Text("let both find the same, or say in the inventory which it is (mpi: /opt/openmpi)")
    return Finding(host.name, "PATH", OK if host.mpi else WARN, message, hint=hint)


def _first(mpis: list[HostMpi], path: str) -> HostMpi | None:
    folders = path.split(":")
    return min(mpis, key=lambda mpi: [*folders, dirname(mpi.launcher)].index(dirname(mpi.launcher)), default=None)


def _folder(host: SshHost, facts: HostFacts) -> Finding:
    if not facts.folder_problem:
        return Finding(host.name, "folder", OK, Text("{folder} can be written", folder=facts.folder))
    template = Text("{host}: jobs cannot keep their files in {folder}: {why}")
    message = Text(template, host=host.name, folder=facts.folder or host.folder, why=facts.folder_problem)
    hint = Text("let the user write there, or name another folder in the inventory (folder: /scratch/oarsman)")
    return Finding(host.name, "folder", FAIL, message, hint=hint)


def _disk(host: SshHost, facts: HostFacts) -> Finding:
    places = {facts.folder: facts.folder_free, "/tmp": facts.temporary_free}
    known = {place: free for place, free in places.items() if free is not None}
    if not known:
        return Finding(host.name, "disk", WARN, Text("{host}: how much is free is not known", host=host.name))
    place, free = min(known.items(), key=lambda item: item[1])
    if free >= LEAST_FREE:
        return Finding(host.name, "disk", OK, Text("{n} MiB are free for {folder}", n=free >> 20, folder=place))
    template = Text("{host}: the disk is full: {n} MiB are free for {folder}")
    message = Text(template, host=host.name, n=free >> 20, folder=place)
    return Finding(host.name, "disk", FAIL, message, hint=Text("make room there"))


def _gpus(host: SshHost, facts: HostFacts) -> Finding:
    count, wanted = len(facts.gpus), host.gpus
    if wanted is None or wanted == count:
        return Finding(host.name, "GPUs", OK, Text("{n} GPUs", n=count))
    template = Text("{host}: {n} GPUs were found, the inventory says {wanted}")
    message = Text(template, host=host.name, n=count, wanted=wanted)
    hint = Text("correct the inventory, or look at nvidia-smi there")
    return Finding(host.name, "GPUs", FAIL if count < wanted else WARN, message, hint=hint)
