"""The hosts of an inventory, as their owner wrote them down: an Open MPI hostfile, or YAML that says more.

A hostfile has a line per host: `[user@]name[:slots] [slots=N] [max_slots=N] [username=U] # comment`. A host without a
number has as many slots as processors. Lines of the same name add up; then one without a number is one slot more, as
in the lists that batch systems leave.

In YAML the document is a list of hosts, or a mapping:

    hosts       list of hosts: a mapping with the fields below, or a string, read like a line of a hostfile
    defaults    fields for every host that does not have them; environment and labels are merged name by name
    sshConfig   a file to use instead of the user's own ssh configuration, from the folder of the inventory

    name         text, required        a word of letters, digits, '.', '_' and '-', or an IP address
    slots        0 or more             processes it takes at most; 0: only as launcher
    address      name or IP address    what to connect to, where it is not the name
    user, port                         as for ssh
    jump         [user@]host[:port]    hosts on the way, separated by commas; an IPv6 address in brackets
    key          file here             a private key; ~ is your home, relative is from the folder of the inventory
    interface    eth1 or 10.0.0.0/24   the network for MPI
    memory       64Gi                  a Kubernetes quantity of bytes
    gpus         0 or more
    labels       mapping of texts
    shared       folder or list        absolute folders that this machine and the host have in common
    folder, mpi  folder on the host    absolute, or from the user's home there with ~/, which is left as it is
    environment  mapping of texts      numbers and truths are taken as written
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SshHost:
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
    hosts: tuple[SshHost, ...]
    ssh_config: str = ""  # instead of the user's own

    def host(self, name: str) -> SshHost | None:
        return next((host for host in self.hosts if host.name == name), None)
