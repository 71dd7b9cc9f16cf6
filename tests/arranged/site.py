"""Where cases run: this machine and SSH hosts, with one state and one supervisor for all jobs."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from engines.hosts.machine import Machine, mpi_folder, mpijob
from engines.hosts.ssh.ssh_machine import SshMachine
from ssh_hosts import Rack

from oarsman import names
from oarsman.backends.local.follow import SupervisorLink
from oarsman.engines.hosts.local.capacity import cpu_count

from .cases import EVERY_MPI, Case
from .kinds import PYTHON, SCRATCH

HOSTS = 5  # of which two are victims
PATIENCE = 600.0  # seconds for a job to end, on a machine that does much else
PLENTY = 64  # slots of a host that many jobs share


class Site:
    def __init__(self, folder: Path, rack: Rack | None) -> None:
        state = folder / "state"
        self.folder = folder
        self.rack = rack
        self.victims = threading.Lock()  # held by the one case that may do what it likes to its hosts
        self.local = {mpi: Machine(state, mpi) for mpi in EVERY_MPI}
        self.ssh = SshMachine(state, rack) if rack is not None else None
        for machine in self._machines():
            machine.patience = PATIENCE
        if rack is not None:
            self._inventories(rack)

    def _machines(self) -> list[Machine]:
        return [*self.local.values(), *([self.ssh] if self.ssh is not None else [])]

    # -- hosts ---------------------------------------------------------------------------------------
    def _inventories(self, rack: Rack) -> None:
        """Two of the hosts take one job of two workers, and nothing beside it; the others are for all."""
        for mpi in EVERY_MPI:
            for name, hosts, slots in (("all", rack[:-2], PLENTY), ("victims", rack[-2:], 2)):
                document = {
                    "sshConfig": str(rack.ssh_config),
                    "defaults": {"mpi": str(mpi_folder(mpi))},
                    "hosts": [{"name": host.name, "slots": slots} for host in hosts],
                }
                self._inventory(name, mpi).write_text(yaml.safe_dump(document))

    def _inventory(self, name: str, mpi: str) -> Path:
        return self.folder / f"{name}-{mpi}.yaml"

    def inventory_of(self, case: Case) -> str:
        return str(self._inventory("victims" if case.on_victims else "all", case.mpi))

    @contextmanager
    def alone(self, case: Case) -> Iterator[None]:
        if not case.on_victims:
            yield
            return
        with self.victims:
            yield

    # -- jobs ----------------------------------------------------------------------------------------
    def machine_of(self, case: Case) -> Machine:
        if case.place == names.LOCAL:
            return self.local[case.mpi]
        assert self.ssh is not None
        return self.ssh

    def scratch_of(self, case: Case) -> Path:
        base = self.folder if case.place == names.LOCAL or self.rack is None else self.rack.shared
        folder = base / case.name
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        return folder

    def settled(self, case: Case) -> Case:
        """With the paths of this site instead of the words that stand for them."""
        scratch, python = str(self.scratch_of(case)), str(mpi_folder(case.mpi) / "bin/python3")

        def here(text: str) -> str:
            return text.replace(SCRATCH, scratch).replace(PYTHON, python)

        return replace(case, command=tuple(map(here, case.command)), script=here(case.script))

    def submit(self, case: Case) -> str:
        return self.machine_of(case).submit(self.document(case))

    def document(self, case: Case) -> dict[str, Any]:
        annotations = dict(case.annotations)
        worker: dict[str, Any] = {}
        if case.place == names.SSH:
            annotations |= {names.ANNOTATION_INVENTORY: self.inventory_of(case), names.ANNOTATION_CODE: "none"}
            annotations[names.ANNOTATION_PLACEMENT] = "node"  # one worker on each host
        elif case.whole:
            worker = {"resources": {"requests": {"cpu": f"{1000 * cpu_count() // case.workers}m"}}}
        else:
            annotations[names.ANNOTATION_OVERSUBSCRIBE] = "true"
        return mpijob(
            case.name,
            [word.replace("$$", "$$$$") for word in case.launcher],  # as in Kubernetes, two of them stand for one
            workers=case.workers,
            slots=case.slots,
            annotations=annotations,
            run_policy=case.run_policy,
            worker=worker,
        )

    def run(self, case: Case) -> subprocess.CompletedProcess[str]:
        """In the foreground, by the command."""
        machine = self.machine_of(case)
        size = ["-n", str(case.ranks), "--workers", str(case.workers), "--slots", str(case.slots)]
        more = ["--code", "none"] if case.place == names.SSH else ["--oversubscribe"]
        if seconds := case.run_policy.get("activeDeadlineSeconds"):
            more += ["--timeout", f"{seconds}s"]
        command = machine.command("run", *size, "--name", case.name, *more, "--", *case.command)
        shell = ["sh", "-c", f'{case.limits}; exec "$@"', "sh"] if case.limits else []
        return subprocess.run(
            [*shell, *command],
            env=machine.environment | ({"OARSMAN_HOSTS": self.inventory_of(case)} if case.place == names.SSH else {}),
            cwd=machine.folder,
            input=case.stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )

    def close(self) -> None:
        """Every job goes, and what it has anywhere; the supervisor last."""
        if self.rack is not None:
            self.rack.repair()
        if self.ssh is not None:
            for record in self.ssh.jobs.list():
                self.ssh._remove(record)
        with closing(self.local[EVERY_MPI[0]]):
            pass
        SupervisorLink(self.local[EVERY_MPI[0]].paths).stop()
        if self.ssh is not None:
            self.ssh.nothing_left()
