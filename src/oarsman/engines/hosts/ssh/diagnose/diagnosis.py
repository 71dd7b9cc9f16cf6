"""The whole check, from the first step to a real mpirun; whoever asked is told of each step when it is known.

Also how fast the ways between hosts are, as far as can be known with nothing but ssh and the usual tools there.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from statistics import median

from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.ssh import scripts
from oarsman.engines.hosts.ssh.client import Ssh, on_all
from oarsman.engines.hosts.ssh.diagnose import judge
from oarsman.engines.hosts.ssh.diagnose.judge import FAIL, OK, SKIPPED, Finding, HostSeen
from oarsman.engines.hosts.ssh.diagnose.questions import ask, try_ways
from oarsman.engines.hosts.ssh.host_facts import network_of
from oarsman.engines.hosts.ssh.interfaces import Networks, variables
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.job.job import Implementation
from oarsman.job.mpi import ONE_THREAD
from oarsman.text.sentence import Text, sentences


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
        self._found(judge.alike(list(self.seen.values())))
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
        failed = judge.unfit([host.name for host in self.hosts], self.findings)
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
            own = judge.surroundings(seen.host, seen.facts) if seen.facts is not None else ()
            self._found([*judge.reached(seen), *own])

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
        chosen = network_of({seen.host.name: seen.host for seen in there}, facts)
        if isinstance(chosen, Trouble):
            self._found([Finding("", "network", FAIL, chosen.message, hint=chosen.hint)])
        else:
            self.networks = chosen

    async def _try_ways(self, there: Sequence[HostSeen]) -> None:
        addresses = {name: end.address for name, end in self.networks.ends.items()} if self.networks else {}
        seen, ways = await try_ways(self.ssh, there, addresses)
        self.seen |= seen
        self._found([judge.clock(each) for each in seen.values()])
        order = [host.name for host in self.hosts]
        ways.sort(key=lambda each: order.index(each.other.name))
        for name in seen:
            self._found(finding for each in ways if each.host == name for finding in judge.way(each))

    def _found(self, findings: Iterable[Finding]) -> None:
        if found := list(findings):
            self.findings += found
            self.tell(found)


def _folder_fails(seen: HostSeen) -> bool:
    return seen.facts is not None and bool(seen.facts.folder_problem)


_SECONDS = 60.0
STEP = "real run"


async def plain_mpirun(diagnosis: Diagnosis) -> Finding:
    hosts = diagnosis.passed
    if why := why_not(hosts, diagnosis.findings):
        command = f"oarsman run --on ssh -n {len(hosts)} -- hostname"
        hint = Text("a job does it without trust between hosts: {command}", command=command) if hosts else ""
        return Finding("", STEP, SKIPPED, Text("mpirun was not tried: {why}", why=why), hint=hint)
    first = hosts[0]
    facts = {host.name: own.facts for host in hosts if (own := diagnosis.seen[host.name]).facts is not None}
    mpi = judge.first_mpi(facts[first.name])
    assert mpi is not None, "a host without an MPI has not passed"
    told = variables(diagnosis.networks, first.name) if diagnosis.networks else {}
    answer = await diagnosis.ssh.run(first, script(mpi, hosts, told), timeout=_SECONDS)
    if answer.trouble is not None:
        return Finding("", STEP, FAIL, answer.trouble.message, hint=answer.trouble.hint)
    return judged(answer.code, answer.out, answer.err, {name: own.hostname for name, own in facts.items()})


def why_not(hosts: Sequence[SshHost], findings: Iterable[Finding]) -> str:
    """What a plain mpirun needs and does not have; empty: nothing is missing."""
    if not hosts:
        return Text("no host passed")
    logins = {(found.host, found.other) for found in findings if found.step == "login" and found.level == OK}
    for host, other in permutations([host.name for host in hosts], 2):
        if (host, other) not in logins:
            return Text("{host} cannot log in to {other}", host=host, other=other)
    odd = next((host.name for host in hosts if host.port or host.user), "")
    return Text("plain mpirun does not know the port and user of {host}", host=odd) if odd else ""


def script(mpi: FoundMpi, hosts: Sequence[SshHost], told: Mapping[str, str]) -> str:
    """One process on each host that says where it is. What mpirun asks of a shell is not to ask anything of us."""
    if mpi.family.implementation is Implementation.OPENMPI:
        words = ["--host", ",".join(f"{host.target}:1" for host in hosts)]
    else:
        words = ["-hosts", ",".join(host.target for host in hosts), "-ppn", "1"]
    argv = [mpi.launcher, *words, "-n", str(len(hosts)), "uname", "-n"]
    agent = "ssh -o BatchMode=yes -o ConnectTimeout=10"
    roots = {f"{kind}_ALLOW_RUN_AS_ROOT{end}": "1" for kind in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}
    agents = {"OMPI_MCA_plm_rsh_agent": agent, "PRTE_MCA_plm_ssh_agent": agent}
    environment = {**ONE_THREAD, **hosts[0].environment, **told, **roots, **agents}
    path = f"export PATH={shlex.quote(mpi.folder)}:$PATH\n"  # where a launcher looks for its other parts
    return f"{scripts.exports(environment)}{path}exec {shlex.join(argv)} </dev/null\n"


def judged(code: int, out: str, err: str, hostnames: Mapping[str, str]) -> Finding:
    said = {line.strip() for line in out.splitlines()}
    missing = ", ".join(host for host, hostname in hostnames.items() if hostname not in said)
    if code == 0 and not missing:
        many = Text("mpirun started a process on each of {n} hosts", n=len(hostnames))
        return Finding("", STEP, OK, many if len(hostnames) != 1 else Text("mpirun started a process on the host"))
    why = next((line.strip() for line in err.splitlines() if line.strip(" -*=")), "")
    why = why or Text("it ended with code {code}", code=code)
    message = Text("mpirun over all hosts failed: {why}", why=why)
    if missing:
        template = Text("mpirun over all hosts failed (nothing came from {hosts}): {why}")
        message = Text(template, hosts=missing, why=why)
    return Finding("", STEP, FAIL, message)


# -- how fast the ways are ---------------------------------------------------------------------------------------
MEBIBYTES = 64  # sent for each bandwidth
_RTT = re.compile(r"= ([\d.]+)/([\d.]+)/")  # of ping's last line: least/average/...

ROUND_TRIPS = 50  # of a line through ssh, where there is no ping
LATENCY_IS = Text("round trip of ping, or of a line through ssh where there is no ping")
BANDWIDTH_IS = Text("{n} MiB through ssh, limited by its encryption on one core", n=MEBIBYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    host: str
    other: str
    latency: float | None = None  # seconds there and back; None: could not be measured
    latency_by: str = ""  # ping or ssh
    bandwidth: float | None = None  # bytes per second
    why: str = ""  # what could not be measured, and why


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedSummary:
    least: float
    middle: float
    most: float
    slowest: Speed


def rounds(names: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Everybody with everybody once, as tournaments do: one stays, the others go round the table.

    The pairs of a round share no host, so that no measurement is in the way of another.
    """
    table: list[str | None] = [*names, *([None] if len(names) % 2 else [])]
    found = []
    for _ in range(len(table) - 1):
        half = len(table) // 2
        facing = zip(table[:half], reversed(table[half:]), strict=True)
        found.append([(one, other) for one, other in facing if one is not None and other is not None])
        table = [table[0], table[-1], *table[1:-1]]
    return found


