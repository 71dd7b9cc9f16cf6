"""Hosts of a job that are processes of this machine: namespaces, addresses, mounts and limits.

Runs inside the job agent. `LocalHostNetwork` forks twice for each host: the first child enters new namespaces and waits
for its network cable, the second is the host's first process. No other program is needed but `ip`.

That process accepts commands from the shim for ssh, starts them with the caller's own input and output, reaps every
orphan, and ends with everything that runs on it when told so or when its job agent is gone. Seen by mpirun it is a
machine.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from oarsman.engines.hosts.core import confine, limits, linux, messages, process
from oarsman.engines.hosts.core.cgroups import Group
from oarsman.engines.hosts.core.host import Command, Host, HostNetwork, RunningHost, report_failure
from oarsman.engines.hosts.core.job_spec import HostSpec, JobSpec, LocalHostSpec
from oarsman.engines.hosts.core.limits import Limits
from oarsman.engines.hosts.core.linux import run_ip
from oarsman.engines.hosts.core.messages import Alive, Exited, RunCommand, Up
from oarsman.engines.hosts.core.shims import exit_of

_BRIDGE = "rack0"
_BRIDGE_ADDRESS = "10.77.0.1"
_HEARTBEAT_PORT = 4077
_END_WITHIN = 2.0  # what was killed takes a moment to be gone


def address_of(index: int, *, launcher: bool, private: bool) -> str:
    """The launcher is .0.2, workers follow from .1.1 on, 250 in each block.

    On the machine's own network hosts get loopback addresses, each a different one: Open MPI 4 takes a name that
    resolves to the address of an interface for itself, and would run every rank on the launcher.
    """
    net = "10.77" if private else "127.77"
    return f"{net}.0.2" if launcher else f"{net}.{index // 250 + 1}.{index % 250 + 1}"


class LocalHostNetwork(HostNetwork):
    def __init__(self, spec: JobSpec) -> None:
        super().__init__(spec)
        self.separation = spec.separation
        self.private_network = spec.network == "private" and self.separation.network
        self._ip = spec.ip or ""
        self._limits = spec.limits
        self._confinement = spec.confinement

    def open(self) -> None:
        """Enter the job's own network; from now on this process is its switch."""
        super().open()
        os.makedirs(f"{self.run_folder}/layer/mpi", exist_ok=True)  # the layer over /etc: what is there is bound over
        for path in (f"{self.run_folder}/layer/hosts", f"{self.run_folder}/etc/hosts"):
            open(path, "a").close()
        if self._confinement is not None:
            linux.leave_keyring()
        if self.separation.names and self.separation.user:
            linux.enter_own_user_namespace()
        if self.private_network:
            linux.unshare(linux.CLONE_NEWNET)
            made = [f"link add {_BRIDGE} type bridge", f"addr add {_BRIDGE_ADDRESS}/16 dev {_BRIDGE}"]
            run_ip(self._ip, ["link set lo up", *made, f"link set {_BRIDGE} up"])
            self.heartbeat = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.heartbeat.bind((_BRIDGE_ADDRESS, 0))
            self.heartbeat.setblocking(False)

    def address(self, spec: HostSpec) -> str:
        return address_of(spec.index, launcher=spec.launcher, private=self.private_network)

    def ping(self, host: RunningHost) -> None:
        if self.heartbeat is None:
            super().ping(host)
            return
        with contextlib.suppress(OSError):
            self.heartbeat.sendto(b"?", (self.address(host.spec), _HEARTBEAT_PORT))

    def publish(self, files: Mapping[str, str], hosts: Iterable[RunningHost]) -> None:
        with open(f"{self.run_folder}/etc/hosts", "w") as file:  # in place: this very file is mounted
            file.write(files["hosts"])
        super().publish({name: text for name, text in files.items() if name != "hosts"}, hosts)

    def end_orphans(self, hosts: Iterable[RunningHost]) -> list[int]:
        """With process numbers of its own nothing outlives a host. Otherwise its processes have come home to us."""
        known = {host.process.pid for host in hosts}
        deadline = time.monotonic() + _END_WITHIN
        while not self.separation.processes:
            # Those that only wait to be reaped are gone.
            left = [pid for pid in process.descendants(os.getpid(), known) if process.identify(pid) is not None]
            if not left or time.monotonic() >= deadline:
                return left
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)  # one that is gone may have left others to us
        return []

    def _start(self, name: str, spec: HostSpec, channel: socket.socket, group: Group, close: Sequence[int]) -> int:
        assert isinstance(spec, LocalHostSpec)
        ready_read, ready_write = os.pipe()
        go_read, go_write = os.pipe()
        first = os.fork()
        if first == 0:
            for fd in (ready_read, go_write, *close):
                os.close(fd)
            group.join()
            self._first_child(name, spec, channel, ready_write, go_read)
        os.close(ready_write)
        os.close(go_read)
        with os.fdopen(ready_read, "rb") as ready:
            if ready.read(1) == b"r" and self.private_network:
                cable = "cl" if spec.launcher else f"c{spec.index}"
                with contextlib.suppress(OSError):  # the host will say that it has no network
                    made = f"link add {cable} type veth peer name eth0 netns {first}"
                    run_ip(self._ip, [made, f"link set {cable} master {_BRIDGE} up"])
            with contextlib.suppress(BrokenPipeError):
                os.write(go_write, b"g")
            os.close(go_write)
            pid = int(ready.read() or 0)
        os.waitpid(first, 0)
        return pid

    def _first_child(self, name: str, spec: LocalHostSpec, channel: socket.socket, ready: int, go: int) -> NoReturn:
        have = self.separation
        try:
            if have.names:
                flags = linux.CLONE_NEWUTS | linux.CLONE_NEWIPC
                flags |= linux.CLONE_NEWNS if have.mounts else 0
                flags |= linux.CLONE_NEWNET if self.private_network else 0
                linux.unshare(flags)
                socket.sethostname(name)
            os.write(ready, b"r")
            os.read(go, 1)
            if self.private_network:
                run_ip(self._ip, ["link set lo up", f"addr add {self.address(spec)}/16 dev eth0", "link set eth0 up"])
            if have.processes:
                linux.unshare(linux.CLONE_NEWPID)  # last, because the next child becomes the host's process 1
            second = os.fork()
            if second:
                os.write(ready, str(second).encode())
                os._exit(0)
            os.close(ready)
            os.close(go)
            self._be_host(name, spec, channel)
        except BaseException as error:
            report_failure(channel, error)
            os._exit(1)

    def _be_host(self, name: str, spec: LocalHostSpec, channel: socket.socket) -> NoReturn:
        os.setsid()
        linux.become_subreaper()
        server = messages.listen(self.socket_path(name), mode=self.mode)  # before nothing can be made there any more
        self._mount(spec)
        heartbeat = None
        if self.private_network:
            heartbeat = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            heartbeat.bind((self.address(spec), _HEARTBEAT_PORT))
        if self._confinement is not None:
            process.close_all_but({channel.fileno(), server.fileno(), *([heartbeat.fileno()] if heartbeat else [])})
            confine.give_up_rights(self._confinement)
        LocalHost(
            name=name,
            socket_path=self.socket_path(name),
            server=server,
            agent=channel,
            spec=spec,
            owns_pids=self.separation.processes,
            heartbeat=heartbeat,
            limits=self._limits,
        ).run()

    def _mount(self, spec: LocalHostSpec) -> None:
        have = self.separation
        if not have.mounts:
            return
        linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
        if have.etc:
            layer = f"{self.run_folder}/layer"
            linux.mount("overlay", "/etc", "overlay", linux.MS_RDONLY, f"lowerdir={layer}:/etc")
            # Bound over the layer, because an overlay does not notice files replaced below it.
            linux.bind(f"{self.run_folder}/etc/mpi", "/etc/mpi", read_only=True)
            linux.bind(f"{self.run_folder}/etc/hosts", "/etc/hosts")
        taken: list[int | None] = [None] * len(spec.mounts)
        if self._confinement is not None:
            # Before there is anything of the job's: where one volume lies in the way to another, its links lead astray.
            taken = [None if volume.memory else linux.take(volume.source) for volume in spec.mounts]
            confine.see_only(self._confinement._replace(writable=[*self._confinement.writable, spec.temp]))
        linux.mount("tmpfs", "/dev/shm", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=1777")
        for volume, own in zip(spec.mounts, taken, strict=True):
            if volume.memory:
                linux.mount("tmpfs", volume.target, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, volume.options)
            elif own is not None:
                target = os.path.realpath(volume.target)
                linux.put(own, target)
                if volume.read_only:
                    linux.set_read_only(target)
            else:
                linux.bind(volume.source, volume.target, read_only=volume.read_only)
        if have.processes:
            linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)


