"""What goes over the wire between a server and whoever asks it: the same models for REST, pages and SDK.

In JSON the names are camelCase, times RFC 3339 in UTC. Everything here is a value: it is made by
`desk.py` from what the engines know, and never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$", max_length=253)]


class Value(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="forbid")


# -- who asks ---------------------------------------------------------------------------------------
class Role(str, Enum):
    VIEWER = "viewer"  # sees all, changes nothing
    USER = "user"  # sees and changes own jobs
    ADMIN = "admin"  # everything, accounts included


class Identity(Value):
    name: str
    role: Role


# -- jobs -------------------------------------------------------------------------------------------
class JobSummary(Value):
    """A row of the jobs page."""

    key: str  # namespace/name
    name: str
    namespace: str
    uid: str
    engine: str  # embedded, ssh, kube
    state: str  # Pending, Queued, Running, Suspended, Restarting, Succeeded, Failed; Stopping, Deleting
    reason: str = ""
    message: str = ""
    cause: str = ""  # why it failed, in one line
    owner: str = ""
    description: str = ""
    api_version: str
    implementation: str
    priority: int = 0
    queue_position: int | None = None
    workers: int
    workers_ready: int
    slots_per_worker: int
    ranks: int | None = None  # None: the launch line does not say
    total_replicas: int
    cpus: float = 0.0  # of launcher and workers together, as requested
    memory_bytes: int = 0
    gpus: int = 0
    attempt: int = 0
    created: datetime
    started: datetime | None = None
    ended: datetime | None = None
    revision: int = 0


class CauseView(Value):
    summary: str
    rank: int | None = None
    host: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    memory_limit_hit: bool = False
    last_lines: Sequence[str] = ()
    hint: str | None = None


class AttemptView(Value):
    number: int
    started: datetime | None = None
    ended: datetime | None = None
    outcome: str = ""
    workers: int | None = None
    cause: CauseView | None = None


class ConditionView(Value):
    type: str
    status: bool
    reason: str
    message: str
    since: datetime


class Step(Value):
    """Of the timeline: submitted, queued, admitted, hostsUp, launched, firstOutput, ended."""

    name: str
    time: datetime


class RankView(Value):
    rank: int
    host: str
    planned_host: str | None = None
    state: str = ""  # running, exited, "" where nobody can say
    exit_code: int | None = None


class Job(Value):
    """All that is known of one job, but for its log, its events and its usage."""

    summary: JobSummary
    conditions: Sequence[ConditionView] = ()
    timeline: Sequence[Step] = ()
    attempts: Sequence[AttemptView] = ()
    cause: CauseView | None = None
    ranks: Sequence[RankView] = ()
    manifest: str  # YAML, as it was given
    completed: str  # YAML with every default filled in
    folder: str | None = None


class JobList(Value):
    items: Sequence[JobSummary]
    total: int  # that match, on all pages
    next: str | None = None  # hand it back as `cursor`


class JobQuery(Value):
    """What to list. `sort` is a field of JobSummary, with a minus for the other way round."""

    namespace: str | None = None
    states: Sequence[str] = ()
    owner: str | None = None
    engine: str | None = None
    search: str | None = None  # in name, description, reason and cause
    sort: str = "-created"
    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    cursor: str | None = None


class Create(Value):
    """A job to run: YAML text or a document, one of the two."""

    manifest: Annotated[str | None, Field(max_length=1_000_000)] = None
    document: Mapping[str, Any] | None = None
    folder: str | None = None  # where it runs, on engines that use the server's machine
    environment: Mapping[str, str] = Field(default_factory=dict)
    replace: bool = False  # an ended job of the same name is deleted first


class Scale(Value):
    workers: Annotated[int, Field(ge=1, le=100_000)]


class Clone(Value):
    """A new job like this one. `patch` is a JSON merge patch of its document."""

    name: Name | None = None  # None: the old one with a number
    patch: Mapping[str, Any] = Field(default_factory=dict)


class JobChange(Value):
    """From the stream of changes. `removed` is the key of one that is gone; `reset`: forget all, the rest follows."""

    changed: JobSummary | None = None
    removed: str | None = None
    reset: bool = False


class EventView(Value):
    time: datetime
    first_time: datetime
    severity: str
    reason: str
    message: str
    count: int = 1


# -- logs -------------------------------------------------------------------------------------------
class LogLineView(Value):
    after: str  # the place behind this line
    time: datetime
    rank: int | None = None
    host: str
    stream: Literal["out", "err"]
    text: str


class LogPageView(Value):
    lines: Sequence[LogLineView]
    before: str | None
    after: str
    attempt: int


class LogFilter(Value):
    ranks: Sequence[Annotated[int, Field(ge=0)]] = ()
    workers: Sequence[Annotated[int, Field(ge=0)]] = ()
    launcher: bool = False
    stream: Literal["out", "err"] | None = None
    search: Annotated[str | None, Field(max_length=1000)] = None
    attempt: Annotated[int | None, Field(ge=1)] = None


# -- the place --------------------------------------------------------------------------------------
class AmountsView(Value):
    cpus: float = 0.0
    memory_bytes: int = 0
    gpus: int = 0


class HoldingView(Value):
    key: str
    amounts: AmountsView


class HostView(Value):
    name: str
    state: str
    message: str = ""
    total: AmountsView
    held: AmountsView
    used: AmountsView | None = None
    holdings: Sequence[HoldingView] = ()


class QueueEntry(Value):
    key: str
    position: int
    priority: int
    reason: str
    since: datetime
    owner: str = ""


class UsagePoint(Value):
    time: datetime
    host: str
    cpu_percent: float
    memory_bytes: int
    received_bytes_per_second: float | None = None
    sent_bytes_per_second: float | None = None
    gpu_percent: float | None = None
    gpu_memory_bytes: int | None = None


class RecentFailure(Value):
    key: str
    ended: datetime
    cause: str


class Overview(Value):
    states: Mapping[str, int]
    total: AmountsView
    held: AmountsView
    used: AmountsView | None = None  # held minus used is allocated but idle
    failures: Sequence[RecentFailure] = ()  # of the last day, newest first


# -- before it runs ---------------------------------------------------------------------------------
class ProblemView(Value):
    """A mistake in a manifest. Line and column count from 1; 0: not at one place of the text."""

    line: int = 0
    column: int = 0
    field: str = ""
    message: str
    hint: str | None = None


class FitView(Value):
    now: bool
    ever: bool
    reason: str = ""
    wanted: AmountsView
    free: AmountsView
    total: AmountsView


class PreviewView(Value):
    """What a manifest would become; with problems, nothing else is filled in."""

    problems: Sequence[ProblemView] = ()
    warnings: Sequence[str] = ()  # what this engine will not honour
    document: Mapping[str, Any] | None = None  # as read from the text
    completed: str = ""  # YAML with every default
    total_replicas: int | None = None
    slots: int | None = None
    ranks: int | None = None
    arithmetic: str = ""  # "2 workers x 4 slots = 8; mpirun -np 8 fills them"
    placement: Mapping[str, Sequence[int]] = Field(default_factory=dict)  # host -> ranks
    hostfile: str = ""
    launch_line: str = ""
    fit: FitView | None = None


class Template(Value):
    name: str
    title: str
    description: str = ""
    manifest: str


# -- who may ------------------------------------------------------------------------------------------
class Account(Value):
    name: str
    role: Role
    created: datetime
    disabled: bool = False


class NewAccount(Value):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$")]
    role: Role = Role.USER
    password: Annotated[str, Field(min_length=8, max_length=1024)]


class AccountChange(Value):
    role: Role | None = None
    password: Annotated[str | None, Field(min_length=8, max_length=1024)] = None
    disabled: bool | None = None


class Login(Value):
    name: Annotated[str, Field(max_length=63)]
    password: Annotated[str, Field(max_length=1024)]


class Token(Value):
    """An API token; the secret itself is shown once, when it is made."""

    id: str
    owner: str
    note: str = ""
    created: datetime
    expires: datetime | None = None
    last_used: datetime | None = None


class NewToken(Value):
    note: Annotated[str, Field(max_length=200)] = ""
    days: Annotated[int | None, Field(ge=1, le=3650)] = None


class MadeToken(Value):
    token: Token
    secret: str


class AuditEntry(Value):
    time: datetime
    who: str
    address: str
    what: str  # login, login refused, submit, stop, delete, ...
    about: str = ""
    outcome: str = "ok"


class AuditPage(Value):
    items: Sequence[AuditEntry]  # newest first
    next: str | None = None  # hand it back as `cursor` for older ones


class ServerInfo(Value):
    version: str
    engine: str
    home: str  # the namespace of manifests that mention none
    accounts: bool  # whether people log in
    me: Identity


class ProblemDetails(Value):
    """RFC 9457. `errors` has one entry per mistake in what was sent."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    code: str = ""  # stable, for programs
    field: str | None = None
    hint: str | None = None
    errors: Sequence[ProblemView] = ()
