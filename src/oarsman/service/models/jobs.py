"""Jobs, their log lines and progress, and sweeps (one manifest, many sets of parameters), as they go over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field

from oarsman.engines.contract import UsageSample
from oarsman.job import state
from oarsman.service.models.base import NUMBER, Document, Label, Name, Sentence, Value, derived, few
from oarsman.service.models.place import ProblemView


class JobSummary(Value):
    """A row of the jobs page."""

    key: str  # namespace/name
    name: str
    namespace: str
    uid: str
    engine: str  # local, ssh, kube
    state: str  # Pending, Queued, Running, Suspended, Restarting, Succeeded, Failed, Stopped; Stopping, Deleting
    reason: str = ""
    message: Sentence = ""
    cause: Sentence = ""  # why it failed, in one line
    owner: str = ""
    description: str = ""
    sweep: str = ""  # the name of the one it is a point of
    api_version: str
    implementation: str
    queue: str = ""  # by name, as runPolicy.schedulingPolicy says
    priority: int = 0
    queue_position: int | None = None
    workers: int
    workers_ready: int
    slots_per_worker: int
    ranks: int | None = None  # None: the launch line does not say
    slots: int = 0  # of all hosts together
    machines: str = ""  # of an inventory, the first of those it runs on: "node1, node2 +3"
    total_replicas: int
    cpus: float = 0.0  # of launcher and workers together, as requested
    memory_bytes: int = 0
    gpus: int = 0
    attempt: int = 0
    run: int = 1  # which it is of those that had this name
    created: datetime
    started: datetime | None = None
    ended: datetime | None = None
    retry_at: datetime | None = None  # when the next attempt starts
    revision: int = 0


if TYPE_CHECKING:  # the fields are where they are described, and one that says api=False is not there

    class CauseView(state.Cause, Value): ...

    class AttemptView(state.Attempt, Value): ...

    class ConditionView(state.Condition, Value): ...

    class EventView(state.EventRecord, Value): ...

    class UsagePoint(UsageSample, Value): ...
else:
    CauseView = derived("CauseView", state.Cause, {}, module=__name__)
    AttemptView = derived("AttemptView", state.Attempt, {state.Cause: CauseView}, module=__name__)
    ConditionView = derived("ConditionView", state.Condition, {}, module=__name__)
    EventView = derived("EventView", state.EventRecord, {}, module=__name__)
    UsagePoint = derived("UsagePoint", UsageSample, {}, module=__name__)


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


class JobView(Value):
    """All that is known of one job, but for its log, its events and its usage."""

    __qualname__ = "Job"  # as the API calls it
    model_config = ConfigDict(title="Job")

    summary: JobSummary
    conditions: Sequence[ConditionView] = ()
    timeline: Sequence[Step] = ()
    attempts: Sequence[AttemptView] = ()
    cause: CauseView | None = None
    ranks: Sequence[RankView] = ()
    machines: Mapping[str, str] = Field(default_factory=dict)  # host -> machine, where it is not one of its own
    manifest: str  # YAML, as it was given
    completed: str  # YAML with every default filled in
    document: Mapping[str, Any] = Field(default_factory=dict)  # with its status, as Kubernetes would print it
    folder: str | None = None
    mpi: str = ""  # which, its version and its launcher, once it was prepared on hosts; in an image nobody looks
    limits: Sentence = ""  # of its processes, as far as they are not the usual ones
    warnings: Sequence[Sentence] = ()  # of what is hardly meant


class JobList(Value):
    items: Sequence[JobSummary]
    total: int  # that match, on all pages
    next: str | None = None  # hand it back as `cursor`
    documents: Sequence[Mapping[str, Any]] = ()  # of the items, where they were asked for


class JobQuery(Value):
    """What to list. `sort` is a field of JobSummary, with a minus for the other way round."""

    namespace: str | None = None
    states: Sequence[str] = ()
    owner: str | None = None
    engine: str | None = None
    sweep: str | None = None  # by name
    search: str | None = None  # in name, description, reason and cause
    sort: str = "-created"
    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0  # rows to pass over: a page by its number
    cursor: str | None = None
    documents: bool = False  # whole jobs as well, as Kubernetes would print them


ALL_JOBS = JobQuery.model_construct()  # does not build the model


class Create(Value):
    """A job to run: YAML text or a document, one of the two."""

    manifest: Annotated[str | None, Field(max_length=1 << 18, examples=["kind: MPIJob ..."])] = None
    document: Document | None = None
    folder: str | None = None  # where it runs, on engines that use the server's machine
    environment: Annotated[Mapping[str, str], few(10_000, str)] = Field(default_factory=dict)
    replace: bool = False  # as the next run of an ended job of the same name


class Scale(Value):
    workers: Annotated[int, Field(ge=1, le=100_000), NUMBER]


class Clone(Value):
    """A new job like this one. `patch` is a JSON merge patch of its document."""

    name: Name | None = None  # None: the old one with a number
    patch: Document = Field(default_factory=dict)


class JobChange(Value):
    """From the stream of changes. `removed` is the key of one that is gone; `reset`: forget all, the rest follows."""

    changed: JobSummary | None = None
    removed: str | None = None
    reset: bool = False


class Attention(Value):
    """Who looks after a job, where that can be asked."""

    silence: str | None = None  # why nothing happens with a job that has been there for a while
    served: bool | None = None  # whether somebody looks after its namespace; None: nobody can say
    workers_left: int = 0  # that still run although the job has ended, because it asked for that


class HostUsageView(Value):
    """What a host of a job uses now."""

    host: str
    role: str
    processes: int | None
    cpu_percent: float
    memory_bytes: int
    memory_limit_bytes: int | None = None
    gpus: Sequence[int] = ()


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
    live: Sequence[LogLineView] | None = None  # all lines that have not ended yet; None: as before, or not known


class LogFilter(Value):
    ranks: Sequence[Annotated[int, Field(ge=0)]] = ()
    workers: Sequence[Annotated[int, Field(ge=0)]] = ()
    launcher: bool = False
    stream: Literal["out", "err"] | None = None
    search: Annotated[str | None, Field(max_length=1000)] = None
    attempt: Annotated[int | None, Field(ge=1)] = None
    run: Annotated[int | None, Field(ge=1)] = None


ALL_LINES = LogFilter.model_construct()


class MetricPoint(Value):
    time: datetime
    value: float
    step: float | None = None  # what the same line says of step, batch or iteration


class MetricSeries(Value):
    """A number that lines name again and again: loss, images/sec, step."""

    name: str
    rank: int | None = None  # None: nobody can say which
    points: Sequence[MetricPoint]  # a bounded number, evenly thinned


class RankProgress(Value):
    rank: int
    host: str
    state: str = ""  # running, exited, "" where nobody can say
    exit_code: int | None = None
    lines: int = 0
    last_output: datetime | None = None
    step: float | None = None
    behind: Sentence = ""  # why it is called a straggler; empty: it is none


class Progress(Value):
    series: Sequence[MetricSeries] = ()
    ranks: Sequence[RankProgress] = ()
    complete: bool = True  # False: the log is too long, and only parts of it were read


Parameter = str | int | float | bool
_PLAIN = (str, int, float)  # True is one of them
_MOST_NAMES, _MOST_VALUES = 100, 10_000


class SweepSpec(Value):
    """A grid (every combination) or a list of points. `{{name}}` in the manifest becomes the value."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$", max_length=40)]
    namespace: Label | None = None
    manifest: Annotated[str, Field(max_length=100_000)]
    grid: Annotated[
        Mapping[str, Annotated[Sequence[Parameter], few(_MOST_VALUES, *_PLAIN)]], few(_MOST_NAMES, list, tuple)
    ] = Field(default_factory=dict)
    points: Annotated[
        Sequence[Annotated[Mapping[str, Parameter], few(_MOST_NAMES, *_PLAIN)]], few(_MOST_VALUES, Mapping)
    ] = ()
    metric: Annotated[str | None, Field(max_length=500)] = None  # a regular expression; its first group is the number
    retries: Annotated[int, Field(ge=0, le=100), NUMBER] = 0
    at_once: Annotated[int | None, Field(ge=1, le=10_000), NUMBER] = None  # None: as many as fit


class SweepPreview(Value):
    """Of a sweep that was not begun; with problems, nothing else is filled in."""

    problems: Sequence[ProblemView] = ()
    total: int = 0  # points
    parameters: Sequence[str] = ()  # their names, in order
    points: Sequence[Mapping[str, Parameter]] = ()  # the first few
    resumes: bool = False  # whether the same sweep exists, which would be resumed
    warnings: Sequence[Sentence] = ()  # of parameters that the manifest does not use


class SweepPoint(Value):
    index: int
    parameters: Mapping[str, Parameter]
    key: str  # of its job
    state: str  # of its job; NotSubmitted where there is none yet
    cause: Sentence = ""
    started: datetime | None = None
    ended: datetime | None = None
    attempts: int = 0
    metric: float | None = None


class SweepView(Value):
    key: str  # namespace/name
    name: str
    namespace: str
    owner: str = ""
    created: datetime
    state: str  # Running, Succeeded, Failed (some point did), Stopped
    total: int
    states: Mapping[str, int]
    parameters: Sequence[str]  # their names, in order
    metric: str | None = None
    points: Sequence[SweepPoint] = ()  # left out of lists
