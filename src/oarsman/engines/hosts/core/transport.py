"""What a host is: the one thing in which the engine's ways of running a job differ."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from oarsman.engines.contract import Assignment
from oarsman.engines.hosts.core.job_spec import JobSpec
from oarsman.engines.hosts.core.journal_state import Seen
from oarsman.job.job import Job


class Transport(Protocol):
    name: str  # of the engine
    far: bool  # its hosts take a while to reach: the launcher's is made with the others

    async def start(self) -> None:
        """Find out what can be had here."""

    def refusal(self, assignment: Assignment) -> str | None:
        """What of this job cannot be honoured, found before anything starts. May take its time."""

    def remarks(self, job: Job) -> list[str]:
        """What is done differently, each in one plain sentence."""

    async def prepare(self, assignment: Assignment, *, folder: Path, run_folder: Path, taken_gpus: set[str]) -> None:
        """Write what the job agent needs, all anew; RetryableError if it cannot be had now."""

    def host_files(self, job: Job, hosts: tuple[str, ...], spec: JobSpec) -> dict[str, str]:
        """hostfile and its kin, for the hosts of this moment."""

    def clear_up(self, uid: str, seen: Seen, folder: Path, run_folder: Path) -> None:
        """After a job agent was killed: nothing of its job stays."""
