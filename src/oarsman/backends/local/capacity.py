"""Room on this machine: what there is, who has it, and whether one more job would fit. All of it by the admission's own
arithmetic (plan/capacity/gang.py), so that nobody is told here what the queue then denies."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from oarsman.backends.base import Amounts, Fit, Holding, HostRecord, JobRecord
from oarsman.job.job import Job
from oarsman.plan.capacity.gang import Capacity, Request, admit, holds, request_of
from oarsman.plan.reconcile import ours

_BETWEEN_LOOKS = 0.1  # seconds between two looks at the processor clocks, at least
_STILL_NOW = 5.0  # a look that is older says nothing about now
_NOBODY = ""  # the key of a job that is only asked about


def host(records: Sequence[JobRecord], now: datetime) -> HostRecord:
    from oarsman.engines.hosts.local import capacity

    total = capacity.measure()
    running, _ = _requests(records, now)
    shares = [(request.key, holds(request, total)) for request in running]
    return HostRecord(
        name=socket.gethostname(),
        state="ready",
        total=_amounts(total),
        held=_amounts(_sum([share for _, share in shares])),
        used=_used(total),
        holdings=tuple(Holding(key=key, amounts=_amounts(share)) for key, share in shares),
    )


def fit(job: Job, records: Sequence[JobRecord], now: datetime) -> Fit:
    from oarsman.engines.hosts.local import capacity

    total = capacity.measure()
    running, waiting = _requests(records, now)
    asked = replace(request_of(job, now), key=_NOBODY)
    decisions = {decision.key: decision.admission for decision in admit([*waiting, asked], running, total)}
    held = _sum([holds(request, total) for request in running])
    answer = decisions[_NOBODY]
    return Fit(
        now=answer.admitted,
        ever=not answer.impossible,
        reason=answer.reason,
        wanted=Amounts(
            cpus=float(min(asked.cpus, total.cpus) if asked.cpus_assumed else asked.cpus),
            memory_bytes=int(asked.memory),
            gpus=asked.gpus,
        ),
        free=_amounts(
            Capacity(
                cpus=max(total.cpus - held.cpus, Decimal(0)),
                memory=max(total.memory - held.memory, Decimal(0)),
                gpus=max(total.gpus - held.gpus, 0),
            )
        ),
        total=_amounts(total),
    )


def _requests(records: Sequence[JobRecord], now: datetime) -> tuple[list[Request], list[Request]]:
    """Of the unsettled jobs those that have room, and those that wait for it."""
    running, waiting = [], []
    for record in records:
        if not ours(record.job):
            continue
        if record.status.start_time is not None:  # also one that has ended and is being cleared away
            running.append(request_of(record.job, now))
        elif not (record.status.finished or record.job.run_policy.suspend or record.stop_requested or record.deleting):
            waiting.append(request_of(record.job, now))
    return running, waiting


class _Processors:
    """How many are busy, between two looks at their clocks. However many ask at once, one of them waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = float("-inf")
        self._seconds = 0.0
        self._busy = 0.0

    def busy(self) -> float:
        with self._lock:
            if time.monotonic() - self._at > _STILL_NOW:
                self._at, self._seconds = time.monotonic(), _busy_seconds()
                time.sleep(_BETWEEN_LOOKS)
            now = time.monotonic()
            if now - self._at >= _BETWEEN_LOOKS:
                seconds = _busy_seconds()
                self._busy = max(seconds - self._seconds, 0.0) / (now - self._at)
                self._at, self._seconds = now, seconds
            return self._busy


_processors = _Processors()


def _busy_seconds() -> float:
    """Of all processors together, since the machine was started. A guest's time is in its host's already."""
    import psutil

    clocks = psutil.cpu_times()
    return float(sum(clocks) - sum(getattr(clocks, name, 0.0) for name in ("idle", "iowait", "guest", "guest_nice")))


def _used(total: Capacity) -> Amounts:
    """Whoever uses it. Of processors and memory no more than we count as being there."""
    import psutil

    from oarsman.control.usage import gpus_in_use

    memory = psutil.virtual_memory()
    return Amounts(
        cpus=round(min(_processors.busy(), float(total.cpus)), 2),
        memory_bytes=min(int(memory.total - memory.available), int(total.memory)),
        gpus=sum(1 for gpu in gpus_in_use().values() if gpu.percent > 0) if total.gpus else 0,
    )


def _sum(shares: Sequence[Capacity]) -> Capacity:
    return Capacity(
        cpus=sum((share.cpus for share in shares), Decimal(0)),
        memory=sum((share.memory for share in shares), Decimal(0)),
        gpus=sum(share.gpus for share in shares),
    )


def _amounts(capacity: Capacity) -> Amounts:
    return Amounts(cpus=float(capacity.cpus), memory_bytes=int(capacity.memory), gpus=capacity.gpus)
