"""What every face (command, SDK, console) can ask for, whichever engine does the work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from oarsman.job.job import Job
from oarsman.job.state import Status
from oarsman.store.logs import LogLine

__all__ = ["EVERYTHING", "EventRecord", "HostUsage", "JobRecord", "Jobs", "LogLine", "LogQuery"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    job: Job
    status: Status
    created_at: datetime
    owner: str  # user name
    folder: Path | None  # where it was submitted from
    engine: str  # "embedded", "ssh", "kube"
    deleting: bool = False
    stop_requested: bool = False
    revision: int = 0  # grows with every change


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    time: datetime  # last time it happened
    first_time: datetime
    severity: str  # Normal, Warning
    reason: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUsage:
    host: str
    role: str
    processes: int | None  # None: not known there
    cpu_percent: float
    memory_bytes: int
    memory_limit_bytes: int | None = None
    gpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    ranks: tuple[int, ...] = ()  # empty: all
    workers: tuple[int, ...] = ()  # empty: all
    launcher_only: bool = False
    stream: str | None = None  # "out", "err"
    since: datetime | None = None
    tail: int | None = None
    attempt: int | None = None  # None: the newest
    follow: bool = False


EVERYTHING = LogQuery()


class Jobs(Protocol):
    """`key` is always "namespace/name". Unknown jobs raise NotFoundError."""

    @property
    def home(self) -> str:
        """The namespace of jobs that mention none."""
        ...

    def submit(
        self, document: Mapping[str, Any], *, environment: Mapping[str, str], folder: Path, replace: bool = False
    ) -> JobRecord: ...
    def get(self, key: str) -> JobRecord: ...
    def list(self, namespace: str | None = None) -> Sequence[JobRecord]: ...
    def scale(self, key: str, workers: int) -> JobRecord: ...
    def suspend(self, key: str) -> JobRecord: ...
    def resume(self, key: str) -> JobRecord: ...
    def stop(self, key: str) -> JobRecord: ...
    def delete(self, key: str) -> None: ...
    def events(self, key: str) -> Sequence[EventRecord]: ...
    def watch(self, key: str, *, timeout: float | None = None) -> Iterator[JobRecord]:
        """Yield the record now and after each change; ends when the job is gone, or TimeoutError."""
        ...

    def logs(self, key: str, query: LogQuery = EVERYTHING) -> Iterator[LogLine]: ...
    def usage(self, key: str) -> Sequence[HostUsage]: ...
