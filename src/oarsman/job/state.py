"""What a job has become: the status, as frozen values. How it is derived is `status/`'s business.

The Kubernetes wire form (camelCase, RFC 3339) is written and read by `status/codec.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from oarsman import names

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
    type: str
    status: bool
    reason: str
    message: str
    last_update_time: datetime
    last_transition_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCount:
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    ready: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why it failed, in one line (`summary`) and in parts."""

    summary: str
    rank: int | None = None
    host: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    memory_limit_hit: bool = False
    last_lines: tuple[str, ...] = ()
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run of the whole gang. Attempts are counted from 1."""

    number: int
    started_at: datetime | None = None
    finished_at: datetime | None = None
    outcome: str = ""  # "", Succeeded, Failed, Suspended, NotStarted
    cause: Cause | None = None
    workers: int | None = None  # how many it was launched with; a later scaling does not change it
    launcher: str = ""  # which one served it, where an engine might put another of the same name in its place


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlace:
    position: int  # 1 is next
    reason: str  # what the job waits for, in plain words


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    conditions: tuple[Condition, ...] = ()
    launcher: ReplicaCount = ReplicaCount()
    worker: ReplicaCount = ReplicaCount()
    start_time: datetime | None = None
    completion_time: datetime | None = None
    observed_generation: int = 0
    attempts: tuple[Attempt, ...] = ()
    cause: Cause | None = None
    queue: QueuePlace | None = None
    # step -> first time it was seen: submitted, admitted, hostsUp, launched, firstOutput, ended
    timeline: Mapping[str, datetime] = field(default_factory=dict)
    placement: Mapping[int, str] = field(default_factory=dict)  # rank -> host, as seen
    machines: Mapping[str, str] = field(default_factory=dict)  # host -> machine, where it is not one of its own
    retry_at: datetime | None = None

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
        return next((type_ for type_ in _STRONGEST_FIRST if self.is_true(type_)), "Pending")
