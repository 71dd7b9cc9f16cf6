"""The ranks of one attempt, as their keeper knows them: who and where each is, and how it ended."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import Any

from oarsman.engines.bare import loglines, wire
from oarsman.engines.bare.journal import Journal


@dataclass(slots=True)
class Rank:
    facts: dict[str, Any]
    ended: bool = False
    failed: bool = False

    @property
    def ends_the_others(self) -> bool:
        return self.failed and not self.facts["survives"]


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

    def started(self, caller: socket.socket, message: wire.Message) -> None:
        # The kernel tells the true process number; inside its host the rank knows only its own.
        peer = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12) if hasattr(socket, "SO_PEERCRED") else b""
        if not self._elsewhere:
            message["pid"] = struct.unpack("3i", peer)[0] if peer else message.get("pid", 0)
        self._by_caller[caller] = Rank(message)

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
        world = [rank for rank in self._by_caller.values() if rank.facts["world"] == last.facts["world"]]
        return len(world) == last.facts["size"] and all(rank.ended for rank in world)

    def hosts_of(self, number: int) -> list[str]:
        """Those of all ranks with this number, the newest last: a script may launch more than once."""
        return [rank.facts["host"] for rank in self._by_caller.values() if rank.facts["rank"] == number]

    def last_lines(self, caller: socket.socket) -> list[str]:
        rank = self._by_caller.get(caller)
        return self._lines(rank) if rank is not None else []

    def note_last_lines(self, journal: Journal) -> None:
        """Of ranks that failed elsewhere: their ends are told at once, what they wrote before comes later."""
        for rank in self._by_caller.values():
            if rank.failed and (lines := self._lines(rank)):
                facts = {key: rank.facts[key] for key in ("attempt", "world", "rank")}
                journal.note("rank-lines", **facts, lines=lines[-40:])

    def _lines(self, rank: Rank) -> list[str]:
        base = f"{loglines.attempt_folder(self._logs, rank.facts['attempt'])}/rank-{rank.facts['rank']}"
        return loglines.tail(f"{base}.out") + loglines.tail(f"{base}.err")
