"""The whole check, from the first step to a real mpirun; whoever asked is told of each step when it is known."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from oarsman.engines.hosts.ssh.client import Ssh, on_all
from oarsman.engines.hosts.ssh.diagnose.findings import FAIL, Finding, HostSeen, unfit
from oarsman.engines.hosts.ssh.diagnose.judge import alike, clock, reached, surroundings, way
from oarsman.engines.hosts.ssh.diagnose.questions import ask, try_ways
from oarsman.engines.hosts.ssh.interfaces import Networks, connecting
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.trouble import Trouble


@dataclass
class Diagnosis:
    """One run of it: what was found so far, and what it was found from."""

    ssh: Ssh
    hosts: Sequence[SshHost]
    tell: Callable[[Sequence[Finding]], None] = lambda findings: None
    stage: Callable[[str], None] = lambda name: None  # for those who watch
    real_run: Callable[[Diagnosis], Awaitable[Finding]] | None = None  # a job over all hosts that passed
    findings: list[Finding] = field(default_factory=list)
    seen: dict[str, HostSeen] = field(default_factory=dict)
    networks: Networks | None = None
    _judged: int = 0  # how many hosts have been told of
    _alone: bool = False  # whether those whose folder failed were asked again

    async def run(self) -> list[Finding]:
        self.stage("hosts")
        self.seen = await on_all(self.hosts, self._ask)
        await self._ask_again_alone()
        self._found(alike(list(self.seen.values())))
        there = [seen for seen in self.seen.values() if seen.facts is not None]
        self._choose_network(there)
        self.stage("ways")
        await self._try_ways(there)
        if self.real_run is not None:
            self.stage("real run")
            self._found([await self.real_run(self)])
        return self.findings

    @property
    def passed(self) -> list[SshHost]:
        """As many hosts as can be taken together without a failure."""
        failed = unfit([host.name for host in self.hosts], self.findings)
        return [host for host in self.hosts if host.name not in failed]

    async def _ask(self, host: SshHost) -> HostSeen:
        """Each is told of as soon as all before it have answered: people look for hosts in the order they know."""
        seen = await ask(self.ssh, host)
        self.seen[host.name] = seen
        self._judge_those_in_turn()
        return seen

    def _judge_those_in_turn(self) -> None:
        """Up to the first that has not answered, or that has to be asked again."""
        while self._judged < len(self.hosts):
            seen = self.seen.get(self.hosts[self._judged].name)
            if seen is None or (_folder_fails(seen) and not self._alone):
                return
            self._judged += 1
            own = surroundings(seen.host, seen.facts) if seen.facts is not None else ()
            self._found([*reached(seen), *own])

    async def _ask_again_alone(self) -> None:
        """Hosts with one home try the same folder, and may remove it under each other's hands: now one at a time."""
        for name, seen in self.seen.items():
            if _folder_fails(seen):
                self.seen[name] = await ask(self.ssh, seen.host)
        self._alone = True
        self._judge_those_in_turn()

    def _choose_network(self, there: Sequence[HostSeen]) -> None:
        if len(there) < 2:
            return
        facts = {seen.host.name: seen.facts for seen in there if seen.facts is not None}
        chosen = connecting(
            {name: own.addresses for name, own in facts.items()},
            {seen.host.name: seen.host.interface for seen in there if seen.host.interface},
            reached={name: own.reached for name, own in facts.items()},
            rdma=[name for name, own in facts.items() if own.rdma],
        )
        if isinstance(chosen, Trouble):
            self._found([Finding(host="", step="network", level=FAIL, message=chosen.message, hint=chosen.hint)])
        else:
            self.networks = chosen

    async def _try_ways(self, there: Sequence[HostSeen]) -> None:
        addresses = {name: end.address for name, end in self.networks.ends.items()} if self.networks else {}
        seen, ways = await try_ways(self.ssh, there, addresses)
        self.seen |= seen
        self._found([clock(each) for each in seen.values()])
        order = [host.name for host in self.hosts]
        ways.sort(key=lambda each: order.index(each.other.name))
        for name in seen:
            self._found(finding for each in ways if each.host == name for finding in way(each))

    def _found(self, findings: Iterable[Finding]) -> None:
        found = list(findings)
        self.findings += found
        if found:
            self.tell(found)


def _folder_fails(seen: HostSeen) -> bool:
    return seen.facts is not None and bool(seen.facts.folder_problem)
