"""The hosts of one job: how its job agent makes, reaches and unmakes them, and the process that each one is."""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar

from oarsman import trees
from oarsman.engines.hosts.core import cgroups, linux, messages, process
from oarsman.engines.hosts.core.job_spec import HostSpec, JobSpec, replace_file
from oarsman.engines.hosts.core.messages import Exited, HostOrder, HostReport, RunCommand


@dataclass(slots=True)
class RunningHost:
    name: str
    spec: HostSpec
    process: process.ProcessId
    channel: socket.socket
    group: cgroups.Group
    unset: Sequence[str] = ()  # limits that could not be set
    last_seen: float = field(default_factory=time.monotonic)
    up: bool = False
    ending: bool = False  # it was told to end
    dying: bool = False  # its channel closed without that
    kills_seen: int = 0
    emptied: int = 0  # the last sweep before which its ranks wrote nothing that is not here

    def tell(self, order: HostOrder) -> None:
        with contextlib.suppress(OSError):
            messages.HOST_ORDERS.send(self.channel, order)

    def has_news(self) -> bool:
        """With poll: select() knows no descriptor above 1023, and a job of many ranks has those."""
        if self.channel.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self.channel, select.POLLIN)
        return bool(poll.poll(0))


class Hosts(dict[str, RunningHost]):
    """Of one job, by name, as its job agent knows them."""

    sweeps = 0  # how often all were told to end what runs on them

    def sweep(self) -> None:
        """Whatever commands still run on any host end now; the hosts stay."""
        self.sweeps += 1
        for host in self.values():
            host.tell(messages.EndCommands(self.sweeps))

    def output_awaited(self) -> bool:
        """Whether a host may have output of ranks that is not here yet. One that is lost has none."""
        return any(host.spec.hands_on and host.up and host.emptied < self.sweeps for host in self.values())

    def stop(self, name: str, grace: float) -> None:
        host = self.get(name)
        if host is not None and not host.ending:
            host.ending = True
            host.tell(messages.EndHost(grace))

    def take_heartbeats(self, heartbeat: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                host = self.get(heartbeat.recv(256).decode(errors="replace"))
                if host is not None:
                    host.last_seen = time.monotonic()

    def memory_killed(self, name: str) -> bool:
        """Whether the memory limit of this host was hit since the last time somebody asked."""
        host = self.get(name)
        if host is None:
            return False
        before, host.kills_seen = host.kills_seen, host.group.out_of_memory_kills()
        return host.kills_seen > before


class HostNetwork(ABC):
    """The hosts of one job and what connects them. Where they are, those that derive from it know."""

    heartbeat: socket.socket | None = None  # over which they answer pings, if not over their channels

    def __init__(self, spec: JobSpec) -> None:
        self.run_folder = spec.run_folder
        self._uid = spec.uid
        self._slices = spec.cgroups
        self._user = spec.confinement if spec.confinement is not None and spec.confinement.uid >= 0 else None

    @property
    def mode(self) -> int:
        """Of sockets for the job: who sees them at all, their folder says."""
        return 0o600 if self._user is None else 0o666

    def open(self) -> None:
        linux.become_subreaper()
        if self._user is not None:
            os.umask(0o022)
        for name in ("h", "t", "etc/mpi"):
            os.makedirs(f"{self.run_folder}/{name}", exist_ok=True)

    def address(self, _spec: HostSpec) -> str:
        """In a network of our own making."""
        return ""

    def ping(self, host: RunningHost) -> None:
        host.tell(messages.Ping())

    def add(self, name: str, spec: HostSpec, close: Sequence[int]) -> RunningHost:
        """Start a host, which closes what it must not have; it says on its channel when it is up."""
        group = cgroups.group_of(self._slices, self._uid, "launcher" if spec.launcher else str(spec.index))
        unset = group.make(memory_bytes=spec.memory, cpus=spec.cpus)
        os.makedirs(spec.temp, exist_ok=True)
        if self._user is not None:
            os.chown(spec.temp, self._user.uid, self._user.gid, follow_symlinks=False)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        pid = self._start(name, spec, theirs, group, [ours.fileno(), *close])
        theirs.close()
        identity = (process.identify(pid) if pid else None) or process.ProcessId(0, "")
        return RunningHost(name, spec, identity, ours, group, unset)

    @abstractmethod
    def _start(
        self, name: str, spec: HostSpec, channel: socket.socket, group: cgroups.Group, close: Sequence[int]
    ) -> int:
        """Its first process, in which `close` is closed; 0 if there is none."""

    def publish(self, files: Mapping[str, str], _hosts: Iterable[RunningHost]) -> None:
        """Replace the files under /etc/mpi that hosts see. Each is seen whole, as it was or as it is now."""
        for name, text in files.items():
            mode = 0o755 if name.endswith(".sh") else 0o644
            replace_file(f"{self.run_folder}/etc/mpi/{name}", text, mode=mode)

    def end_orphans(self, _hosts: Iterable[RunningHost]) -> list[int]:
        """End what hosts that are gone have left running here, but nothing of these hosts; what could not be ended."""
        return []

    def remove(self, host: RunningHost) -> None:
        host.channel.close()
        host.group.remove()
        trees.remove(host.spec.temp)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket_path(host.name))

    def socket_path(self, name: str) -> str:
        """Where a host takes commands."""
        return f"{self.run_folder}/h/{name}"


