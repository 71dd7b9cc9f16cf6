"""Room on this machine: what there is, who has it, and whether one more job would fit. All of it by the admission's own
arithmetic (plan/capacity), so that nobody is told here what the queue then denies.

And what a job would be here, worked out with the same parts that would run it. Changes nothing.
"""

from __future__ import annotations

import os
import shlex
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import psutil

from oarsman import names
from oarsman.backends.base import Amounts, Fit, Holding, HostRecord, JobRecord, Preview
from oarsman.engines.hosts.core import cgroups, installed_mpi
from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.core.linux import probe
from oarsman.engines.hosts.local import capacity, host_spec
from oarsman.engines.hosts.local.host_spec import LocalHostSpecs
from oarsman.job import launch
from oarsman.job.job import Job
from oarsman.job.mpi import Family, discover_hosts, hostfile
from oarsman.plan.capacity import one_machine, queue
from oarsman.plan.capacity.amounts import Capacity, total
from oarsman.plan.capacity.gang import Placed
from oarsman.plan.capacity.placement import Machine
from oarsman.plan.reconcile import ours

_BETWEEN_LOOKS = 0.1  # seconds between two looks at the processor clocks, at least
_STILL_NOW = 5.0  # a look that is older says nothing about now


def host(records: Sequence[JobRecord], now: datetime) -> HostRecord:
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
    clocks = psutil.cpu_times()
    return float(sum(clocks) - sum(getattr(clocks, name, 0.0) for name in ("idle", "iowait", "guest", "guest_nice")))


def _used(has: Capacity) -> Amounts:
    """Whoever uses it. Of processors and memory no more than we count as being there."""
    from oarsman.control.usage import gpus_in_use

    memory = psutil.virtual_memory()
    return Amounts(
        cpus=round(min(_processors.busy(), float(has.cpus)), 2),
        memory_bytes=min(int(memory.total - memory.available), int(has.memory)),
        gpus=sum(1 for gpu in gpus_in_use().values() if gpu.percent > 0) if has.gpus else 0,
    )


_RUN = "<run>"  # folders that exist only once the job does
_FOLDER = "<job>"


def preview(job: Job, environment: Mapping[str, str], folder: Path) -> Preview:
    separation = probe()
    stated = job.implementation if job.implementation_stated else None
    found = installed_mpi.choose(environment, wanted=job.annotation(names.ANNOTATION_MPI), stated=stated)
    mpi = found or FoundMpi(Family.OPENMPI5, "", os.path.join(os.defpath.split(os.pathsep)[-1], "mpirun"))
    host_specs = LocalHostSpecs(
        job=replace(job, uid="<uid>"),
        environment=environment,
        folder=folder,
        mpi=mpi,
        separation=separation,
        job_folder=_FOLDER,
        run_folder=_RUN,
        gpus={},
    )
    given = host_specs.given_to(job.launcher_host)
    placement = (
        launch.expected_placement(job.launch, job.hosts, job.slots_per_worker) if job.launch is not None else None
    )
    written = job.launcher.container.argv
    refused = host_spec.all_refusals(job, folder=folder, separation=separation)
    return Preview(
        mpi=str(found) if found is not None else "",
        hosts=job.hosts,
        ranks=dict(enumerate(placement or ())),
        hostfile=hostfile(mpi.family.implementation, job.hosts, job.slots_per_worker),
        discover_hosts=discover_hosts(job.hosts, job.slots_per_worker),
        environment={name: value for name, value in given.items() if environment.get(name) != value and _shown(name)},
        launch_line=shlex.join(written),
        rewritten=shlex.join(rewritten(job)),
        objects=_objects(job, host_specs, folder),
        not_honoured=(*refused, *host_spec.remarks(job, separation, cgroups.find())),
    )


def _shown(name: str) -> bool:
    """Our own plumbing is of no interest to anybody."""
    return not name.startswith("OARSMAN_") or name in (names.ENV_JOB, names.ENV_HOST)


def rewritten(job: Job) -> tuple[str, ...]:
    """The launch line as it would run, unless the job says to leave it alone."""
    argv = job.launcher.container.argv
    if not job.rewrites_launch_line:
        return tuple(argv)
    return tuple(launch.rewrite(argv).argv)


def _objects(job: Job, host_specs: LocalHostSpecs, folder: Path) -> tuple[str, ...]:
    network = "private network" if host_specs.private else "the machine's network"
    hosts = [f"host {name} ({host_specs.address(name)}, {network})" for name in (job.launcher_host, *_workers(job))]
    files = [f"{names.MPI_CONFIG_DIR}/{name}" for name in (names.HOSTFILE, names.DISCOVER_HOSTS, names.KUBEXEC)]
    return (
        *hosts,
        *(f"file {path} on every host" for path in files),
        f"launcher process in {folder}",
        "log files per rank",
    )


def _workers(job: Job) -> tuple[str, ...]:
    return tuple(job.worker_host(index) for index in range(job.workers))
