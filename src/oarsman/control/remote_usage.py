"""What hosts of a job use that are other machines: each tells it every few seconds, and what it told last is a file."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from oarsman.engines.contract import HostUsage
from oarsman.engines.hosts.core.job_spec import JobSpec, SshHostSpec
from oarsman.engines.hosts.core.journal_state import HostSeen
from oarsman.store import samples


class Figures(NamedTuple):
    """All but the processes and their memory only ever grow; bytes are those of the whole machine."""

    time: float
    seconds: float  # of its processors, for this job
    memory_bytes: int
    processes: int
    received: int
    sent: int


def told(spec: JobSpec) -> dict[str, Figures]:
    """By host. Hosts that share a machine tell the same, and only the one in whose name all runs there counts."""
    found = {}
    for name, host in spec.hosts.items():
        leads = isinstance(host, SshHostSpec) and host.members[0][0] == name
        with contextlib.suppress(OSError, ValueError, TypeError):  # not told yet, or not all of it
            if leads:
                found[name] = _read(Path(spec.run_folder, "u", name).read_text())
    return found


def _read(line: str) -> Figures:
    time, seconds, memory, processes, received, sent = line.split()
    return Figures(float(time), float(seconds), int(memory), int(processes), int(received), int(sent))


def of_job(folder: Path, spec: JobSpec, living: Sequence[HostSeen]) -> list[HostUsage]:
    """As last told; how busy processors are takes two looks, and those are the supervisor's."""
    figures = told(spec)
    lately = _newest(folder)
    found = []
    for host in living:
        if (now := figures.get(host.name)) is None:
            continue
        since_start = 100 * now.seconds / max(now.time - host.made_at.timestamp(), 1.0)
        devices = (device.rpartition(":")[2] for device in spec.gpus.get(host.name, ()))
        found.append(
            HostUsage(
                host=host.name,
                role="launcher" if host.launcher else "worker",
                processes=now.processes,
                cpu_percent=round(lately.get(host.name, since_start), 1),
                memory_bytes=now.memory_bytes,
                gpus=tuple(int(device) for device in devices if device.isdigit()),
            )
        )
    return found


def _newest(folder: Path) -> dict[str, float]:
    """The load of each host when it was last sampled."""
    last = None
    for moment in samples.read(folder):
        last = moment
    return {host: sample.cpu_percent for host, sample in last.hosts.items()} if last is not None else {}
