"""What every face (command, SDK, console) can ask for, whichever engine does the work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from oarsman.engines.contract import HostUsage, UsageSample
from oarsman.job.environment import BuildLog, EnvironmentRecord, EnvironmentWanted
from oarsman.job.job import Job
from oarsman.job.observed import Admission
from oarsman.job.state import Status
from oarsman.plan.capacity.amounts import Capacity
from oarsman.store.logs import LogLine

__all__ = [
    "EVERYTHING",
    "Amounts",
    "Attended",
    "Backend",
    "Batch",
    "Environments",
    "EventRecord",
    "Fit",
    "Holding",
    "HostFinding",
    "HostRecord",
    "JobRecord",
    "LogLine",
    "LogPage",
    "LogQuery",
    "PlacedLine",
    "Preview",
    "Previews",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    job: Job
    status: Status
    created_at: datetime
    owner: str  # user name
    folder: Path | None  # where it was submitted from
    engine: str  # "local", "ssh", "kube"
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
class Batch:
    """What changed among the jobs since the batch before; the first one is `whole`."""

    records: Iterable[JobRecord] = ()  # of a whole batch they may be read while one walks over them
    gone: tuple[str, ...] = ()  # keys
    whole: bool = False  # the records are all there are: whatever else was known is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    cpus: float = 0.0
    memory_bytes: int = 0
    gpus: int = 0

    @staticmethod
    def of(capacity: Capacity) -> Amounts:
        return Amounts(cpus=float(capacity.cpus), memory_bytes=int(capacity.memory), gpus=capacity.gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one job has of a host."""

    key: str
    amounts: Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFinding:
    """What a check found of a host that is not well."""

    level: str  # warn or fail
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecord:
    """A machine that jobs run on: this one, an SSH host, a node."""

    name: str
    state: str  # ready, or one word for what is wrong
    message: str = ""  # why, where it is not ready
    total: Amounts
    held: Amounts  # promised to jobs
    used: Amounts | None = None  # really used, where that is known
    holdings: tuple[Holding, ...] = ()
    checked: datetime | None = None  # by `oarsman hosts check`; None: never
    findings: tuple[HostFinding, ...] = ()  # of that check


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Whether a job could start at once, could start later, or never could; and why, in plain words."""

    now: bool
    ever: bool
    reason: str = ""  # empty if it fits now
    wanted: Amounts
    free: Amounts
    total: Amounts
    machines: Mapping[str, str] = field(default_factory=dict)  # host of the job -> machine, if it fits now

    @staticmethod
    def of(answer: Admission, *, wanted: Capacity, free: Capacity, total: Capacity) -> Fit:
        return Fit(
            now=answer.admitted,
            ever=not answer.impossible,
            reason=answer.reason,
            wanted=Amounts.of(wanted),
            free=Amounts.of(free),
            total=Amounts.of(total),
            machines={place.member: place.machine for place in answer.placement},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Everything a job would be, before it is."""

    mpi: str
    hosts: tuple[str, ...]
    ranks: Mapping[int, str]
    hostfile: str
    discover_hosts: str
    environment: Mapping[str, str]
    launch_line: str
    rewritten: str
    objects: tuple[str, ...]
    not_honoured: tuple[str, ...]
    fit: Fit | None = None  # asked where the answer decides on which machines it would be
    machines: Mapping[str, str] = field(default_factory=dict)  # host -> machine, where it is not one of its own


class PlacedLine(NamedTuple):
    """A line and the place after it: hand `after` back and the next line follows. Places are opaque."""

    after: str
    line: LogLine


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    lines: tuple[PlacedLine, ...]  # oldest first
    before: str | None  # hand it back as `before` for the page above; None: this is the beginning
    after: str  # hand it back as `after` for what comes next
    attempt: int


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
    search: str | None = None  # only lines that contain it; case is ignored unless it has a capital letter


EVERYTHING = LogQuery()


class Environments(Protocol):
    """Unknown names raise NotFoundError. Every state survives the end of any process."""

    def list(self) -> Sequence[EnvironmentRecord]: ...
    def get(self, name: str) -> EnvironmentRecord: ...
    def put(self, wanted: EnvironmentWanted, *, owner: str | None = None) -> EnvironmentRecord:
        """Make it, or change it. Returns at once, the build goes on; what is built already is not built again.

        A failed build of the same contents is tried again. Jobs that run in the contents before keep them.
        """
        ...

    def delete(self, name: str) -> None:
        """Raises ConflictError while a job that has not ended uses it."""
        ...

    def log(self, name: str, *, after: int = 0) -> BuildLog:
        """Of the newest build: what was written behind that place, a bounded piece."""
        ...


class Backend(Protocol):
    """`key` is always "namespace/name". Unknown jobs raise NotFoundError."""

    @property
    def home(self) -> str:
        """The namespace of jobs that mention none."""
        ...

    @property
    def environments(self) -> Environments:
        """The sets of packages that jobs of this place can run in."""
        ...

    def submit(
        self,
        document: Mapping[str, Any],
        *,
        environment: Mapping[str, str],
        folder: Path,
        replace: bool = False,
        owner: str | None = None,
    ) -> JobRecord:
        """owner: on whose behalf; None: whoever runs this process."""
        ...

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
    def follow(self, namespace: str | None = None) -> Iterator[Batch]:
        """All jobs, and then what changes among them, for ever. Nothing is polled; trouble is survived."""
        ...

    def log_page(
        self,
        key: str,
        query: LogQuery = EVERYTHING,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int = 500,
    ) -> LogPage:
        """Lines after a place, before one, or (neither) the last ones. Its cost does not grow with the log."""
        ...

    def log_follow(self, key: str, query: LogQuery = EVERYTHING, *, after: str | None = None) -> Iterator[LogPage]:
        """Pages as lines come, from that place on (None: the beginning), until the attempt is over."""
        ...

    def usage_series(self, key: str, *, since: datetime | None = None) -> Sequence[UsageSample]:
        """What was sampled while the job ran, also after its end; oldest first, a bounded number."""
        ...

    def hosts(self) -> Sequence[HostRecord]: ...
    def fit(self, document: Mapping[str, Any], *, owner: str | None = None) -> Fit:
        """Raises ManifestError for what is no valid job.

        owner: who asks; of jobs that are in the way, only theirs are named. None: one who may see them all.
        """
        ...


# -- what only some places can be asked --------------------------------------------------------------
@runtime_checkable
class Attended(Protocol):
    """A place where somebody else looks after jobs, or nobody does."""

    def silence(self, key: str) -> str | None:
        """Why nothing happens with a job that has been there for a while; None if something does."""
        ...

    def served(self, namespace: str) -> bool | None:
        """Whether somebody looks after the jobs of the namespace; None if that cannot be known."""
        ...

    def workers_left(self, job: Job) -> int:
        """Workers that still run although the job has ended, because it asked for that."""
        ...

    def check_namespace(self, namespace: str) -> None:
        """Raises NotFoundError where it is known not to exist."""
        ...


@runtime_checkable
class Previews(Protocol):
    """A place that says itself what a job would be there; of the others, this machine's engine does."""

    def preview(self, document: Mapping[str, Any], environment: Mapping[str, str]) -> Preview: ...
