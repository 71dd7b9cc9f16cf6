"""The port: what every face (command, client, console) can ask of a place, and what only of some (named protocols)."""

from __future__ import annotations

import copy
import getpass
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, TypedDict, Unpack, runtime_checkable

from oarsman.engines.contract import HostUsage, UsageSample
from oarsman.errors import ManifestError, UserError
from oarsman.job.confined import Confined
from oarsman.job.environment import BuildLog, EnvironmentRecord, EnvironmentWanted
from oarsman.job.job import Job
from oarsman.job.observed import Admission
from oarsman.job.state import EventRecord as EventRecord
from oarsman.job.state import Says, Status
from oarsman.manifest.problems import more_slots
from oarsman.plan.capacity.amounts import Capacity, total
from oarsman.plan.capacity.placement import Machine
from oarsman.store.logs import LogLine as LogLine
from oarsman.store.logs import Search, stamp
from oarsman.text import units
from oarsman.text.catalogue import N_
from oarsman.text.sentence import Text

Document = dict[str, Any]
STAGES = {  # of a check of hosts
    "hosts": N_("asking the hosts"),
    "ways": N_("trying the ways between the hosts"),
    "real run": N_("running mpirun over all hosts"),
    "network": N_("measuring the network"),
}


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
    run: int = 1  # which it is of those that had this name
    mpi: str = ""  # which, its version and its launcher; known once it was prepared, where that is not an image's
    limits: str = ""  # of its processes, as far as they are not the usual ones; known once it was prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What changed among the jobs since the batch before; the first one is `whole`."""

    records: Iterable[JobRecord] = ()  # of a whole batch they may be read as one walks over them: once, in a thread
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
    message: Annotated[str, Says(sentence=True)]
    hint: Annotated[str, Says(sentence=True)] = ""


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """What a place has or lacks."""

    subject: str
    level: str  # ok, warn or missing
    message: Annotated[str, Says(sentence=True)]
    advice: Annotated[str | None, Says(sentence=True)] = None
    blocking: bool = False  # where it is missing, no job can run


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecord:
    """A machine that jobs run on: this one, an SSH host, a node."""

    name: str
    state: str  # ready, or one word for what is wrong
    message: str = ""  # why, where it is not ready
    total: Amounts
    held: Amounts  # promised to jobs
    used: Amounts | None = None  # by all programs, where that is known
    holdings: tuple[Holding, ...] = ()
    checked: datetime | None = None  # by `oarsman hosts check`; None: never
    findings: tuple[HostFinding, ...] = ()  # of that check

    @staticmethod
    def of(machine: Machine, shares: Sequence[tuple[str, Capacity]], **more: Any) -> HostRecord:
        """shares: what each job has of it, by its key; together they are what is held, if nothing else is said."""
        given = {
            "name": machine.name,
            "total": Amounts.of(machine.capacity),
            "held": Amounts.of(total(share for _, share in shares)),
            "holdings": tuple(Holding(key=key, amounts=Amounts.of(share)) for key, share in shares),
        }
        return HostRecord(**{**given, **more})


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
    live: tuple[LogLine, ...] | None = None  # all lines that have not ended yet; None: as before


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
    search: str | None = None  # only lines that contain it, whatever the case of its letters
    live: bool = False  # with `follow`: also lines that have not ended yet, as LiveLines, where they are known
    uid: str = ""  # of this job alone: another one that has its name by now may be somebody else's

    @property
    def chooses(self) -> bool:
        """Whether any line is left out for what it says or who wrote it."""
        return bool(self.ranks or self.workers or self.launcher_only or self.stream or self.search)

    def filter(self, job: Job) -> Callable[[LogLine], bool]:
        hosts = {job.worker_host(index) for index in self.workers}
        since = stamp(self.since) if self.since is not None else ""
        search = Search(self.search) if self.search else None

        def wanted(line: LogLine) -> bool:
            return (
                (not self.ranks or line.rank in self.ranks)
                and (not hosts or line.host in hosts)
                and (not self.launcher_only or line.rank is None)
                and (self.stream is None or line.stream == self.stream)
                and line.stamp >= since
                and (search is None or search(line.text))
            )

        return wanted


EVERYTHING = LogQuery()


