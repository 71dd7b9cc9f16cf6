"""The hosts of one job, as its job agent makes, reaches and unmakes them, wherever they are."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from oarsman.engines.hosts.core import cgroups, process
from oarsman.engines.hosts.core.job_spec import HostSpec, JobSpec
from oarsman.engines.hosts.core.orders import HOST_ORDERS, HOST_REPORTS, HostOrder, HostReport, Ping, Trouble


@dataclass(slots=True)
class RunningHost:
    name: str
    spec: HostSpec
    process: process.ProcessId
    channel: socket.socket
    group: cgroups.Group
    last_seen: float
    up: bool = False
    ending: bool = False  # it was told to end
    dying: bool = False  # its channel closed without that
    kills_seen: int = 0
    emptied: int = 0  # the last sweep before which its ranks wrote nothing that is not here

    def tell(self, order: HostOrder) -> None:
        with contextlib.suppress(OSError):
            HOST_ORDERS.send(self.channel, order)

    def has_news(self) -> bool:
        """With poll: select() knows no descriptor above 1023, and a job of many ranks has those."""
        if self.channel.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self.channel, select.POLLIN)
        return bool(poll.poll(0))


class HostNetwork:
    """The hosts of one job and what connects them. Where they are, those that derive from it know."""

    elsewhere = False  # whether its hosts are other machines
    heartbeat: socket.socket | None = None  # over which they answer pings, if not over their channels

    def __init__(self, spec: JobSpec) -> None:
        self.run_folder = spec.run_folder
        self._uid = spec.uid
        self._slices = spec.cgroups

    def open(self) -> None:
        if sys.platform == "linux":
            from oarsman.engines.hosts.core import linux

            linux.become_subreaper()
        for name in ("h", "t", "etc/mpi"):
            os.makedirs(f"{self.run_folder}/{name}", exist_ok=True)

    def address(self, _spec: HostSpec) -> str:
        """In a network of our own making."""
        return ""

    def ping(self, host: RunningHost) -> None:
        host.tell(Ping())

    def add(self, name: str, spec: HostSpec, *, now: float, close: Sequence[int]) -> tuple[RunningHost, list[str]]:
        """Start a host; it says on its channel when it is up. Also says which limits could not be set."""
        group = cgroups.group_of(self._slices, self._uid, "launcher" if spec.launcher else str(spec.index))
        unset = group.make(memory_bytes=spec.memory, cpus=spec.cpus)
        os.makedirs(spec.temp, exist_ok=True)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        pid = self._start(name, spec, theirs, group, [ours.fileno(), *close])
        theirs.close()
        identity = (process.identify(pid) if pid else None) or process.ProcessId(0, "")
        return RunningHost(name, spec, identity, ours, group, last_seen=now), unset

    def _start(
        self, name: str, spec: HostSpec, channel: socket.socket, group: cgroups.Group, close: Sequence[int]
    ) -> int:
        """Its first process, in which `close` is closed; 0 if there is none."""
        raise NotImplementedError

    def publish(self, files: Mapping[str, str], _hosts: Iterable[RunningHost]) -> None:
        """Replace the files under /etc/mpi that hosts see. Each is seen whole, as it was or as it is now."""
        for name, text in files.items():
            path = f"{self.run_folder}/etc/mpi/{name}"
            with open(f"{path}.new", "w") as file:
                file.write(text)
            os.chmod(f"{path}.new", 0o755 if name.endswith(".sh") else 0o644)
            os.rename(f"{path}.new", path)

    def remove(self, host: RunningHost) -> None:
        host.channel.close()
        host.group.remove()
        shutil.rmtree(host.spec.temp, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket_path(host.name))

    def socket_path(self, name: str) -> str:
        """Where a host takes commands."""
        return f"{self.run_folder}/h/{name}"


def report(channel: socket.socket, what: HostReport) -> None:
    """A host's word to its job agent."""
    with contextlib.suppress(OSError):
        HOST_REPORTS.send(channel, what)


def report_failure(channel: socket.socket, error: BaseException) -> None:
    report(channel, Trouble(str(error) or repr(error)))
