"""The way from here to a host, in the order in which ssh goes it: name, port, host key, login."""

from __future__ import annotations

from collections.abc import Iterator

from oarsman.engines.bare.over_ssh.checking.findings import FAIL, OK, Finding, HostSeen

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
