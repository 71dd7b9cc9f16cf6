"""What a job has become: the status, as frozen values. How it is derived is `status/`'s business.

This is the one description of it. What stands in Kubernetes and in the stores (`status/codec.py`), the CRD's schema
and the REST API's models are derived from these classes, with the names, the descriptions and (for the CRD) the
docstrings here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, MISSING, Field, dataclass, field, fields
from datetime import datetime
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from oarsman import names


# -- what is said of a field: `Annotated[type, Says(...)]`, or just its type where that says it all --------------
@dataclass(frozen=True, slots=True)
class Says:
    what: str = ""  # the description; of a dataclass: where its docstring is not
    _: KW_ONLY
    wire: str = ""  # the name in Kubernetes, where it is not the camelCase of its own; a.b: b in the mapping a
    always: bool = False  # written when it is empty, too
    required: bool = False  # nothing that lacks it is one of these
    filled: bool = False  # of a text: never empty
    words: tuple[str, ...] = ()  # the only ones that it may be; of a bool: it is written as True or False, in words
    bits: int = 32  # of a number
    key: str = ""  # of a list: the field that tells its items apart
    otherwise: str = ""  # the wire name of the field that stands in for it where it is missing
    api: bool = True  # the REST API shows it
    sentence: bool = False  # of a text: it is made of a template and arguments, which are kept beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One field: its dataclass, its type and what it says, taken together."""

    name: str
    wire: str
    type: Any  # without None
    says: Says
    field: Field[Any]

    @property
    def has_default(self) -> bool:
        return self.field.default is not MISSING or self.field.default_factory is not MISSING

    @property
    def optional(self) -> bool:
        return self.field.default is None


@cache
def described(cls: type) -> tuple[Described, ...]:
    hints = get_type_hints(cls, include_extras=True)
    return tuple(_described(field, hints[field.name]) for field in fields(cls))


def _described(field: Field[Any], hint: Any) -> Described:
    type_, says = get_args(hint) if get_origin(hint) is Annotated else (hint, Says())
    kinds = [kind for kind in get_args(type_) if kind is not NoneType]
    bare = kinds[0] if NoneType in get_args(type_) else type_
    return Described(name=field.name, wire=says.wire or camel(field.name), type=bare, says=says, field=field)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


# -- the status ------------------------------------------------------------------------------------------------
_STRONGEST_FIRST = (
    names.SUCCEEDED,
    names.FAILED,
    names.SUSPENDED,
    names.RESTARTING,
    names.RUNNING,
    names.QUEUED,
    names.CREATED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One thing that is, was or is not true of the job."""

    type: Annotated[
        str,
        Says("Created, Queued, Running, Restarting, Suspended, Succeeded or Failed.", required=True, filled=True),
    ]
    status: Annotated[bool, Says("Whether it is true.", required=True, words=("True", "False", "Unknown"))]
    reason: Annotated[str, Says("Why, in one word for programs.")]
    message: Annotated[str, Says("Why, in a sentence for people.", sentence=True)]
    last_update_time: Annotated[
        datetime, Says("When this condition was last written.", otherwise="lastTransitionTime", api=False)
    ]
    since: Annotated[
        datetime, Says("When its status last changed.", wire="lastTransitionTime", otherwise="lastUpdateTime")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCount:
    active: Annotated[int, Says("Pods that exist and have not ended.")] = 0
    ready: Annotated[int, Says("Pods that are ready.")] = 0
    succeeded: Annotated[int, Says("Pods that ended well.")] = 0
    failed: Annotated[int, Says("Pods that ended badly.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why the job failed."""

    summary: Annotated[str, Says("The cause in one line.", sentence=True)]
    rank: Annotated[int | None, Says("The rank that failed first.")] = None
    host: Annotated[str | None, Says("The host it ran on.")] = None
    exit_code: Annotated[int | None, Says("The code it ended with, as a shell counts.")] = None
    signal: Annotated[int | None, Says("The signal that ended it.")] = None
    memory_limit_hit: Annotated[bool, Says("True when it was ended for using too much memory.")] = False
    last_lines: Annotated[tuple[str, ...], Says("The last lines it wrote.")] = ()
    hint: Annotated[str | None, Says("What may help.", sentence=True)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run of the whole job."""

    number: Annotated[int, Says("Counted from 1.")]
    started: Annotated[datetime | None, Says("When it started.", wire="startedAt")] = None
    ended: Annotated[datetime | None, Says("When it ended.", wire="finishedAt")] = None
    outcome: Annotated[str, Says("Succeeded, Failed, Suspended, Disrupted, NotStarted, or nothing while it runs.")] = ""
    cause: Cause | None = None
    # how many it was launched with; a later scaling does not change it
    workers: Annotated[int | None, Says("Workers it ran with.")] = None
    # which one served it, where an engine might put another of the same name in its place
    launcher: Annotated[str, Says("The pod that served it.", filled=True, api=False)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlace:
    """The place in the queue, while the job waits for room."""

    position: Annotated[int, Says("1 is next.")]
    reason: Annotated[str, Says("What the job waits for.", sentence=True)]  # in plain words


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What became of the job; written by the controller."""

    conditions: Annotated[tuple[Condition, ...], Says("What is true of the job.", always=True, key="type")] = ()
    launcher: Annotated[
        ReplicaCount,
        Says("How many of the launcher's pods are in which state.", wire="replicaStatuses.Launcher", always=True),
    ] = ReplicaCount()
    worker: Annotated[
        ReplicaCount,
        Says("How many of the workers' pods are in which state.", wire="replicaStatuses.Worker", always=True),
    ] = ReplicaCount()
    start_time: Annotated[datetime | None, Says("When the job was first taken up, or resumed.")] = None
    completion_time: Annotated[datetime | None, Says("When it ended.")] = None
    observed_generation: Annotated[int, Says("The generation this status is about.", bits=64)] = 0
    attempts: Annotated[tuple[Attempt, ...], Says("Every run of the job, oldest first.")] = ()
    cause: Cause | None = None
    queue: QueuePlace | None = None
    # step -> first time it was seen: submitted, admitted, hostsUp, launched, firstOutput, ended
    timeline: Annotated[Mapping[str, datetime], Says("When each step was first seen.")] = field(default_factory=dict)
    # rank -> host, as seen
    placement: Annotated[Mapping[int, str], Says("Which ranks ran on which host, as ranges.")] = field(
        default_factory=dict
    )
    # host -> machine
    machines: Annotated[Mapping[str, str], Says("Which machine each host is on, where it is not one of its own.")] = (
        field(default_factory=dict)
    )
    retry_at: Annotated[datetime | None, Says("When a failed launcher is tried again.")] = None

    def condition(self, type_: str) -> Condition | None:
        return next((c for c in self.conditions if c.type == type_), None)

    def is_true(self, type_: str) -> bool:
        found = self.condition(type_)
        return found is not None and found.status

    @property
    def finished(self) -> bool:
        return self.is_true(names.SUCCEEDED) or self.is_true(names.FAILED)

    @property
    def attempt(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def phase(self) -> str:
        """One word for a table: the strongest condition that is true."""
        said = {condition.type: condition.status for condition in reversed(self.conditions)}
        return next((type_ for type_ in _STRONGEST_FIRST if said.get(type_)), "Pending")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    time: datetime  # last time it happened
    first_time: datetime
    severity: str  # Normal, Warning
    reason: str
    message: Annotated[str, Says(sentence=True)]
    count: int = 1
