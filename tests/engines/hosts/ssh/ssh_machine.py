"""Whoever submits jobs to a rack, for a test: the installed command with a state and an inventory of its own.

Whatever it starts, here and on the hosts, is ended and looked for at the end, also when the test fails.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from ssh_hosts import Host, Rack
from waiting import waiting

from oarsman.backends.ssh.backend import SshBackend
from oarsman.engines.hosts.core.job_spec import read_spec
from oarsman.engines.hosts.ssh.host_spec import base_folder

from ..machine import Machine, mpi_folder

CLEARED_WITHIN = 120.0


class SshMachine(Machine):
    patience = 240.0  # many jobs wait in one queue

    def __init__(
        self, state: Path, rack: Rack, *, slots: int = 2, folder: Path | None = None, **environment: str
    ) -> None:
        super().__init__(state, mpi="none", folder=folder, **environment)
        self.rack = rack
        self._slots = slots
        self.inventory = self.write_inventory("hosts.yaml")
        self.environment |= {"OARSMAN_HOSTS": str(self.inventory), "HOME": str(rack.home)}

    def write_inventory(self, name: str, **fields: Any) -> Path:
        """All hosts of the rack, with the same fields for each."""
        file = self.folder.parent / name
        hosts = [{"name": host.name, "slots": self._slots} for host in self.rack]
        document = {"sshConfig": str(self.rack.ssh_config), "defaults": fields, "hosts": hosts}
        file.write_text(yaml.safe_dump(document))
        return file

    def inventory_with(self, mpi: str) -> Path:
        """The same hosts, on which one MPI of the set-up is named. Debian's is what they have anyway."""
        return self.inventory if mpi == "debian" else self.write_inventory(f"{mpi}.yaml", mpi=str(mpi_folder(mpi)))

    def command(self, *words: str) -> list[str]:
        program, *rest = super().command(*words)
        return [program, "--on", "ssh", *rest]

    @property
    def jobs(self) -> SshBackend:
        if self._jobs is None:
            self._jobs = waiting(SshBackend(str(self.inventory), self.paths))
        return self._jobs

    def until_all_finished(self) -> None:
        for record in self.jobs.list():
            self.until_finished(record.job.key)

    def until_free(self) -> None:
        """A job that has ended has its places until all is cleared away."""
        self.until_all_finished()
        self._until_empty(lambda: list(self.jobs.held()))

    def machine_of(self, key: str) -> dict[str, str]:
        """Member -> host of the rack, as the job was placed."""
        return dict(read_spec(str(self.paths.job(self.uid(key)))).placement)

    # -- what is left ----------------------------------------------------------------------------------
    def left(self, hosts: Sequence[Host] | None = None) -> list[str]:
        """What still runs for the user on these hosts, or on any, and what lies there of any job."""
        hosts = hosts if hosts is not None else list(self.rack)
        found = [f"{host.name}: {command}" for host in hosts for command in host.commands()]
        folders = [folder for host in hosts for folder in host.path("/tmp").glob("oarsman-[0-9a-f]*")]
        folders = [folder for folder in folders if folder.name != self.rack.shared.name]
        return found + [f"{folder} with {[files for _, _, files in os.walk(folder)]}" for folder in folders]

    def nothing_left_on(self, hosts: Sequence[Host]) -> None:
        self._until_empty(lambda: self.left(hosts))

    def nothing_left(self, uid: str = "") -> None:
        """Of one job, while others may still run; or of all, on any host."""
        if not uid:
            self.nothing_left_on(list(self.rack))
            return
        folder = base_folder(uid)
        self._until_empty(lambda: [host.name for host in self.rack if host.is_up and host.path(folder).exists()])
        super().nothing_left(uid)

    def _until_empty(self, look: Callable[[], list[str]]) -> None:
        deadline = time.monotonic() + CLEARED_WITHIN
        while left := look():
            if time.monotonic() > deadline:
                states = [f"{host.name}: {host.state_of_commands()}" for host in self.rack if host.is_up]
                raise AssertionError("\n".join([str(left), *states]))
            time.sleep(0.05)

    def clear(self) -> None:
        super().clear()
        self.nothing_left()
