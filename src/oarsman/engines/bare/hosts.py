"""The hosts of one job that run now, as their keeper knows them."""

from __future__ import annotations

import contextlib
import select
import socket
import time

from oarsman.engines.bare import wire
from oarsman.engines.bare.rack import RunningHost


class Hosts(dict[str, RunningHost]):
    """By name."""

    sweeps = 0  # how often all were told to end what runs on them

    def sweep(self) -> None:
        """Whatever commands still run on any host end now; the hosts stay."""
        self.sweeps += 1
        for host in self.values():
            _tell(host, {"do": "sweep", "number": self.sweeps})

    def output_awaited(self) -> bool:
        """Whether a host may have output of ranks that is not here yet. One that is lost has none."""
        return any(host.hands_on and host.up and host.emptied < self.sweeps for host in self.values())

    def stop(self, name: str, grace: float) -> None:
        host = self.get(name)
        if host is not None and not host.ending:
            host.ending = True
            _tell(host, {"do": "end", "grace": grace})

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


def has_news(host: RunningHost) -> bool:
    """With poll: select() knows no descriptor above 1023, and a job of many ranks has those."""
    if host.channel.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(host.channel, select.POLLIN)
    return bool(poll.poll(0))


def _tell(host: RunningHost, message: wire.Message) -> None:
    with contextlib.suppress(OSError):
        wire.send(host.channel, message)
