"""The journal of a job replayed fact by fact: its hosts, launchers and ranks, as they are and as the plan sees them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from oarsman import names
from oarsman.engines.contract import Assignment
from oarsman.engines.hosts.core import journal
from oarsman.engines.hosts.core.messages import RankStarted, WorldStarted
from oarsman.engines.hosts.core.process import ProcessId
from oarsman.job import launch
from oarsman.job.job import Job
from oarsman.job.observed import Exit, Member, OtherMpi, Phase, RankReport, World
from oarsman.text.sentence import Text

_LOST_DAEMON = "PRTE has lost communication with a remote daemon"
_MOST_WORLDS = 1000  # of an attempt that are remembered: each turn of its job looks at all of them
# Of words that say nothing about where ranks go.
_UNCLEAR = launch.LaunchLine(launcher="", path="", unclear=("",))


@dataclass(slots=True)
class HostSeen:
    name: str
    index: int
    launcher: bool
    process: ProcessId
    made_at: datetime
    up: bool = False
    ending: bool = False  # it was asked to, and takes its time
    down_at: datetime | None = None
    trouble: str = ""  # why it is down, or why it does not come up; empty when it was asked to end
    trouble_at: datetime | None = None  # it is ended for it a moment later, and its ranks with it
    memory_limit_hit: bool = False
    machine: str = ""  # where it is, if it is not a machine of its own


@dataclass(slots=True)
class LauncherSeen:
    attempt: int
    started_at: datetime
    finished_at: datetime | None = None
    exit: Exit | None = None
    lines: tuple[str, ...] = ()
    dismissed: bool = False  # the plan has dealt with it
    host_lost: str = ""  # why its host was ended under it
    host_lost_at: datetime | None = None
    workers: tuple[HostSeen, ...] = ()  # those that were up, or had been lost, when it ended


@dataclass(slots=True)
class WorldSeen:
    line: launch.LaunchLine | None = None  # None: not told
    hosts: tuple[str, ...] = ()  # that were listed when it was launched, or when its first rank started
    ranks: dict[int, RankReport] = field(default_factory=dict)

    def alike(self) -> Hashable:
        """The same for worlds of which one is as good as the other; None while this one may change."""
        exits = [rank.exit for rank in self.ranks.values()]
        size = max(rank.world_size for rank in self.ranks.values())
        if len(exits) < size or None in exits:
            return None
        return (
            self.line,
            self.hosts,
            tuple((rank, self.ranks[rank].host, self.ranks[rank].exit) for rank in sorted(self.ranks)),
        )


@dataclass(slots=True)
class Seen:
    agent: ProcessId | None = None
    ended: bool = False
    hosts: dict[str, HostSeen] = field(default_factory=dict)
    machines: dict[str, str] = field(default_factory=dict)  # by host, also of those that left: ranks ran there
    lost_machines: set[str] = field(default_factory=set)  # on which a host ended that was not asked to, in any attempt
    launcher: LauncherSeen | None = None
    worlds: dict[tuple[int, str], WorldSeen] = field(default_factory=dict)  # of the newest attempt, the newest last
    launched: dict[tuple[int, str], WorldSeen] = field(default_factory=dict)  # without a rank so far
    over: set[Hashable] = field(default_factory=set)  # what worlds that ended were like
    published: tuple[str, ...] | None = None
    first_output: dict[int, datetime] = field(default_factory=dict)
    log_trouble: str = ""  # of the newest attempt
    ranks_may_fail: bool = False  # the user asked that the others go on
    taken_away: dict[str, datetime] = field(default_factory=dict)  # hosts that were to go while the newest launcher ran

    @property
    def ranks(self) -> dict[int, RankReport]:
        """Of the newest world."""
        return next(reversed(self.worlds.values())).ranks if self.worlds else {}

    def learn(self, noted: journal.Noted) -> None:
        fact, when = noted.fact, datetime.fromtimestamp(noted.at, UTC)
        match fact:
            case journal.AgentStarted():
                self.agent, self.ended, self.published = ProcessId(fact.pid, fact.started), False, None
                self.hosts.clear()
                if self.launcher is not None and self.launcher.exit is None:
                    self.launcher = None  # it went with the agent before, and nobody is left who would note its end
            case journal.AgentEnded():
                self.ended = True
                self.hosts.clear()
            case journal.HostMade():
                process = ProcessId(fact.pid, fact.started)
                self.hosts[fact.host] = HostSeen(
                    fact.host, fact.index, fact.launcher, process, made_at=when, machine=fact.machine
                )
                if fact.machine:
                    self.machines[fact.host] = fact.machine
            case journal.HostUp() if host := self.hosts.get(fact.host):
                host.up, host.trouble, host.trouble_at = True, "", None  # it may have taken several tries
            case journal.HostTrouble() if host := self.hosts.get(fact.host):
                host.trouble, host.trouble_at = fact.reason, when
                if host.up:  # it is ended for it, which may take longer than all that follows from it
                    host.up, host.down_at = False, when
                    if host.launcher and self.launcher is not None and self.launcher.exit is None:
                        self.launcher.host_lost, self.launcher.host_lost_at = fact.reason, when
            case journal.HostEnding() if host := self.hosts.get(fact.host):
                host.ending = True
                if self.launcher is not None and self.launcher.exit is None:
                    self.taken_away[fact.host] = when
            case journal.HostDown() if host := self.hosts.get(fact.host):
                host.trouble = host.trouble or fact.reason
                if host.trouble and host.machine:
                    self.lost_machines.add(host.machine)
                host.memory_limit_hit = fact.memory
                host.up, host.down_at = False, host.trouble_at or when
                runs = self.launcher is not None and self.launcher.exit is None
                if not host.trouble or (host.launcher and runs):  # a launcher's host is judged by the launcher
                    del self.hosts[fact.host]
            case journal.HostGone() if (host := self.hosts.get(fact.host)) and host.down_at is not None:
                del self.hosts[fact.host]
            case journal.LauncherStarted():
                self.launcher, self.log_trouble = LauncherSeen(fact.attempt, started_at=when), ""
                for of_before in (self.worlds, self.launched, self.over, self.taken_away):
                    of_before.clear()
            case journal.LauncherEnded() if self.launcher is not None and self.launcher.attempt == fact.attempt:
                if fact.memory or not fact.signal:  # it has a word of its own, or the kernel has
                    self.launcher.host_lost, self.launcher.host_lost_at = "", None
                self.launcher.finished_at = self.launcher.host_lost_at or when
                self.launcher.exit = Exit(code=fact.code, signal=fact.signal, memory_limit_hit=fact.memory)
                self.launcher.lines = tuple(fact.lines)
                then = (host for host in self.hosts.values() if (host.up or host.down_at) and not host.launcher)
                self.launcher.workers = tuple(replace(host) for host in then)
            case journal.LauncherGone() if self.launcher is not None and self.launcher.attempt == fact.attempt:
                self.launcher.dismissed = True
            case WorldStarted():
                line = launch.parse(fact.words) or _UNCLEAR
                if (world := self.worlds.get((fact.attempt, fact.world))) is not None:
                    world.line = line  # a rank was quicker to say so
                else:
                    self.launched[fact.attempt, fact.world] = WorldSeen(line, self.published or ())
                    if len(self.launched) > _MOST_WORLDS:
                        del self.launched[next(iter(self.launched))]
            case RankStarted():
                self.ranks_may_fail = fact.survives
                self._world_of(fact).ranks[fact.rank] = RankReport(
                    rank=fact.rank,
                    host=fact.host,
                    world_size=fact.size,
                    local_rank=fact.local,
                    pid=fact.pid,
                    started_at=when,
                )
            case journal.RankEnd() if (ranks := self._ranks_beside(fact)) is not None:
                ranks[fact.rank] = replace(
                    ranks[fact.rank],
                    finished_at=datetime.fromtimestamp(fact.at, UTC) if fact.at else when,
                    exit=Exit(code=fact.code, signal=fact.signal, memory_limit_hit=fact.memory),
                    reason=fact.reason,
                    last_lines=tuple(fact.lines),
                )
            case journal.RankLines() if (ranks := self._ranks_beside(fact)) is not None:
                ranks[fact.rank] = replace(ranks[fact.rank], last_lines=tuple(fact.lines))
            case journal.RankException() if (ranks := self._ranks_beside(fact)) is not None:
                ranks[fact.rank] = replace(ranks[fact.rank], raised=fact.line)
            case journal.RankSilence() if (ranks := self._ranks_beside(fact)) is not None:
                ranks[fact.rank] = replace(ranks[fact.rank], cpu=fact.cpu)
            case journal.RankOtherMpi() if (ranks := self._ranks_beside(fact)) is not None:
                files = {"library": fact.library, "launcher": fact.launcher, "own": fact.own}
                other_mpi = OtherMpi(family=fact.of, launched_by=fact.by, **files)
                ranks[fact.rank] = replace(ranks[fact.rank], other_mpi=other_mpi)
            case journal.Published():
                self.published = tuple(fact.hosts)
            case journal.OutputBegan():
                self.first_output.setdefault(fact.attempt, when)
            case journal.LogTrouble():
                self.log_trouble = fact.reason

    def _world_of(self, fact: RankStarted) -> WorldSeen:
        """A script may launch a thousand times: of worlds that ended and were alike, the first is kept."""
        key = (fact.attempt, fact.world)
        if key not in self.worlds:
            if self.worlds:
                before = next(reversed(self.worlds))
                alike = self.worlds[before].alike()
                if alike in self.over:
                    del self.worlds[before]
                elif alike is not None:
                    self.over.add(alike)
            world = self.worlds[key] = self.launched.pop(key, WorldSeen())
            if len(self.worlds) > _MOST_WORLDS:  # the oldest was looked at, turn by turn
                del self.worlds[next(iter(self.worlds))]
            world.hosts = tuple(dict.fromkeys((*world.hosts, *(self.published or ()))))
        return self.worlds[key]

    def _ranks_beside(
        self,
        fact: journal.RankEnd | journal.RankLines | journal.RankException | journal.RankSilence | journal.RankOtherMpi,
    ) -> dict[int, RankReport] | None:
        """The ranks of its world, if it is known as one of them."""
        world = self.worlds.get((fact.attempt, fact.world))
        return world.ranks if world is not None and fact.rank in world.ranks else None


def worlds(seen: Seen) -> tuple[World, ...]:
    found = (
        World(ranks=tuple(world.ranks[rank] for rank in sorted(world.ranks)), line=world.line, hosts=world.hosts)
        for world in seen.worlds.values()
    )
    return tuple(found) or (World(ranks=()),)


def worker_members(assignment: Assignment, seen: Seen, agent_alive: bool) -> tuple[Member, ...]:
    """Those of a launcher that ended while no supervisor was there are gone with their job agent, but were not lost."""
    launcher = seen.launcher
    if seen.ended and launcher is not None and not launcher.dismissed and not assignment.status.finished:
        return tuple(_worker_member(host, True) for host in launcher.workers)
    return tuple(_worker_member(host, agent_alive) for host in seen.hosts.values() if not host.launcher)


def _worker_member(host: HostSeen, agent_alive: bool) -> Member:
    member = Member(name=host.name, index=host.index, phase=Phase.RUNNING, ready=True, started_at=host.made_at)
    if host.down_at is not None or not agent_alive:
        reason = "OOMKilled" if host.memory_limit_hit else names.REASON_HOST_LOST
        return _failed(member, host.down_at, reason, host.trouble or Text("its job agent was killed"))
    if host.up:
        return replace(member, terminating=host.ending)
    why = host.trouble or Text("it is still starting")
    return replace(member, phase=Phase.PENDING, ready=False, terminating=host.ending, not_ready_because=why)


def _failed(member: Member, at: datetime | None, reason: str, message: str) -> Member:
    return replace(member, phase=Phase.FAILED, ready=False, finished_at=at, reason=reason, message=message)


def _hidden_failure(job: Job, seen: Seen) -> bool:
    """Open MPI 5 can end with 0 although a host died. What a script makes of a failed mpirun is its own affair."""
    direct = job.launch is not None and not job.launch.in_shell
    failed = any(rank.exit is not None and rank.exit.code != 0 for rank in seen.ranks.values())
    amiss = any(rank.reason or (rank.other_mpi and rank.other_mpi.alone) for rank in seen.ranks.values())
    last = seen.launcher.lines if seen.launcher is not None else ()
    failed = failed or any(_LOST_DAEMON in line for line in last)  # perhaps before any rank was there
    return bool(seen.log_trouble) or amiss or (direct and failed and not seen.ranks_may_fail)


def _unrecorded(job: Job, launcher: LauncherSeen) -> Member:
    """It went with its job agent before the status could say that it had begun. It did, and is not to run twice."""
    began = Member(name=job.launcher_host, attempt=launcher.attempt, phase=Phase.FAILED, started_at=launcher.started_at)
    killed = replace(began, exit=Exit(code=137, signal=9))
    return _failed(killed, None, names.REASON_HOST_LOST, Text("its job agent was killed"))


def launcher_member(assignment: Assignment, seen: Seen, agent_alive: bool) -> Member | None:
    job, attempt, launcher = assignment.job, assignment.status.attempt, seen.launcher
    host = seen.hosts.get(job.launcher_host)
    if attempt is not None and not attempt.outcome and (launcher is None or launcher.attempt < attempt.number):
        if not agent_alive or host is None:
            return None
        # It was ordered, and starts as soon as its host is up. Far away that may take long.
        member = Member(name=job.launcher_host, attempt=attempt.number, phase=Phase.PENDING, started_at=attempt.started)
        if host.down_at is None:
            return replace(member, not_ready_because=host.trouble)
        return _failed(member, host.down_at, names.REASON_HOST_LOST, host.trouble)
    vanished = not agent_alive or seen.ended  # if it has not ended, it did so with its job agent
    if launcher is None or (vanished if launcher.exit is None else launcher.dismissed):
        began = launcher is not None and not launcher.dismissed and launcher.exit is None
        recorded = attempt.number if attempt is not None else 0
        return _unrecorded(job, launcher) if launcher is not None and began and launcher.attempt > recorded else None
    phase = Phase.RUNNING
    if launcher.exit is not None:
        phase = Phase.SUCCEEDED if launcher.exit.code == 0 and not _hidden_failure(job, seen) else Phase.FAILED
    return Member(
        name=job.launcher_host,
        attempt=launcher.attempt,
        phase=phase,
        ready=phase is Phase.RUNNING,
        terminating=launcher.dismissed,
        started_at=launcher.started_at,
        finished_at=launcher.finished_at,
        exit=launcher.exit,
        reason=names.REASON_HOST_LOST if launcher.host_lost and phase is Phase.FAILED else "",
        message=seen.log_trouble or launcher.host_lost,
    )
