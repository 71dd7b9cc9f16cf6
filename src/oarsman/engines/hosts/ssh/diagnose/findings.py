"""What a check finds, and what follows from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.probe import HostFacts
from oarsman.engines.hosts.ssh.trouble import Trouble

OK, WARN, FAIL, SKIPPED = "ok", "warn", "fail", "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
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


def worst(findings: Iterable[Finding]) -> str:
    order = (SKIPPED, OK, WARN, FAIL)
    return max((finding.level for finding in findings), key=order.index, default=OK)


def unfit(hosts: Sequence[str], findings: Iterable[Finding]) -> dict[str, Finding]:
    """The hosts to leave out so that what is left has no failure, each with the failure that decided.

    Where the way between two hosts fails, one of them has to go: the one with the most such failures, and of equals
    the later in the inventory, as the first hosts are those that start jobs.
    """
    failures = [finding for finding in findings if finding.level == FAIL]
    gone: dict[str, Finding] = {}
    for finding in failures:
        if finding.host in hosts and not finding.other:
            gone.setdefault(finding.host, finding)
    ways = [finding for finding in failures if finding.host in hosts and finding.other in hosts]
    while ways := [way for way in ways if way.host not in gone and way.other not in gone]:
        count = Counter(end for way in ways for end in (way.host, way.other))
        chosen = max(count, key=lambda name: (count[name], hosts.index(name)))
        gone[chosen] = next(way for way in ways if chosen in (way.host, way.other))
    return gone
