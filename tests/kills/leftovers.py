"""What is there of a job after it was deleted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from ssh_hosts import Rack

from oarsman import names
from oarsman.engines.hosts.core import cgroups
from oarsman.engines.hosts.ssh.host_spec import base_folder
from oarsman.store.paths import Paths

from .parts import look


def left_of(uid: str, paths: Paths, rack: Rack | None) -> list[str]:
    return [*_processes(uid, paths), *_files(uid, paths, rack), *groups(uid), *_mounts(uid, paths)]


def _processes(uid: str, paths: Paths) -> Iterator[str]:
    marks = (str(paths.job(uid)), str(paths.job_run(uid)), base_folder(uid))
    for seen in look():
        words = " ".join(seen.words)
        if seen.environment.get(names.ENV_JOB) == uid or any(mark in words for mark in marks):
            yield f"process {seen.pid} {words[:200]}"


def _files(uid: str, paths: Paths, rack: Rack | None) -> Iterator[str]:
    here = (paths.job(uid), paths.job_run(uid), Path(base_folder(uid)))
    yield from (f"file {path}" for path in here if path.exists())
    for host in rack or ():
        if host.path(base_folder(uid)).exists():
            yield f"file {base_folder(uid)} on {host.name}"


def _mounts(uid: str, paths: Paths) -> Iterator[str]:
    for line in mounts():
        if any(mark in line for mark in (uid, str(paths.job_run(uid)))):
            yield f"mount {line}"


def mounts() -> list[str]:
    return sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())


def groups(uid: str) -> list[str]:
    """Control groups of a job, wherever this process may make some."""
    slices, prefix = cgroups.find(), f"oarsman-{uid[:13]}-"
    found = []
    for parent in {slices.memory, slices.cpu} - {""}:
        with contextlib.suppress(OSError):
            found += [f"group {parent}/{name}" for name in os.listdir(parent) if name.startswith(prefix)]
    return found
