"""A plan is data: what to do, in order, what the status becomes, and when to look again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from oarsman.job.state import Status


@dataclass(frozen=True, slots=True)
class Prepare:
    """Make what launcher and workers need before they start: files, keys, service, config."""


@dataclass(frozen=True, slots=True)
class CreateWorker:
    index: int


@dataclass(frozen=True, slots=True)
class DeleteWorker:
    index: int


@dataclass(frozen=True, slots=True)
class CreateLauncher:
    attempt: int


@dataclass(frozen=True, slots=True)
class DeleteLauncher:
    attempt: int


@dataclass(frozen=True, slots=True)
class PublishHosts:
    """Write hostfile and discover_hosts.sh: the hosts that may take ranks right now, in order."""

    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dismantle:
    """Take away what `Prepare` made. Logs stay."""


@dataclass(frozen=True, slots=True)
class ReleaseGang:
    """Ask for the gang's places no more."""


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Remove the job itself, with its logs and its record."""


Action = (
    Prepare
    | CreateWorker
    | DeleteWorker
    | CreateLauncher
    | DeleteLauncher
    | PublishHosts
    | Dismantle
    | ReleaseGang
    | DeleteJob
)


class Severity(str, Enum):
    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    reason: str
    message: str
    severity: Severity = Severity.NORMAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    status: Status
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()  # emitted only after the status write was accepted
    look_again_in: timedelta | None = None
