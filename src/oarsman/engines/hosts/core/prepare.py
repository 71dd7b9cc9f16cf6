"""Gets a job ready to start: its specification on disk, its shims, its job agent.

Everything written here is written again from scratch on each call, so it does not matter where an
earlier one was cut short.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import socket
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oarsman import names
from oarsman.engines.contract import Assignment
from oarsman.engines.hosts.core import installed_mpi
from oarsman.engines.hosts.core.cgroups import Slices
from oarsman.engines.hosts.core.host_spec import LocalHostSpecs, wants_private_network
from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.core.job_spec import FILE, read_spec
from oarsman.engines.hosts.core.separation import Separation, ip_command
from oarsman.engines.hosts.local import capacity
from oarsman.engines.hosts.local.host_network import address_of
from oarsman.errors import RetryableError
from oarsman.job.job import Implementation, Job
from oarsman.job.mpi import discover_hosts, hostfile
from oarsman.text.sentence import Text

_START = Path(__file__).with_name("shims") / "start.py"
PRIVATE_MASTER_PORT = 29500  # PyTorch's own default; nobody else is on a private network
_GRACE_SECONDS = 10
_SILENCE_SECONDS = 10


def starter() -> list[str]:
    """How shims are started: isolated, without site-packages, because it happens once per rank."""
    return [sys.executable, "-I", "-S", str(_START)]


class Preparation:
    def __init__(
        self,
        assignment: Assignment,
        *,
        mpi: FoundMpi,
        separation: Separation,
        slices: Slices,
        folder: Path,
        run_folder: Path,
        taken_gpus: set[str],
    ) -> None:
        self._job = assignment.job
        self._mpi = mpi
        self._separation = separation
        self._slices = slices
        self._folder = folder
        self._run = run_folder
        self._private = wants_private_network(self._job, separation)
        self._previous = self._read_previous()
        self._gpus = self._hand_out_gpus(taken_gpus)
        self._host_specs = LocalHostSpecs(
            self._job,
            environment=assignment.environment,
            folder=assignment.folder,
            mpi=mpi,
            separation=separation,
            job_folder=str(folder),
            run_folder=str(run_folder),
            starter=starter(),
            master_port=self._master_port(),
            ranks_share_cores=self._job.slots > capacity.cpu_count(),
            private=self._private,
            gpus=self._gpus,
            packages=assignment.packages,
        )

    def specification(self) -> dict[str, Any]:
        job = self._job
        silence = int(job.annotation(names.ANNOTATION_SILENCE, str(_SILENCE_SECONDS)))
        return {
            "uid": job.uid,
            "job": job.name,
            "run_folder": str(self._run),
            "separation": asdict(self._separation),
            "network": "private" if self._host_specs.private else "host",
            "ip": ip_command(),
            "cgroups": asdict(self._slices),
            "grace": _GRACE_SECONDS,
            "silence": silence,
            "implementation": self._mpi.family.implementation.value,
            "mpi": str(self._mpi),
            "master_port": self._master_port(),
            "gpus": self._gpus,
            "launcher_host": job.launcher_host,
            "launcher_argv": self._host_specs.launcher_argv(),
            "launcher_is_mpirun": job.launch is not None and not job.launch.in_shell and not job.launch.elastic,
            "hosts": self._host_specs.hosts(),
        }

    def write(self) -> None:
        spec = self.specification()
        for folder in (self._folder / "logs", self._run / "bin", self._run / "e"):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, host in spec["hosts"].items():
            replace_file(self._run / "e" / name, json.dumps(host["own"]))
            for mount in host["mounts"]:
                if mount["make"]:
                    Path(mount["source"]).mkdir(parents=True, exist_ok=True)
        start = shlex.join(starter())
        for name in ("ssh", "rsh"):
            replace_file(self._run / "bin" / name, f'#!/bin/sh\nexec {start} ssh "$@"\n', mode=0o755)
        for name in (*installed_mpi.LAUNCHERS, "prterun"):
            replace_file(self._run / "bin" / name, f'#!/bin/sh\nexec {start} mpirun {name} "$@"\n', mode=0o755)
        replace_file(self._folder / FILE, json.dumps(spec))

    def _read_previous(self) -> Mapping[str, Any]:
        try:
            return read_spec(str(self._folder))
        except (OSError, ValueError):
            return {}

    def _master_port(self) -> int:
        if self._private:
            return PRIVATE_MASTER_PORT
        if "master_port" not in self._previous:
            with socket.socket() as probe:
                probe.bind(("", 0))
                self._previous = {**self._previous, "master_port": probe.getsockname()[1]}
        return int(self._previous["master_port"])

    def _hand_out_gpus(self, taken: set[str]) -> dict[str, tuple[str, ...]]:
        """Devices for each host that asks for some; those handed out before stay where they are."""
        job = self._job
        kept = {host: tuple(devices) for host, devices in self._previous.get("gpus", {}).items()}
        wanted = {job.launcher_host: job.launcher.container.resources.gpus}
        if job.worker is not None:
            wanted |= {job.worker_host(i): job.worker.container.resources.gpus for i in range(job.workers)}
        if not any(wanted.values()):
            return {}
        used = taken | {device for host in wanted for device in kept.get(host, ())}
        free = [device for device in capacity.gpus() if device not in used]
        result: dict[str, tuple[str, ...]] = {}
        for host, count in wanted.items():
            if len(kept.get(host, ())) == count:
                result[host] = kept.get(host, ())
            else:
                result[host], free = tuple(free[:count]), free[count:]
        return result


async def start_agent(folder: Path) -> None:
    """Of the job whose specification is in this folder."""
    agent = await asyncio.create_subprocess_exec(
        *starter(),
        "job-agent",
        str(folder),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    _, trouble = await agent.communicate()
    if agent.returncode != 0:
        raise RetryableError(Text("the job agent could not start: {why}", why=trouble.decode(errors="replace")))


def host_files(job: Job, hosts: tuple[str, ...], spec: Mapping[str, Any]) -> dict[str, str]:
    """hostfile, discover_hosts.sh, kubexec.sh and the table of names, for the hosts of this moment."""
    implementation = Implementation(spec["implementation"])
    run_folder = spec["run_folder"]
    private = spec["network"] == "private"
    table = "127.0.0.1 localhost\n"
    for name, host in spec["hosts"].items():
        address = address_of(host["index"], launcher=host["role"] == "launcher", private=private)
        domain = f"{name}.{job.name}.{job.namespace}.svc"
        table += f"{address} {name} {name}.{job.name} {domain}\n"
    plain = not spec["separation"]["names"]
    room = hostfile(implementation, ["localhost"], job.slots) if plain else None
    return {
        names.HOSTFILE: room or hostfile(implementation, hosts, job.slots_per_worker),
        names.DISCOVER_HOSTS: discover_hosts(hosts, job.slots_per_worker),
        names.KUBEXEC: f'#!/bin/sh\nexec {run_folder}/bin/ssh "$@"\n',
        "hosts": table + _machine_names(),
    }


def _machine_names() -> str:
    """The machine's own table, minus the loopback line we have written already."""
    try:
        lines = Path("/etc/hosts").read_text(errors="replace").splitlines(keepends=True)
    except OSError:
        return ""
    return "".join(line for line in lines if not line.startswith("127.0.0.1"))


def replace_file(path: Path, text: str, *, mode: int = 0o600) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.chmod(mode)
    os.replace(new, path)
