"""The launch line: which words start MPI, and what they ask for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostSlots:
    host: str
    slots: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchLine:
    launcher: str  # mpirun, mpiexec, orterun, horovodrun, ...: the base name
    path: str  # as written, perhaps with folders
    options: tuple[str, ...] = ()  # its own options, as written
    program: tuple[str, ...] = ()  # what every rank runs
    in_shell: bool = False  # found inside `sh -c '...'`
    processes: int | None = None
    per_node: int | None = None
    per_socket: int | None = None
    hosts: tuple[HostSlots, ...] = ()
    hostfile: str | None = None
    exports: tuple[str, ...] = ()
    map_by: str = ""  # slot, node, ppr:2:node, ... as written, lower case
    rank_by: str = ""
    oversubscribe: bool = False
    min_processes: int | None = None
    max_processes: int | None = None
    host_discovery_script: str | None = None

    @property
    def elastic(self) -> bool:
        return self.host_discovery_script is not None or self.min_processes is not None
