"""The ranks of a host elsewhere: what they and the host agent say of them, told to the job agent as on one machine."""

from __future__ import annotations

import binascii
import contextlib
import signal
import socket
from collections.abc import Callable, Sequence

from oarsman.engines.hosts.core import framing
from oarsman.engines.hosts.core.messages import RANKS, Exited, RankEnded, RankStarted
from oarsman.engines.hosts.core.orders import HostReport, Said

_STREAMS = {"stdout": "out", "stderr": "err"}


class Ranks:
    """Each has a connection of its own to the job agent. Programs of the job can write into the host agent's pipe as
    well, so what makes no sense is ignored."""

    def __init__(self, members: Sequence[tuple[str, int]], run_folder: str, tell: Callable[[HostReport], None]) -> None:
        self._members = members
        self._agent = f"{run_folder}/k"
        self._tell = tell
        self.tellers: dict[tuple[str, str], socket.socket] = {}

    def started(self, facts: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            label, rank, size, local, pid = facts.split()
            attempt, world, survives = label.split(":")
            teller = self.tellers[label, rank] = framing.connect(self._agent)
            host = member_of(self._members, int(local))
            told = RankStarted(
                int(rank), int(size), int(local), host, int(attempt), world, survives == "1", pid=int(pid)
            )
            RANKS.send(teller, told)

    def said(self, words: str) -> None:
        """What a rank wrote, out of the file that Open MPI keeps: WORLD/JOB/rank.NUMBER/STREAM BASE64."""
        with contextlib.suppress(KeyError, ValueError):
            path, data = words.split(" ")
            world, _job, rank, stream = path.split("/")
            attempt, number = int(world.partition("-")[0]), int(rank.removeprefix("rank."))
            binascii.a2b_base64(data)
            self._tell(Said(data, attempt, world, number, _STREAMS[stream]))

    def ended(self, facts: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            label, rank, code = facts.split()
            if (teller := self.tellers.pop((label, rank), None)) is not None:
                with teller:
                    RANKS.send(teller, RankEnded(*exit_told(int(code))))

    def end_all(self) -> None:
        for teller in self.tellers.values():
            teller.close()  # a rank that can say nothing more was killed
        self.tellers.clear()


def member_of(members: Sequence[tuple[str, int]], local: int) -> str:
    """Hosts of the job that share a machine are one to MPI; a rank belongs to the one whose slot it has."""
    for name, slots in members:
        if local < slots:
            return name
        local -= slots
    return members[-1][0]


def exit_told(code: int) -> Exited:
    """As a shell tells it: above 128 a signal ended the command."""
    if code < 0:  # our own ssh was killed
        code = 128 - code
    number = code - 128 if 128 < code < 128 + signal.NSIG and code != 255 else None
    return Exited(code, number)