def summary(speeds: Iterable[Speed], what: str) -> SpeedSummary | None:
    """Of the latency the slowest is the longest; of the bandwidth the smallest."""
    known = [speed for speed in speeds if getattr(speed, what) is not None]
    if not known:
        return None
    values = [getattr(speed, what) for speed in known]
    slowest = (max if what == "latency" else min)(known, key=lambda speed: float(getattr(speed, what)))
    return SpeedSummary(least=min(values), middle=median(values), most=max(values), slowest=slowest)


async def measure(
    ssh: Ssh, hosts: Sequence[SshHost], addresses: Mapping[str, str], trusting: Callable[[str, str], bool]
) -> list[Speed]:
    by_name = {host.name: host for host in hosts}
    found: list[Speed] = []

    async def one(host: str, other: str) -> None:
        trusts = trusting(host, other)
        text = _measuring(by_name[other], addresses[other], trusts)
        answer = await ssh.run(by_name[host], text, timeout=_SECONDS)
        failed = answer.trouble
        speed = Speed(host=host, other=other, why=failed.message) if failed else parsed(host, other, answer.out, trusts)
        found.append(speed)

    for pairs in rounds(list(by_name)):
        await asyncio.gather(*(one(host, other) for host, other in pairs))
    return found


def _measuring(other: SshHost, address: str, trusting: bool) -> str:
    """Times come from the clock of the host, so that the way from here does not matter."""
    ping = f"LC_ALL=C ping -q -c 10 -i 0.2 -w 5 {shlex.quote(address)} 2>/dev/null </dev/null\n"
    if not trusting:
        return ping
    words = ["ssh", "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "ConnectTimeout=8", "-o", "Compression=no"]
    words += [word for name, value in (("-l", other.user), ("-p", other.port)) if value for word in (name, str(value))]
    reach = shlex.join([*words, "--", other.target])
    given = f'reach() {{ {reach} "$@"; }}\nTRIPS={ROUND_TRIPS} MEBIBYTES={MEBIBYTES}\n'
    return ping + given + scripts.script("diagnose/measure")


def parsed(host: str, other: str, text: str, trusting: bool) -> Speed:
    def moments(what: str) -> list[float]:
        return [float(word) for word in re.findall(rf"^{what} ([\d.]+)$", text, re.MULTILINE)]

    ping, trips, sends = _RTT.search(text), moments("trip"), moments("send")
    latency, by = (float(ping[1]) / 1000, "ping") if ping else (None, "")
    if latency is None and len(trips) == 2:
        latency, by = (trips[1] - trips[0]) / ROUND_TRIPS, "ssh"
    bandwidth = None
    if len(sends) == 3:
        empty, full = sends[1] - sends[0], sends[2] - sends[1]
        bandwidth = MEBIBYTES * (1 << 20) / max(full - empty, 0.001)
    why = [] if latency is not None else [Text("there is no ping on {host}", host=host)]
    if bandwidth is None and trusting:
        why.append(Text("sending failed on {host}", host=host))
    elif bandwidth is None:
        why.append(Text("{host} cannot log in to {other}", host=host, other=other))
    return Speed(host=host, other=other, latency=latency, latency_by=by, bandwidth=bandwidth, why=sentences(why))