class Where(TypedDict, total=False):
    """Which page of a log: lines after a place, before one, or (neither) the last ones."""

    after: str | None
    before: str | None
    limit: int  # of lines; 500 if nothing is said


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a job would be: where its ranks would run, and what its launcher would be given."""

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


class Environments(Protocol):
    """Unknown names raise NotFoundError. Every state survives the end of any process."""

    async def list(self) -> Sequence[EnvironmentRecord]: ...
    async def get(self, name: str) -> EnvironmentRecord: ...
    async def put(
        self, wanted: EnvironmentWanted, *, owner: str | None = None, confined: Confined | None = None
    ) -> EnvironmentRecord:
        """`confined`: what a build on this machine is kept to; None: nothing.

        Make it, or change it. Returns at once, the build goes on; what is built already is not built again.

        A failed build of the same contents is tried again. Jobs that run in the contents before keep them.
        """

    async def delete(self, name: str) -> None:
        """Raises ConflictError while a job that has not ended uses it."""

    async def log(self, name: str, *, after: int = 0) -> BuildLog:
        """Of the newest build: what was written behind that place, a bounded piece."""


class Backend(Protocol):
    """`key` is always "namespace/name". Unknown jobs raise NotFoundError. Where earlier runs are kept (KeepsRuns), what
    only reads also takes "namespace/name#2": the second run of that job.

    It belongs to the event loop that uses it and does not keep it waiting, so that any number of users can share it.
    Whoever iterates over an answer closes it (`aclosing`); that, or a cancellation, ends it at once.
    """

    @property
    def place(self) -> str:
        """local, ssh or kube."""

    @property
    def home(self) -> str:
        """The namespace of jobs that mention none."""

    @property
    def environments(self) -> Environments:
        """The sets of packages that jobs of this place can run in."""

    async def submit(
        self,
        document: Mapping[str, Any],
        *,
        environment: Mapping[str, str],
        folder: Path,
        replaces: str | None = None,
        owner: str | None = None,
    ) -> JobRecord:
        """owner: on whose behalf; None: whoever runs this process. replaces: the uid of an ended job whose next run
        this is; one that has that name by now and is another stays."""

    async def get(self, key: str) -> JobRecord: ...
    async def list(self, namespace: str | None = None) -> Sequence[JobRecord]: ...

    # uid: of that job alone. Another one that has its name by now, perhaps somebody else's, is not there.
    async def scale(self, key: str, workers: int, uid: str = "") -> JobRecord: ...
    async def suspend(self, key: str, uid: str = "") -> JobRecord: ...
    async def resume(self, key: str, uid: str = "") -> JobRecord: ...
    async def stop(self, key: str, uid: str = "") -> JobRecord: ...
    async def delete(self, key: str, uid: str = "") -> None: ...
    async def events(self, key: str) -> Sequence[EventRecord]: ...
    def watch(self, key: str, *, timeout: float | None = None) -> AsyncGenerator[JobRecord, None]:
        """Yield the record now and after each change; ends when the job is gone, or TimeoutError."""

    def logs(self, key: str, query: LogQuery = EVERYTHING) -> AsyncGenerator[Sequence[LogLine], None]:
        """What there is, or with `follow` everything until the attempt is over; a bounded number of lines at a time."""

    async def usage(self, key: str) -> Sequence[HostUsage]: ...
    def follow(self, namespace: str | None = None) -> AsyncGenerator[Batch, None]:
        """All jobs, and then what changes among them, for ever. Nothing is polled; trouble is survived."""

    async def log_page(self, key: str, query: LogQuery = EVERYTHING, **where: Unpack[Where]) -> LogPage:
        """Its cost does not grow with the log."""

    def log_follow(
        self, key: str, query: LogQuery = EVERYTHING, *, after: str | None = None
    ) -> AsyncGenerator[LogPage, None]:
        """Pages as lines come, from that place on (None: the beginning), until the attempt is over."""

    async def usage_series(self, key: str, *, since: datetime | None = None) -> Sequence[UsageSample]:
        """What was sampled while the job ran, also after its end; oldest first, a bounded number."""

    async def hosts(self) -> Sequence[HostRecord]: ...
    async def fit(self, document: Mapping[str, Any], *, owner: str | None = None) -> Fit:
        """Raises ManifestError for what is no valid job.

        owner: who asks; of jobs that are in the way, only theirs are named. None: one who may see them all.
        """

    async def close(self) -> None:
        """What is open is closed. Event loops do that for those who forget it."""


class Edits(ABC):
    """The verbs that change what is wanted of a job, each a patch of its document."""

    @abstractmethod
    async def _edit(self, key: str, uid: str, edit: Callable[[Document], Document], what: str) -> JobRecord:
        """Change what is wanted, if the result is still a valid job. A bad change changes nothing."""

    async def scale(self, key: str, workers: int, uid: str = "") -> JobRecord:
        def edit(document: Document) -> Document:
            if document["spec"]["mpiReplicaSpecs"].get("Worker") is None:
                raise UserError(Text("{key} has no workers to scale", key=key), field="spec.mpiReplicaSpecs.Worker")
            return {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": workers}}}}

        try:
            return await self._edit(key, uid, edit, Text("scaled"))
        except ManifestError as error:
            if (more := more_slots(error.problems[0].hint)) is None:
                raise
            hint = Text("its command starts more ranks than that: it needs at least {least} workers", least=more[1])
            wrong = Text(
                "{key} cannot run on {workers}: {why}", key=key, workers=units.workers(workers), why=error.message
            )
            raise UserError(wrong, hint=hint) from error

    async def suspend(self, key: str, uid: str = "") -> JobRecord:
        return await self._edit(key, uid, lambda _: {"spec": {"runPolicy": {"suspend": True}}}, Text("suspended"))

    async def resume(self, key: str, uid: str = "") -> JobRecord:
        return await self._edit(key, uid, lambda _: {"spec": {"runPolicy": {"suspend": False}}}, Text("resumed"))


def merged(document: Any, patch: Any) -> Any:
    """RFC 7386: what a merge patch makes of a document. null removes."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = dict(document) if isinstance(document, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


