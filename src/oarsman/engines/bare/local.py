"""Hosts made of processes of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oarsman import names
from oarsman.engines.bare import cgroups, leftovers, mpi_found, outfit, separation, workshop
from oarsman.engines.bare.mpi_found import FoundMpi
from oarsman.engines.bare.seen import Seen
from oarsman.engines.contract import Assignment
from oarsman.errors import RetryableError
from oarsman.job.job import Job


class OnThisMachine:
    name = "embedded"
    far = False

    def __init__(self) -> None:
        self._separation = separation.Separation()
        self._slices = cgroups.Slices(0)

    async def start(self) -> None:
        self._separation = separation.probe()
        self._slices = cgroups.find()

    def refusal(self, assignment: Assignment) -> str | None:
        job = assignment.job
        reason = outfit.refusal(job, folder=assignment.folder, separation=self._separation)
        if reason is None and not assignment.folder.is_dir():
            reason = f"the folder it was submitted from is gone: {assignment.folder}"
        if reason is None and _mpi(assignment) is None:
            reason = mpi_found.explain_absence(job)
        return reason

    def remarks(self, job: Job) -> list[str]:
        return outfit.remarks(job, self._separation, self._slices)

    async def prepare(self, assignment: Assignment, *, folder: Path, run_folder: Path, taken_gpus: set[str]) -> None:
        mpi = await asyncio.to_thread(_mpi, assignment)
        if mpi is None:
            raise RetryableError(mpi_found.explain_absence(assignment.job))
        workshop.Workshop(
            assignment, mpi=mpi, separation=self._separation, slices=self._slices, folder=folder,
            run_folder=run_folder, taken_gpus=taken_gpus,
        ).write()  # fmt: skip

    def host_files(self, job: Job, hosts: tuple[str, ...], spec: Mapping[str, Any]) -> dict[str, str]:
        return workshop.host_files(job, hosts, spec)

    def clear_up(self, uid: str, seen: Seen, folder: Path, run_folder: Path) -> None:
        leftovers.clear_up(uid, seen, folder, run_folder)


def _mpi(assignment: Assignment) -> FoundMpi | None:
    job = assignment.job
    stated = job.implementation if job.implementation_stated else None
    return mpi_found.choose(assignment.environment, wanted=job.annotation(names.ANNOTATION_MPI), stated=stated)
