"""Hosts made of processes of this machine.

After a job agent was killed nothing of its job may stay. With process namespaces the kernel has already ended
everything; without them, processes are found by the mark each carries in its environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from oarsman import names
from oarsman.engines.contract import Assignment
from oarsman.engines.hosts.core import cgroups, host_spec, installed_mpi, prepare, process, separation
from oarsman.engines.hosts.core.cgroups import Slices
from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.core.job_spec import read_spec
from oarsman.engines.hosts.core.journal_state import Seen
from oarsman.errors import RetryableError
from oarsman.job.job import Job
from oarsman.text.sentence import Text


class LocalTransport:
    name = "local"
    far = False

    def __init__(self) -> None:
        self._separation = separation.Separation()
        self._slices = cgroups.Slices(0)

    async def start(self) -> None:
        self._separation = separation.probe()
        self._slices = cgroups.find()

    def refusal(self, assignment: Assignment) -> str | None:
        job = assignment.job
        reason = host_spec.refusal(job, folder=assignment.folder, separation=self._separation)
        if reason is None and not assignment.folder.is_dir():
            reason = Text("the folder it was submitted from is gone: {folder}", folder=assignment.folder)
        if reason is None and _mpi(assignment) is None:
            reason = installed_mpi.explain_absence(job)
        return reason

    def remarks(self, job: Job) -> list[str]:
        return host_spec.remarks(job, self._separation, self._slices)

    async def prepare(self, assignment: Assignment, *, folder: Path, run_folder: Path, taken_gpus: set[str]) -> None:
        mpi = await asyncio.to_thread(_mpi, assignment)
        if mpi is None:
            raise RetryableError(installed_mpi.explain_absence(assignment.job))
        prepare.Preparation(
            assignment,
            mpi=mpi,
            separation=self._separation,
            slices=self._slices,
            folder=folder,
            run_folder=run_folder,
            taken_gpus=taken_gpus,
        ).write()

    def host_files(self, job: Job, hosts: tuple[str, ...], spec: Mapping[str, Any]) -> dict[str, str]:
        return prepare.host_files(job, hosts, spec)

    def clear_up(self, uid: str, seen: Seen, folder: Path, run_folder: Path) -> None:
        clear_up(uid, seen, folder, run_folder)


def _mpi(assignment: Assignment) -> FoundMpi | None:
    job = assignment.job
    stated = job.implementation if job.implementation_stated else None
    return installed_mpi.choose(assignment.environment, wanted=job.annotation(names.ANNOTATION_MPI), stated=stated)


_END_WITHIN = 5.0  # what was killed takes a moment to be gone


def clear_up(uid: str, seen: Seen, folder: Path, run_folder: Path) -> None:
    for host in seen.hosts.values():
        process.send_signal(host.process, signal.SIGKILL)
    for found in marked(uid):
        with contextlib.suppress(psutil.Error):
            found.kill()  # psutil compares start times first
    deadline = time.monotonic() + _END_WITHIN
    while any(process.alive(host.process) for host in seen.hosts.values()) and time.monotonic() < deadline:
        time.sleep(0.02)
    with contextlib.suppress(OSError, ValueError):
        cgroups.remove_all(Slices(**read_spec(str(folder))["cgroups"]), uid)
    shutil.rmtree(run_folder, ignore_errors=True)


def marked(uid: str) -> list[psutil.Process]:
    """Every process of ours that carries the job's mark."""
    found = []
    me = os.getpid()
    for candidate in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if candidate.pid != me and candidate.environ().get(names.ENV_JOB) == uid:
                found.append(candidate)
    return found
