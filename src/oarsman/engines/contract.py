"""What every engine promises the runtime: see, do, and say when to look again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from oarsman.job.job import Job
from oarsman.job.observed import Admission, Observed
from oarsman.job.state import Status
from oarsman.plan.actions import Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A job as handed to an engine: what was asked, where it was asked, and what is known so far."""

    job: Job
    status: Status
    environment: Mapping[str, str]  # the submitting user's own
    folder: Path  # where it was submitted
    stop_requested: bool = False
    admission: Admission = Admission()
    packages: Path | None = None  # the environment it runs in; its programs come first, whichever MPI is chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUsage:
    host: str
    role: str
    processes: int | None  # None: not known there
    cpu_percent: float
    memory_bytes: int
    memory_limit_bytes: int | None = None
    gpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class UsageSample:
    """What one host of a job used at one moment. Rates are means since the sample before; None: not known there."""

    time: datetime
    host: str
    cpu_percent: float  # 100: one core
    memory_bytes: int
    received_bytes_per_second: float | None = None
    sent_bytes_per_second: float | None = None
    gpu_percent: float | None = None  # mean over the host's own GPUs
    gpu_memory_bytes: int | None = None


class Engine(Protocol):
    """Observation is cheap and free of side effects; `apply` may be repeated without harm."""

    name: str

    async def start(self, notify: Callable[[str], None]) -> None:
        """Get ready. `notify(uid)` is called whenever something about a job may have changed."""

    async def adopt(self, assignment: Assignment) -> None:
        """Take up a job that ran before this engine was started."""

    async def observe(self, assignment: Assignment) -> Observed: ...

    async def apply(self, assignment: Assignment, action: Action) -> None:
        """Carry out one action, or raise RetryableError to be asked again. Actions on different workers may come side
        by side; DeleteJob never comes: the record is not the engine's."""

    async def forget(self, uid: str, *, keeps_log: bool = False) -> None:
        """Remove every trace of a job, its logs included; with `keeps_log` leave what it wrote and used, to be read."""

    async def close(self) -> None: ...