def report_failure(channel: socket.socket, error: BaseException) -> None:
    """A host's word to its job agent."""
    with contextlib.suppress(OSError):
        messages.HOST_REPORTS.send(channel, messages.InTrouble(str(error) or repr(error)))


_HANG_UP_GRACE = 2.0  # between TERM and KILL for a command whose caller went away


@dataclass(slots=True)
class Command:
    number: int  # on this host
    caller: socket.socket
    kill_at: float | None = None


C = TypeVar("C", bound=Command)


def serve(selector: selectors.BaseSelector, patience: float | None) -> None:
    """Whoever is ready, unless one of those before it has closed it."""
    for key, _ in selector.select(patience):
        if selector.get_map().get(key.fd) is key:  # by its number: of a closed socket no map can be asked
            key.data(key.fileobj)


def unwatch(selector: selectors.BaseSelector, thing: Any) -> None:
    """Whether it was watched or not, and if it is closed already."""
    with contextlib.suppress(KeyError, ValueError):
        selector.unregister(thing)


@dataclass(kw_only=True)
class Host(ABC, Generic[C]):
    name: str
    socket_path: str
    agent: socket.socket  # end of file here means the job agent is dead
    server: socket.socket | None = None  # at that path, if somebody listens already
    commands: dict[int, C] = field(default_factory=dict)
    ending_by: float | None = None
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def run(self) -> NoReturn:
        woken = process.wake_pipe()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        server = self.server or messages.listen(self.socket_path)
        self._watch(server, lambda _: self._watch(server.accept()[0], self._serve))
        self._watch(self.agent, self._obey)
        self._watch(woken, process.drain)
        self._begin()
        while True:
            serve(self.selector, self._patience())
            self._reap()
            self._keep_deadlines()

    def _watch(self, thing: Any, callback: Callable[[Any], None]) -> None:
        self.selector.register(thing, selectors.EVENT_READ, callback)

    def _tell(self, what: HostReport) -> None:
        with contextlib.suppress(OSError):
            messages.HOST_REPORTS.send(self.agent, what)

    def _obey(self, agent: socket.socket) -> None:
        order, _ = messages.HOST_ORDERS.receive(agent)
        match order:
            case None:
                self._end_now()
            case messages.Ping():
                self._pong()
            case messages.PublishFiles():
                self._take_files()
            case messages.EndCommands(number):
                self._sweep(number)
            case messages.EndHost(grace):
                self._end(grace)

    def _serve(self, caller: socket.socket) -> None:
        message, fds = messages.COMMANDS.receive(caller)
        match message:
            case RunCommand():
                self._take(caller, message, fds)
                return
            case messages.SignalCommand(number):
                self._signal_of(caller, signal.Signals(number))
            case None:
                self._hang_up(caller)
        for fd in fds:
            os.close(fd)

    def _signal_of(self, caller: socket.socket, number: signal.Signals) -> None:
        for command in self._of(caller):
            self._signal(command, number)

    def _hang_up(self, caller: socket.socket) -> None:
        """The caller is gone: like a closed ssh connection, its command ends too."""
        unwatch(self.selector, caller)
        caller.close()
        for command in self._of(caller):
            self._signal(command, signal.SIGTERM)
            command.kill_at = time.monotonic() + _HANG_UP_GRACE

    def _of(self, caller: socket.socket) -> list[C]:
        return [command for command in self.commands.values() if command.caller is caller]

    def _ended(self, command: Command, result: Exited) -> None:
        del self.commands[command.number]
        if command.caller.fileno() >= 0:
            self._answer(command.caller, result)

    def _answer(self, caller: socket.socket, result: Exited) -> None:
        with contextlib.suppress(OSError):
            messages.RESULTS.send(caller, result)

    def _deadlines(self) -> list[float | None]:
        return [self.ending_by, *(command.kill_at for command in self.commands.values())]

    def _patience(self) -> float | None:
        """The end of any process wakes us, so only the deadlines need a clock."""
        times = [when for when in self._deadlines() if when is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _keep_deadlines(self) -> None:
        now = time.monotonic()
        for command in self.commands.values():
            if command.kill_at is not None and now >= command.kill_at:
                command.kill_at = None
                self._signal(command, signal.SIGKILL)
        if self.ending_by is not None and now >= self.ending_by:
            self._end_now()

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _take(self, caller: socket.socket, command: RunCommand, fds: list[int]) -> None:
        """Start the command, now or later; `fds` are closed then."""

    @abstractmethod
    def _signal(self, command: C, number: signal.Signals) -> None: ...

    @abstractmethod
    def _reap(self) -> None:
        """Tell whose commands have ended."""

    @abstractmethod
    def _pong(self) -> None: ...

    def _take_files(self) -> None:
        """Those that were published are where they are seen, unless the host is elsewhere."""

    @abstractmethod
    def _sweep(self, number: int) -> None: ...

    @abstractmethod
    def _end(self, grace: float) -> None: ...

    @abstractmethod
    def _end_now(self) -> NoReturn: ...
