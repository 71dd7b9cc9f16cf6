"""The way from one host to another: what plain ssh and mpirun need between them, and what every job needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from oarsman.engines.bare.over_ssh.checking.findings import FAIL, OK, SKIPPED, WARN, Finding
from oarsman.engines.bare.over_ssh.checking.reaching import STEPS, stopped_at
from oarsman.engines.bare.over_ssh.inventory import RackHost
from oarsman.engines.bare.over_ssh.trouble import trouble

CONNECTED = "connected"
NO_TOOL = "no tool"  # neither ssh nor bash is there to connect with
NO_SSH = (126, 127)  # the shell's codes for a command that is not there, or is none


@dataclass(frozen=True, slots=True, kw_only=True)
class WaySeen:
    """What came of trying it on the first host."""

    host: str
    other: RackHost
    address: str  # of the other, in the network for MPI
    code: int | None = None  # of ssh to the other; None: not tried
    said: str = ""  # by ssh
    call: str = ""  # of connecting to the mpirun of the other: connected, or why not; empty: not tried
    untried: str = ""  # why it was not tried


_FINE = {
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
        yield Finding(host=here, other=there, step=step, level=OK, message=_FINE[step])


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
