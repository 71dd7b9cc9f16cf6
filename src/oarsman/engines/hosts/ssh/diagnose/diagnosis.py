"""The whole check, from the first step to a real mpirun; whoever asked is told of each step when it is known."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.ssh import scripts
from oarsman.engines.hosts.ssh.client import Ssh, on_all
from oarsman.engines.hosts.ssh.diagnose.findings import FAIL, OK, SKIPPED, Finding, HostSeen, unfit
from oarsman.engines.hosts.ssh.diagnose.judge import alike, clock, first_mpi, reached, surroundings, way
from oarsman.engines.hosts.ssh.diagnose.questions import ask, try_ways
from oarsman.engines.hosts.ssh.interfaces import Networks, connecting, variables
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.job.job import Implementation
from oarsman.job.mpi import ONE_THREAD
from oarsman.text.sentence import Text


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


_SECONDS = 60.0
STEP = "real run"


async def plain_mpirun(diagnosis: Diagnosis) -> Finding:
    hosts = diagnosis.passed
    why = why_not(hosts, diagnosis.findings)
    if why:
        hint = _by_job(len(hosts)) if hosts else ""
        return Finding(
            host="", step=STEP, level=SKIPPED, message=Text("mpirun was not tried: {why}", why=why), hint=hint
        )
    first = hosts[0]
    facts = {host.name: own.facts for host in hosts if (own := diagnosis.seen[host.name]).facts is not None}
    mpi = first_mpi(facts[first.name])
    assert mpi is not None, "a host without an MPI has not passed"
    told = variables(diagnosis.networks, first.name) if diagnosis.networks else {}
    answer = await diagnosis.ssh.run(first, script(mpi, hosts, told), timeout=_SECONDS)
    if answer.trouble is not None:
        return Finding(host="", step=STEP, level=FAIL, message=answer.trouble.message, hint=answer.trouble.hint)
    return judged(answer.code, answer.out, answer.err, {name: own.hostname for name, own in facts.items()})


def _by_job(count: int) -> str:
    command = f"oarsman run --on ssh -n {count} -- hostname"
    return Text("a job does it without trust between hosts: {command}", command=command)


def why_not(hosts: Sequence[SshHost], findings: Iterable[Finding]) -> str:
    """What a plain mpirun needs and does not have; empty: nothing is missing."""
    if not hosts:
        return Text("no host passed")
    logins = {(found.host, found.other) for found in findings if found.step == "login" and found.level == OK}
    for host in hosts:
        for other in hosts:
            if host is not other and (host.name, other.name) not in logins:
                return Text("{host} cannot log in to {other}", host=host.name, other=other.name)
    odd = next((host.name for host in hosts if host.port or host.user), "")
    return Text("plain mpirun does not know the port and user of {host}", host=odd) if odd else ""


def script(mpi: FoundMpi, hosts: Sequence[SshHost], told: Mapping[str, str]) -> str:
    """One process on each host that says where it is. What mpirun asks of a shell is not to ask anything of us."""
    names, count = [host.target for host in hosts], str(len(hosts))
    if mpi.family.implementation is Implementation.OPENMPI:
        argv = [mpi.launcher, "--host", ",".join(f"{name}:1" for name in names), "-n", count, "uname", "-n"]
    else:
        argv = [mpi.launcher, "-hosts", ",".join(names), "-ppn", "1", "-n", count, "uname", "-n"]
    agent = "ssh -o BatchMode=yes -o ConnectTimeout=10"
    roots = {f"{kind}_ALLOW_RUN_AS_ROOT{end}": "1" for kind in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}
    agents = {"OMPI_MCA_plm_rsh_agent": agent, "PRTE_MCA_plm_ssh_agent": agent}
    environment = {**ONE_THREAD, **hosts[0].environment, **told, **roots, **agents}
    path = f"export PATH={shlex.quote(mpi.folder)}:$PATH\n"  # where a launcher looks for its other parts
    return f"{scripts.exports(environment)}{path}exec {shlex.join(argv)} </dev/null\n"


def judged(code: int, out: str, err: str, hostnames: Mapping[str, str]) -> Finding:
    said = {line.strip() for line in out.splitlines()}
    missing = [host for host, hostname in hostnames.items() if hostname not in said]
    if code == 0 and not missing:
        message = Text("mpirun started a process on each of {n} hosts", n=len(hostnames))
        return Finding(host="", step=STEP, level=OK, message=message)
    last = next((line.strip() for line in err.splitlines() if line.strip(" -*=")), "") or Text(
        "it ended with code {code}", code=code
    )
    if missing:
        template = Text("mpirun over all hosts failed (nothing came from {hosts}): {why}")
        message = Text(template, hosts=", ".join(missing), why=last)
    else:
        message = Text("mpirun over all hosts failed: {why}", why=last)
    return Finding(host="", step=STEP, level=FAIL, message=message)
