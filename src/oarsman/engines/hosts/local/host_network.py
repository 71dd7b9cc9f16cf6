"""Making and unmaking the hosts of a job: namespaces, addresses, mounts and limits.

Runs inside the job agent. `HostNetwork.add` forks twice: the first child enters new namespaces and waits for
its network cable, the second is the host's first process. No other program is needed but `ip`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from oarsman.engines.hosts.core import cgroups, framing, process
from oarsman.engines.hosts.core.separation import Separation, run_ip
from oarsman.engines.hosts.local.host import Host
from oarsman.text.sentence import dump

_BRIDGE = "rack0"
_BRIDGE_ADDRESS = "10.77.0.1"
_HEARTBEAT_PORT = 4077


def address_of(index: int, *, launcher: bool, private: bool) -> str:
    """The launcher is .0.2, workers follow from .1.1 on, 250 in each block.

    On the machine's own network hosts get loopback addresses, each a different one: Open MPI 4 takes a name that
    resolves to the address of an interface for itself, and would run every rank on the launcher.
    """
    net = "10.77" if private else "127.77"
    return f"{net}.0.2" if launcher else f"{net}.{index // 250 + 1}.{index % 250 + 1}"


@dataclass(slots=True)
class RunningHost:
    name: str
    index: int
    launcher: bool
    process: process.ProcessId
    channel: socket.socket
    address: str
    group: cgroups.Group
    temp: str
    last_seen: float
    up: bool = False
    ending: bool = False  # it was told to end
    dying: bool = False  # its channel closed without that
    kills_seen: int = 0
    hands_on: bool = False  # what its ranks write comes from itself, not through the launcher
    emptied: int = 0  # the last sweep before which its ranks wrote nothing that is not here


class HostNetwork:
    """The hosts of one job and the network between them."""

    elsewhere = False  # whether its hosts are other machines

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.separation = Separation(**spec["separation"])
        self.private_network = spec["network"] == "private" and self.separation.network
        self.run_folder: str = spec["run_folder"]
        self._ip: str = spec["ip"] or ""
        self._uid: str = spec["uid"]
        self._slices = cgroups.Slices(**spec["cgroups"])
        self.heartbeat: socket.socket | None = None

    def open(self) -> None:
        """Enter the job's own network; from now on this process is its switch."""
        from oarsman.engines.hosts.core import linux

        if sys.platform == "linux":
            linux.become_subreaper()
        if self.separation.names and self.separation.user:
            linux.enter_own_user_namespace()
        if self.private_network:
            linux.unshare(linux.CLONE_NEWNET)
            lines = [
                "link set lo up",
                f"link add {_BRIDGE} type bridge",
                f"addr add {_BRIDGE_ADDRESS}/16 dev {_BRIDGE}",
            ]
            run_ip(self._ip, [*lines, f"link set {_BRIDGE} up"])
            self.heartbeat = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.heartbeat.bind((_BRIDGE_ADDRESS, 0))
            self.heartbeat.setblocking(False)
        for name in ("h", "t", "etc/mpi"):
            os.makedirs(f"{self.run_folder}/{name}", exist_ok=True)

    def address(self, index: int, *, launcher: bool) -> str:
        return address_of(index, launcher=launcher, private=self.private_network)

    def ping(self, host: RunningHost) -> None:
        with contextlib.suppress(OSError):
            if self.heartbeat is not None:
                self.heartbeat.sendto(b"?", (host.address, _HEARTBEAT_PORT))
            else:
                framing.send(host.channel, {"do": "ping"})

    def add(self, name: str, spec: Mapping[str, Any], *, now: float, close: list[int]) -> tuple[RunningHost, list[str]]:
        """Start a host; it reports `up` on its channel. Also says which limits could not be set."""
        launcher = spec["role"] == "launcher"
        group = cgroups.group_of(self._slices, self._uid, "launcher" if launcher else str(spec["index"]))
        unset = group.make(memory_bytes=spec["memory"], cpus=spec["cpus"])
        address = self.address(spec["index"], launcher=launcher)
        os.makedirs(spec["temp"], exist_ok=True)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ready_read, ready_write = os.pipe()
        go_read, go_write = os.pipe()
        first = os.fork()
        if first == 0:
            for fd in (ours.fileno(), ready_read, go_write, *close):
                os.close(fd)
            group.join()
            self._first_child(name, spec, address, theirs, ready_write, go_read)
        theirs.close()
        os.close(ready_write)
        os.close(go_read)
        pid = self._plug_in(first, spec["index"], launcher, ready_read, go_write)
        os.waitpid(first, 0)
        identity = process.identify(pid) if pid else None
        host = RunningHost(
            name,
            spec["index"],
            launcher,
            identity or process.ProcessId(0, ""),
            ours,
            address,
            group,
            spec["temp"],
            last_seen=now,
        )
        return host, unset

    def _plug_in(self, child: int, index: int, launcher: bool, ready_read: int, go_write: int) -> int:
        """Give the new host its cable, let it go on, and learn its process number."""
        with os.fdopen(ready_read, "rb") as ready:
            if ready.read(1) == b"r" and self.private_network:
                cable = "cl" if launcher else f"c{index}"
                with contextlib.suppress(OSError):  # the host will say that it has no network
                    run_ip(
                        self._ip,
                        [
                            f"link add {cable} type veth peer name eth0 netns {child}",
                            f"link set {cable} master {_BRIDGE} up",
                        ],
                    )
            with contextlib.suppress(BrokenPipeError):
                os.write(go_write, b"g")
            os.close(go_write)
            answer = ready.read()
        return int(answer or 0)

    def publish(self, files: Mapping[str, str], _hosts: Iterable[RunningHost]) -> None:
        """Replace the files under /etc that hosts see. Each is seen whole, as it was or as it is now."""
        for name, text in files.items():
            if name == "hosts":
                with open(f"{self.run_folder}/etc/hosts", "w") as file:  # in place: this very file is mounted
                    file.write(text)
                continue
            path = f"{self.run_folder}/etc/mpi/{name}"
            with open(f"{path}.new", "w") as file:
                file.write(text)
            os.chmod(f"{path}.new", 0o755 if name.endswith(".sh") else 0o644)
            os.rename(f"{path}.new", path)

    def remove(self, host: RunningHost) -> None:
        host.channel.close()
        host.group.remove()
        shutil.rmtree(host.temp, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._socket_path(host.name))

    def _socket_path(self, name: str) -> str:
        return f"{self.run_folder}/h/{name}"

    # -- in the children ------------------------------------------------------------------------
    def _first_child(
        self, name: str, spec: Mapping[str, Any], address: str, channel: socket.socket, ready: int, go: int
    ) -> NoReturn:
        from oarsman.engines.hosts.core import linux

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
                run_ip(self._ip, ["link set lo up", f"addr add {address}/16 dev eth0", "link set eth0 up"])
            if have.processes:
                linux.unshare(linux.CLONE_NEWPID)  # last, because the next child becomes the host's process 1
            second = os.fork()
            if second:
                os.write(ready, str(second).encode())
                os._exit(0)
            os.close(ready)
            os.close(go)
            self._be_host(name, spec, address, channel)
        except BaseException as error:
            with contextlib.suppress(OSError):
                framing.send(channel, {"failed": dump(str(error)) or repr(error)})
            os._exit(1)

    def _be_host(self, name: str, spec: Mapping[str, Any], address: str, channel: socket.socket) -> NoReturn:
        from oarsman.engines.hosts.core import linux

        os.setsid()
        if sys.platform == "linux":
            linux.become_subreaper()
        self._mount(spec)
        heartbeat = None
        if self.private_network:
            heartbeat = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            heartbeat.bind((address, _HEARTBEAT_PORT))
        Host(
            name=name,
            socket_path=self._socket_path(name),
            environment=spec["environment"],
            folder=spec["folder"],
            umask=spec["umask"],
            agent=channel,
            owns_pids=self.separation.processes,
            heartbeat=heartbeat,
        ).run()

    def _mount(self, spec: Mapping[str, Any]) -> None:
        from oarsman.engines.hosts.core import linux

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
        linux.mount("tmpfs", "/dev/shm", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=1777")
        for volume in spec["mounts"]:
            if volume["memory"]:
                linux.mount("tmpfs", volume["target"], "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, volume["options"])
            else:
                linux.bind(volume["source"], volume["target"], read_only=volume["read_only"])
        if have.processes:
            linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)


def prepare_layer(run_folder: str) -> None:
    """The layer over /etc: an empty mpi folder and a hosts file, to bind over."""
    os.makedirs(f"{run_folder}/layer/mpi", exist_ok=True)
    os.makedirs(f"{run_folder}/etc/mpi", exist_ok=True)
    for path in (f"{run_folder}/layer/hosts", f"{run_folder}/etc/hosts"):
        open(path, "a").close()