# -- what only some places can do: ask with isinstance -------------------------------------------------
@runtime_checkable
class KeepsRuns(Protocol):
    """What an ended job leaves is kept when it is run again."""

    async def runs(self, key: str) -> Sequence[JobRecord]:
        """The job and its earlier runs, the newest first; a bounded number."""


@runtime_checkable
class StartsInFolder(Protocol):
    """Jobs begin in a folder of this machine, with the variables of whoever submits them. Others bring an image."""

    async def has_folder(self, path: str) -> bool:
        """Whether jobs can begin there: a whole path of a folder that exists."""


@runtime_checkable
class LooksAhead(Protocol):
    """Runs programs, asks hosts and looks at files to say more of a job before it starts, and to look after jobs."""

    def limited(self, *, asks: bool, trusts: bool) -> Backend:
        """The same jobs, for a caller for whom less is done.

        asks: programs are run and hosts asked, those of the place itself. trusts: and what a manifest names, which
        otherwise is neither run nor looked at before the job starts.
        """


@runtime_checkable
class Previews(Protocol):
    """Knows before a job runs what it would be given."""

    async def preview(self, document: Mapping[str, Any], *, environment: Mapping[str, str], folder: Path) -> Preview:
        """Changes nothing. Raises ManifestError for what is no valid job, or none here."""


@runtime_checkable
class HasInventory(Protocol):
    """Runs jobs on the hosts that a file names."""

    async def check(self) -> None:
        """Raises what is wrong with the inventory, before somebody relies on it."""

    async def held(self) -> Mapping[str, Capacity]:
        """What jobs have of each host, without asking any of them."""

    def refusals(self, job: Job) -> Sequence[str]:
        """What of a manifest cannot be honoured there, without asking anybody."""


@runtime_checkable
class HasOperator(Protocol):
    """Somebody else's process looks after the jobs, and may be missing."""

    async def silence(self, key: str) -> str | None:
        """Why nothing happens with a job that has been there for a while; None if something does."""

    async def served(self, namespace: str) -> bool | None:
        """Whether somebody looks after the jobs of the namespace; None if that cannot be known."""


@runtime_checkable
class HasNamespaces(Protocol):
    """Namespaces have to be made before there can be jobs in them. Elsewhere they are only words."""

    async def lacks_namespace(self, namespace: str) -> bool:
        """Whether it is known not to exist."""


@runtime_checkable
class HasRights(Protocol):
    """Decides itself who may do what."""

    async def may_change(self, namespaces: Sequence[str | None]) -> bool:
        """Whether the user may change jobs in any of these namespaces; None: in all there are."""


@runtime_checkable
class KeepsWorkers(Protocol):
    """Workers of a job that has ended go on if it asked for that (cleanPodPolicy: None)."""

    async def workers_left(self, job: Job) -> int: ...


def run_key(key: str, run: int | None) -> str:
    """None: the newest."""
    return key if run is None else f"{key}#{run}"


def current_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as containers have them
        return str(os.getuid())
