"""What has to be the same on all hosts: the user, and the MPI. Most hosts are right, and the odd one is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TypeVar

from oarsman.engines.bare.mpi_found import FoundMpi
from oarsman.engines.bare.over_ssh.checking.findings import FAIL, OK, WARN, Finding, HostSeen
from oarsman.engines.bare.over_ssh.probe import HostFacts

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
