"""The place jobs run at: hosts, queue, use, and all at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from oarsman.sdk.models.base import Value


class AmountsView(Value):
    cpus: float = 0.0
    memory_bytes: int = 0
    gpus: int = 0


class HoldingView(Value):
    key: str
    amounts: AmountsView


class FindingView(Value):
    level: str  # warn or fail
    message: str
    hint: str = ""


class HostView(Value):
    name: str
    state: str
    message: str = ""
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
    reason: str
    since: datetime
    owner: str = ""
    wanted: AmountsView = AmountsView()  # of launcher and workers together


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
