"""The place jobs run at, what a manifest would become there, and the server: who asks it, and how it says no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from oarsman.backends.base import DoctorFinding, HostFinding
from oarsman.job.environment import BuildLog
from oarsman.service.models.base import NUMBER, Document, Label, Sentence, Value, derived, few


class ProblemView(Value):
    """A mistake in a manifest. Line and column count from 1; 0: not at one place of the text."""

    line: int = 0
    column: int = 0
    field: str = ""
    message: Sentence
    hint: Sentence | None = None


class FitView(Value):
    now: bool
    ever: bool
    reason: Sentence = ""
    wanted: AmountsView
    free: AmountsView
    total: AmountsView
    machines: Mapping[str, str] = Field(default_factory=dict)  # host -> machine of an inventory, if it fits now


class PreviewView(Value):
    """What a manifest would become; with problems, nothing else is filled in."""

    problems: Sequence[ProblemView] = ()
    warnings: Sequence[Sentence] = ()  # what is hardly meant, and what this engine will not honour
    document: Mapping[str, Any] | None = None  # as read from the text
    completed: str = ""  # YAML with every default
    total_replicas: int | None = None
    slots: int | None = None
    ranks: int | None = None
    arithmetic: Sentence = ""  # "2 workers x 4 slots = 8; mpirun -np 8 fills them"
    placement: Mapping[str, Sequence[int]] = Field(default_factory=dict)  # host -> ranks
    hostfile: str = ""
    launch_line: str = ""
    fit: FitView | None = None


class PlanView(Value):
    """Everything a job would be, before it is."""

    mpi: str
    hosts: Sequence[str]
    ranks: Mapping[int, str]  # rank -> host
    hostfile: str
    discover_hosts: str
    environment: Mapping[str, str]  # what is added to the variables that it inherits
    launch_line: str  # as written
    rewritten: str  # as it would run
    objects: Sequence[Sentence]
    not_honoured: Sequence[Sentence]
    warnings: Sequence[Sentence] = ()  # what is hardly meant, wherever it runs
    fit: FitView | None = None  # where the answer decides on which machines it would be
    machines: Mapping[str, str] = Field(default_factory=dict)  # host -> machine, where it is not one of its own


class Convert(Value):
    """A document to be written in another version of the API."""

    document: Document
    api_version: Annotated[str, Field(max_length=100)]


class Converted(Value):
    manifest: str  # YAML
    losses: Sequence[Sentence] = ()  # what that version cannot say


class Template(Value):
    name: str
    title: str
    description: str = ""
    manifest: str


class AmountsView(Value):
    cpus: float = 0.0
    memory_bytes: int = 0
    gpus: int = 0


class HoldingView(Value):
    key: str
    amounts: AmountsView


if TYPE_CHECKING:  # the fields are where they are described

    class FindingView(HostFinding, Value): ...

    class BuildLogView(BuildLog, Value): ...

    class DoctorFindingView(DoctorFinding, Value): ...
else:
    DoctorFindingView = derived("DoctorFindingView", DoctorFinding, {}, module=__name__)
    FindingView = derived("FindingView", HostFinding, {}, module=__name__)
    BuildLogView = derived("BuildLogView", BuildLog, {}, module=__name__)


class HostView(Value):
    name: str
    state: str
    message: Sentence = ""
    total: AmountsView
    held: AmountsView
    used: AmountsView | None = None
    holdings: Sequence[HoldingView] = ()
    checked: datetime | None = None  # by `oarsman hosts check`, where there is such a thing
    findings: Sequence[FindingView] = ()  # what that check found that is not well


class QueueEntry(Value):
    key: str
    position: int
    priority: int
    reason: Sentence
    since: datetime
    owner: str = ""
    wanted: AmountsView = AmountsView()  # of launcher and workers together


class RecentFailure(Value):
    key: str
    ended: datetime
    cause: Sentence


class Overview(Value):
    states: Mapping[str, int]
    total: AmountsView
    held: AmountsView
    used: AmountsView | None = None  # by all programs: at least held minus used is held but idle
    failures: Sequence[RecentFailure] = ()  # of the last day, newest first


class EnvironmentSpec(Value):
    """What is in it. The same contents are never built twice."""

    name: Label
    description: Annotated[str, Field(max_length=500)] = ""
    requirements: Annotated[str, Field(max_length=500_000)] = ""  # as pip reads them; a lock file is one too
    python: Annotated[str | None, Field(pattern=r"^3\.\d{1,2}(\.\d{1,3})?$")] = None  # None: the one at hand
    mpi: Literal["openmpi", "mpich"] | None = None  # None: the one of the machine or the image
    image: Annotated[str | None, Field(max_length=500)] = None  # on Kubernetes: the image of the jobs, which builds it


class EnvironmentView(Value):
    spec: EnvironmentSpec
    state: Literal["Waiting", "Building", "Ready", "Failed"]
    message: Sentence = ""  # why it failed, in one line
    owner: str = ""
    created: datetime
    built: datetime | None = None
    digest: str = ""  # of the contents
    python: str = ""  # the version it really has
    packages: Sequence[str] = ()  # "numpy==2.1.0", when it is ready
    size_bytes: int | None = None
    used_by: Sequence[str] = ()  # keys of jobs that have not ended


class CheckFinding(Value):
    """One step of a check, of one host or of the way to another."""

    host: str  # empty: of all of them together
    other: str = ""  # the host at the far end
    step: str
    level: Literal["ok", "warn", "fail", "skipped"]
    message: Sentence
    hint: Sentence = ""


class SpeedView(Value):
    host: str
    other: str
    latency: float | None = None  # seconds there and back
    bandwidth: float | None = None  # bytes per second
    why: Sentence = ""  # what could not be measured, and why


class HostsCheckWanted(Value):
    hosts: Annotated[Sequence[Annotated[str, Field(max_length=253)]], few(10_000, str)] = ()  # none: all
    leave_out: bool = False  # hosts that fail get no jobs, until a later check finds them well
    network: bool = False  # measure latency and bandwidth, too

    @property
    def named(self) -> str:
        return ", ".join(self.hosts)[:500] or "all"


class HostsCheckView(Value):
    """The newest check since the server was started."""

    state: Literal["never", "running", "ended", "failed"] = "never"
    stage: Literal["", "hosts", "ways", "real run", "network"] = ""  # while it runs
    trouble: Sentence = ""  # why it failed
    started: datetime | None = None
    ended: datetime | None = None
    findings: Sequence[CheckFinding] = ()
    speeds: Sequence[SpeedView] = ()
    unfit: Sequence[str] = ()  # hosts that failed
    left_out: Sequence[str] = ()  # those of them that get no jobs


class TrustWanted(Value):
    undo: bool = False


class TrustOrder(Value):
    undo: bool = False
    seen: Annotated[str, Field(max_length=64)]  # of the plan that was looked at


class TrustChangeView(Value):
    host: str  # empty: the server's machine
    file: str
    action: Literal["make", "delete", "add", "replace", "remove"]
    count: int  # lines, or hosts


class HostKeyView(Value):
    host: str
    kind: str
    fingerprint: str


class HostTroubleView(Value):
    host: str
    message: Sentence
    hint: Sentence = ""


class LoginView(Value):
    host: str  # empty: the server's machine
    other: str
    works: bool
    why: Sentence = ""


class TrustView(Value):
    """What lets all hosts log in to each other, before it is done; `done` and `logins` say what came of it."""

    seen: str  # hand it back to have this done
    inventory: str
    new_host_keys: Sequence[HostKeyView] = ()  # which nobody knew on the server's machine
    changes: Sequence[TrustChangeView] = ()
    refused: Sequence[HostTroubleView] = ()
    left_out: Sequence[HostTroubleView] = ()
    need_password: Sequence[str] = ()  # these hosts are for `oarsman hosts trust` in a terminal
    done: Sequence[TrustChangeView] = ()
    logins: Sequence[LoginView] = ()


class Role(str, Enum):
    VIEWER = "viewer"  # sees all, changes nothing
    USER = "user"  # sees and changes own jobs
    ADMIN = "admin"  # everything, accounts included
    CLUSTER = "cluster"  # whatever the cluster allows with jobs, and nothing of the console's own


AccountRole = Literal[Role.VIEWER, Role.USER, Role.ADMIN]  # what an account can have


class Identity(Value):
    name: str
    role: Role


class Account(Value):
    name: str
    role: Role
    created: datetime
    disabled: bool = False


class NewAccount(Value):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$")]
    role: AccountRole = Role.USER
    password: Annotated[str, Field(min_length=8, max_length=1024)]


class AccountChange(Value):
    role: AccountRole | None = None
    password: Annotated[str | None, Field(min_length=8, max_length=1024)] = None
    disabled: bool | None = None


class Login(Value):
    name: Annotated[str, Field(max_length=63)]
    password: Annotated[str, Field(max_length=1024)]


class PasswordChange(Value):
    """Of one's own."""

    current: Annotated[str, Field(max_length=1024)]
    new: Annotated[str, Field(min_length=8, max_length=1024)]


class ClusterLogin(Value):
    token: Annotated[str, Field(min_length=1, max_length=16_384)]  # the caller's own, for the cluster


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
    days: Annotated[int | None, Field(ge=1, le=3650), NUMBER] = None


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
    refusal: Sentence = ""  # why the caller's jobs cannot run here; empty: they can
    refusal_hint: Sentence = ""


class ProblemDetails(Value):
    """RFC 9457. `errors` has one entry per mistake in what was sent.

    `texts`: what sentences in it were made of, for those who say them in another language.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    code: str = ""  # stable, for programs
    field: str | None = None
    hint: str | None = None
    errors: Sequence[ProblemView] = ()
    texts: Mapping[str, Any] | None = None
