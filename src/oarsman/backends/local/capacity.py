"""Room on this machine: what there is, who has it, and whether one more job would fit. All of it by the admission's own
arithmetic (plan/capacity), so that nobody is told here what the queue then denies."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from oarsman.backends.base import Amounts, Fit, Holding, HostRecord, JobRecord
from oarsman.job.job import Job
from oarsman.plan.capacity import one_machine, queue
from oarsman.plan.capacity.amounts import Capacity, total
from oarsman.plan.capacity.gang import Placed
from oarsman.plan.capacity.placement import Machine
from oarsman.plan.reconcile import ours

_BETWEEN_LOOKS = 0.1  # seconds between two looks at the processor clocks, at least
_STILL_NOW = 5.0  # a look that is older says nothing about now


def host(records: Sequence[JobRecord], now: datetime) -> HostRecord:
    from oarsman.engines.hosts.local import capacity

    machine = capacity.measure()
    running, _ = running_and_waiting(records)
    shares = [(record.job.key, _placed(record, machine, now).holds()[machine.name]) for record in running]
    return HostRecord(
        name=socket.gethostname(),
        state="ready",
        total=Amounts.of(machine.capacity),
        held=Amounts.of(total(share for _, share in shares)),
        used=_used(machine.capacity),
        holdings=tuple(Holding(key=key, amounts=Amounts.of(share)) for key, share in shares),
    )


def fit(job: Job, records: Sequence[JobRecord], now: datetime) -> Fit:
    from oarsman.engines.hosts.local import capacity

    machine = capacity.measure()
    running, waiting = running_and_waiting(records)
    placed = [_placed(record, machine, now) for record in running]
    gang = one_machine.gang_of(job, now, [machine])
    behind = [one_machine.gang_of(record.job, now, [machine]) for record in waiting]
    answer = queue.preview(gang, behind, placed, [machine], one_machine)
    free, whole = queue.room_left(placed, [machine])
    return Fit.of(replace(answer, placement=()), wanted=gang.whole, free=free, total=whole)


def running_and_waiting(records: Sequence[JobRecord]) -> tuple[list[JobRecord], list[JobRecord]]:
    """Of the unsettled jobs those that have room, and those that wait for it."""
    running, waiting = [], []
    for record in records:
        if not ours(record.job):
            continue
        if record.status.start_time is not None:  # also one that has ended and is being cleared away
            running.append(record)
        elif not (record.status.finished or record.job.run_policy.suspend or record.stop_requested or record.deleting):
            waiting.append(record)
    return running, waiting


def _placed(record: JobRecord, machine: Machine, now: datetime) -> Placed:
    return one_machine.placed(one_machine.gang_of(record.job, now, [machine]), machine)


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


def _used(has: Capacity) -> Amounts:
    """Whoever uses it. Of processors and memory no more than we count as being there."""
    import psutil

    from oarsman.control.usage import gpus_in_use

    memory = psutil.virtual_memory()
    return Amounts(
        cpus=round(min(_processors.busy(), float(has.cpus)), 2),
        memory_bytes=min(int(memory.total - memory.available), int(has.memory)),
        gpus=sum(1 for gpu in gpus_in_use().values() if gpu.percent > 0) if has.gpus else 0,
    )
