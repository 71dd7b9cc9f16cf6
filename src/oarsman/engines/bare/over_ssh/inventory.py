"""The hosts of a rack, as their owner wrote them down: an Open MPI hostfile, or YAML that says more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class RackHost:
    """One machine. What is empty here is left to the user's ssh configuration, or found out by asking the machine."""

    name: str  # what people call it; also what ssh is asked for, unless there is an address
    slots: int | None = None  # None: as many as it has processors
    address: str = ""  # what to connect to
    user: str = ""
    port: int | None = None
    jump: str = ""  # [user@]host[:port] on the way, several separated by commas
    key: str = ""  # file of a private key
    interface: str = ""  # the network for MPI: a name (eth1) or a range (10.0.0.0/24)
    memory: int | None = None  # bytes
    gpus: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    shared: tuple[str, ...] = ()  # folders that this machine has in common with the one that submits
    folder: str = ""  # where jobs keep their files on it; empty: .oarsman in the user's home
    environment: Mapping[str, str] = field(default_factory=dict)
    mpi: str = ""  # the MPI to use: its mpirun, or a folder above it
    line: int = 0  # where it was written

    @property
    def target(self) -> str:
        return self.address or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    file: Path
    hosts: tuple[RackHost, ...]
    ssh_config: str = ""  # instead of the user's own

    def host(self, name: str) -> RackHost | None:
        return next((host for host in self.hosts if host.name == name), None)
