"""Hosts made of processes of this machine.

After a job agent was killed nothing of its job may stay. With process namespaces the kernel has already ended
everything; without them, processes are found by the mark each carries in its environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import socket
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import psutil

from oarsman import names, trees
from oarsman.engines.contract import Assignment
from oarsman.engines.hosts.core import cgroups, installed_mpi, limits, linux, process, shims
from oarsman.engines.hosts.core.host_specs import SHIMMED, hand_out_gpus
from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.core.job_spec import JobSpec, LocalHostSpec, Separation, find_spec, replace_file, write_spec
from oarsman.engines.hosts.core.journal_state import Seen
from oarsman.engines.hosts.local import capacity, host_spec
from oarsman.engines.hosts.local.host import address_of
from oarsman.errors import RetryableError
from oarsman.job.confined import confined_by
from oarsman.job.job import Implementation, Job
from oarsman.job.mpi import discover_hosts, hostfile
from oarsman.portal import in_own_thread
from oarsman.text.sentence import Text

_ANSWERS_WITHIN = 2.0  # an MPI, most likely from what is known of it
_END_WITHIN = 5.0  # what was killed takes a moment to be gone


class LocalTransport:
    name = "local"
    far = False
    _separation = Separation()
    _slices = cgroups.Slices(0)

    async def start(self) -> None:
        self._separation = linux.probe()
        self._slices = cgroups.find()

    def refusal(self, assignment: Assignment) -> str | None:
        job, folder = assignment.job, assignment.folder
        given = assignment.environment
        for reason in host_spec.all_refusals(job, folder=folder, separation=self._separation, environment=given):
            return reason
        if too_many := limits.too_few_files(job.slots):
            return too_many
        if not folder.is_dir():
            return Text("the folder it was submitted from is gone: {folder}", folder=folder)
        return _explain_absence(assignment) if _mpi(assignment) is None else None

    def remarks(self, job: Job) -> list[str]:
        return host_spec.remarks(job, self._separation, self._slices)

    async def prepare(self, assignment: Assignment, *, folder: Path, run_folder: Path, taken_gpus: set[str]) -> None:
        asked = in_own_thread(partial(_mpi, assignment))
        others = confined_by(assignment.environment) is not None
        await asyncio.wait([asked], timeout=_ANSWERS_WITHIN if others else None)
        if not asked.done():
            raise RetryableError(Text("what it needs is still being looked for"))
        mpi = asked.result()
        if mpi is None:
            raise RetryableError(_explain_absence(assignment))
        job, previous = assignment.job, find_spec(folder)
        kept = previous.gpus if previous is not None else {}
        private = host_spec.wants_private_network(job, self._separation)
        spec = host_spec.LocalHostSpecs(
            job=job,
            environment=assignment.environment,
            mpi=mpi,
            run_folder=str(run_folder),
            gpus=hand_out_gpus(job, lambda _: capacity.gpus(), kept=kept, taken=taken_gpus),
            packages=str(assignment.packages or ""),
            folder=assignment.folder,
            job_folder=str(folder),
            separation=self._separation,
            slices=self._slices,
            master_port=host_spec.PRIVATE_MASTER_PORT if private else _master_port(previous),
        ).specification()
        # All from scratch, so it does not matter where an earlier preparation was cut short.
        for needed in (folder / "logs", run_folder / "bin", run_folder / "e"):
            needed.mkdir(parents=True, exist_ok=True, mode=0o700)
        has_a_user = spec.confinement is not None and spec.confinement.uid >= 0
        if has_a_user:  # who sees them where they are shown to its job, and not in the folder of ours that they are in
            for seen in (run_folder, run_folder / "bin", run_folder / "e"):
                seen.chmod(0o755)
        for name, host in spec.hosts.items():
            assert isinstance(host, LocalHostSpec)
            own = "\0".join(map("=".join, host.own.items()))
            replace_file(f"{run_folder}/e/{name}", own, mode=0o644 if has_a_user else 0o600)
            for mount in host.mounts:
                if mount.make:
                    os.makedirs(mount.source, exist_ok=True)
                    if spec.confinement is not None and has_a_user:
                        os.chown(mount.source, spec.confinement.uid, spec.confinement.gid, follow_symlinks=False)
        start, shell = shlex.join(shims.starter()), shims.shell_of(assignment.environment)
        commands = {"ssh": "ssh", "rsh": "ssh"} | {name: f"mpirun {name}" for name in SHIMMED}
        for name, shim in commands.items():
            replace_file(f"{run_folder}/bin/{name}", f'#!{shell}\nexec {start} {shim} "$@"\n', mode=0o755)
        write_spec(folder, spec)

    def unusable(self, job: Job, troubled: Mapping[str, float], asked: Callable[[], None]) -> str:
        return ""  # this machine is here

    def host_files(self, job: Job, hosts: tuple[str, ...], spec: JobSpec) -> dict[str, str]:
        """hostfile, discover_hosts.sh, kubexec.sh and the table of names, for the hosts of this moment."""
        implementation = Implementation(spec.implementation)
        table = "127.0.0.1 localhost\n"
        for name, host in spec.hosts.items():
            address = address_of(host.index, launcher=host.launcher, private=spec.network == "private")
            domain = f"{name}.{job.name}.{job.namespace}.svc"
            table += f"{address} {name} {name}.{job.name} {domain}\n"
        # The machine's own table, minus the loopback line we have written already.
        with contextlib.suppress(OSError), open("/etc/hosts", errors="replace") as file:
            table += "".join(line for line in file if not line.startswith("127.0.0.1"))
        room = hostfile(implementation, ["localhost"], job.slots) if not spec.separation.names else None
        return {
            names.HOSTFILE: room or hostfile(implementation, hosts, job.slots_per_worker),
            names.DISCOVER_HOSTS: discover_hosts(hosts, job.slots_per_worker),
            names.KUBEXEC: f'#!/bin/sh\nexec {spec.run_folder}/bin/ssh "$@"\n',
            "hosts": table,
        }

    def forget(self, uid: str, seen: Seen, folder: Path) -> None:
        pass

    def clear_up(self, uid: str, seen: Seen, folder: Path, run_folder: Path) -> list[str]:
        hosts = [host.process for host in seen.hosts.values()]
        for host in hosts:
            process.send_signal(host, signal.SIGKILL)
        for found in marked(uid):
            with contextlib.suppress(psutil.Error):
                found.kill()  # psutil compares start times first
        deadline = time.monotonic() + _END_WITHIN
        while any(map(process.alive, hosts)) and time.monotonic() < deadline:
            time.sleep(0.02)
        if (spec := find_spec(folder)) is not None:
            cgroups.remove_all(spec.cgroups, uid)
        trees.remove(run_folder)
        return []


def _master_port(previous: JobSpec | None) -> int:
    """A free one, and the same one for as long as the job lives."""
    if previous is not None and previous.master_port:
        return previous.master_port
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _mpi(assignment: Assignment) -> FoundMpi | None:
    return installed_mpi.choose(assignment.job, assignment.environment, assignment.folder, assignment.packages)


def _explain_absence(assignment: Assignment) -> str:
    return installed_mpi.explain_absence(assignment.job, assignment.environment)


def marked(uid: str) -> list[psutil.Process]:
    """Every process of ours that carries the job's mark."""
    found = []
    for candidate in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if candidate.pid != os.getpid() and candidate.environ().get(names.ENV_JOB) == uid:
                found.append(candidate)
    return found
