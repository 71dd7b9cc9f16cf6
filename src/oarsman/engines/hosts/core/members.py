"""The hosts and ranks of one attempt, as the job agent knows them."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from dataclasses import dataclass

from oarsman.engines.hosts.core import log_lines
from oarsman.engines.hosts.core.host import RunningHost
from oarsman.engines.hosts.core.journal import Journal, RankLines
from oarsman.engines.hosts.core.messages import EndCommands, EndHost, RankStarted


class Hosts(dict[str, RunningHost]):
    """By name."""

    sweeps = 0  # how often all were told to end what runs on them

    def sweep(self) -> None:
        """Whatever commands still run on any host end now; the hosts stay."""
        self.sweeps += 1
        for host in self.values():
            host.tell(EndCommands(self.sweeps))

    def output_awaited(self) -> bool:
        """Whether a host may have output of ranks that is not here yet. One that is lost has none."""
        return any(host.spec.hands_on and host.up and host.emptied < self.sweeps for host in self.values())

    def stop(self, name: str, grace: float) -> None:
        host = self.get(name)
        if host is not None and not host.ending:
            host.ending = True
            host.tell(EndHost(grace))

    def take_heartbeats(self, heartbeat: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                name, _ = heartbeat.recvfrom(256)
                host = self.get(name.decode(errors="replace"))
                if host is not None:
                    host.last_seen = time.monotonic()

    def memory_killed(self, name: str) -> bool:
        """Whether the memory limit of this host was hit since the last time somebody asked."""
        host = self.get(name)
        if host is None:
            return False
        kills = host.group.out_of_memory_kills()
        hit = kills > host.kills_seen
        host.kills_seen = kills
        return hit


@dataclass(slots=True)
class Rank:
    facts: RankStarted
    ended: bool = False
    failed: bool = False

    @property
    def ends_the_others(self) -> bool:
        return self.failed and not self.facts.survives


class Ranks:
    """By the connections over which they report."""

    def __init__(self, logs: str, *, elsewhere: bool) -> None:
        self._logs = logs
        self._elsewhere = elsewhere
        self._by_caller: dict[socket.socket, Rank] = {}

    def __contains__(self, caller: object) -> bool:
        return caller in self._by_caller

    def clear(self) -> None:
        self._by_caller.clear()

    def started(self, caller: socket.socket, facts: RankStarted) -> RankStarted:
        """With its true process number, which the kernel tells; inside its host the rank knows only its own."""
        if not self._elsewhere and hasattr(socket, "SO_PEERCRED"):
            peer = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            facts = facts._replace(pid=struct.unpack("3i", peer)[0])
        self._by_caller[caller] = Rank(facts)
        return facts

    def ended(self, caller: socket.socket, code: int) -> Rank | None:
        """The rank that ended just now; None if nobody did."""
        rank = self._by_caller.get(caller)
        if rank is None or rank.ended:
            return None
        rank.ended, rank.failed = True, code != 0
        return rank

    def all_ended(self) -> bool:
        return all(rank.ended for rank in self._by_caller.values())

    def world_ended(self, last: Rank) -> bool:
        world = [rank for rank in self._by_caller.values() if rank.facts.world == last.facts.world]
        return len(world) == last.facts.size and all(rank.ended for rank in world)

    def hosts_of(self, number: int) -> list[str]:
        """Those of all ranks with this number, the newest last: a script may launch more than once."""
        return [rank.facts.host for rank in self._by_caller.values() if rank.facts.rank == number]

    def last_lines(self, caller: socket.socket) -> list[str]:
        rank = self._by_caller.get(caller)
        return self._lines(rank) if rank is not None else []

    def note_last_lines(self, journal: Journal) -> None:
        """Of ranks that failed elsewhere: their ends are told at once, what they wrote before comes later."""
        for rank in self._by_caller.values():
            if rank.failed and (lines := self._lines(rank)):
                facts = rank.facts
                journal.note(RankLines(facts.attempt, facts.world, facts.rank, lines[-40:]))

    def _lines(self, rank: Rank) -> list[str]:
        base = f"{log_lines.attempt_folder(self._logs, rank.facts.attempt)}/rank-{rank.facts.rank}"
        return log_lines.tail(f"{base}.out") + log_lines.tail(f"{base}.err")