@dataclass(kw_only=True)
class LocalHost(Host[Command]):
    spec: LocalHostSpec
    owns_pids: bool  # True: we are process 1, and nothing outlives us
    heartbeat: socket.socket | None = None  # answers pings on the host's own address
    limits: Limits | None = None  # of its commands

    def _begin(self) -> None:
        if self.heartbeat is not None:
            self._watch(self.heartbeat, self._answer_ping)
        self._tell(Up())

    def _take(self, caller: socket.socket, command: RunCommand, fds: list[int]) -> None:
        pid = os.fork()
        if pid == 0:
            os.umask(self.spec.umask)
            _become(command.argv, {**self.spec.environment, **command.env}, self.spec.folder, fds, self.limits)
        for fd in fds:
            os.close(fd)
        self.commands[pid] = Command(pid, caller)

    def _signal(self, command: Command, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(command.number, number)

    def _reap(self) -> None:
        for pid, status in process.ended_children():
            if pid in self.commands:
                self._ended(self.commands[pid], Exited(*exit_of(status)))

    def _halted(self) -> bool:
        """A halted daemon makes the whole host silent, as it would be on a network."""
        return any(process.stopped(pid) for pid in self.commands)

    def _answer_ping(self, heartbeat: socket.socket) -> None:
        _data, address = heartbeat.recvfrom(64)
        if not self._halted():
            heartbeat.sendto(self.name.encode(), address)

    def _pong(self) -> None:
        if not self._halted():
            self._tell(Alive())

    def _sweep(self, _number: int) -> None:
        self._signal_everything(signal.SIGKILL)

    def _end(self, grace: float) -> None:
        self.ending_by = time.monotonic() + grace
        self._signal_everything(signal.SIGTERM)

    def _keep_deadlines(self) -> None:
        super()._keep_deadlines()
        if self.ending_by is not None and not self._others():
            self._end_now()

    def _others(self) -> list[int]:
        if self.owns_pids:
            return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != 1]
        return process.descendants(os.getpid())

    def _signal_everything(self, number: int) -> None:
        for pid in [-1] if self.owns_pids else self._others():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _end_now(self) -> NoReturn:
        for _ in range(3):  # a process may fork while we look
            self._signal_everything(signal.SIGKILL)
            if self.owns_pids or not self._others():
                break
        os._exit(0)


def _become(
    argv: Sequence[str], environment: Mapping[str, str], folder: str, fds: Sequence[int], limited: Limits | None
) -> NoReturn:
    """In the child: take the caller's files, a clean state of signals, the user's limits, and turn into the command."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        process.restore_signals()
        for target in range(3):
            os.dup2(fds[target] if target < len(fds) else os.open(os.devnull, os.O_RDWR), target)
        if limited is not None:
            limits.apply(limited)  # once nothing is to be opened: there may be no room for it
        os.closerange(3, max(fds, default=3) + 64)
        try:
            os.chdir(folder)
        except OSError as error:
            os.write(2, f"oarsman: cannot enter {folder}: {error.strerror}\n".encode())
            os._exit(126)
        os.execvpe(argv[0], list(argv), dict(environment))
    except OSError as error:
        where = f" in {os.getcwd()}" if "/" in argv[0] and not os.path.isabs(argv[0]) else ""
        os.write(2, f"oarsman: {argv[0]}: {error.strerror}{where}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    except BaseException as error:
        os.write(2, f"oarsman: cannot start {argv[0]}: {error!r}\n".encode())
        os._exit(126)
