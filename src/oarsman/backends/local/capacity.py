"""Room on hosts: what there is, who has it, and whether one more job would fit. All of it by the admission's own
arithmetic (plan/capacity), so that nobody is told here what the queue then denies.

And what a job would be on this machine, worked out with the same parts that would run it. Changes nothing.
"""

from __future__ import annotations

import os
import shlex
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

from oarsman import names
from oarsman.backends.base import Amounts, Fit, HostRecord, JobRecord, Preview
from oarsman.engines.hosts.core import cgroups, installed_mpi
from oarsman.engines.hosts.core.installed_mpi import FoundMpi
from oarsman.engines.hosts.core.linux import probe
from oarsman.engines.hosts.local import capacity, host_spec
from oarsman.engines.hosts.local.host_spec import LocalHostSpecs
from oarsman.job import launch
from oarsman.job.job import Job
from oarsman.job.mpi import Family, discover_hosts, hostfile
from oarsman.job.observed import Place
from oarsman.job.state import Status
from oarsman.plan.capacity import one_machine, queue
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.gang import Placed
from oarsman.plan.capacity.placement import Machine
from oarsman.plan.capacity.queue import SiteRules
from oarsman.text.sentence import Text

_BETWEEN_LOOKS = 0.1  # seconds between two looks at the processor clocks, at least
_STILL_NOW = 5.0  # a look that is older says nothing about now


class HostCapacity(NamedTuple):
    """Where jobs run that are in the store: this machine, or SSH hosts."""

    machines: Sequence[Machine]
    rules: SiteRules
    places: Callable[[Job], Mapping[str, str]]  # of a job that has room: its members, and the machine of each

    def placed(self, records: Sequence[JobRecord], now: datetime) -> list[Placed]:
        return [
            Placed(
                gang=self.rules.gang_of(record.job, now, self.machines),
                placement=tuple(Place(member=name, machine=on) for name, on in self.places(record.job).items()),
            )
            for record in running_and_waiting(records)[0]
        ]

    def fit(self, job: Job, records: Sequence[JobRecord], now: datetime) -> Fit:
        gang_of, machines = self.rules.gang_of, self.machines
        gang, placed = gang_of(job, now, machines), self.placed(records, now)
        waiting = [gang_of(record.job, now, machines) for record in running_and_waiting(records)[1]]
        answer = queue.preview(gang, waiting, placed, machines, self.rules)
        free, whole = queue.room_left(placed, machines)
        return Fit.of(answer, wanted=gang.whole, free=free, total=whole)


def this_machine() -> HostCapacity:
    machine = capacity.measure()
    return HostCapacity([machine], one_machine, lambda job: {job.launcher_host: machine.name})


def host(records: Sequence[JobRecord], now: datetime, *, asks: bool = True) -> HostRecord:
    """asks: the driver of its GPUs is asked what they do, which starts a program."""
    site = this_machine()
    [machine] = site.machines
    shares = [(job.gang.key, job.holds()[machine.name]) for job in site.placed(records, now)]
    used = _used(machine.capacity, asks=asks)
    return HostRecord.of(machine, shares, name=socket.gethostname(), state="ready", used=used)


def running_and_waiting(records: Sequence[JobRecord]) -> tuple[list[JobRecord], list[JobRecord]]:
    """Of the unsettled jobs those that have room, and those that wait for it."""
    running, waiting = [], []
    for record in records:
        if not record.job.is_ours:
            continue
        if record.status.start_time is not None and not _between_attempts(record.status):
            # also one that has ended and is being cleared away
            running.append(record)
        elif not (record.status.finished or record.job.run_policy.suspend or record.stop_requested or record.deleting):
            waiting.append(record)
    return running, waiting


def _between_attempts(status: Status) -> bool:
    """It has given its room back until its next attempt, or waits for room for that."""
    return status.retry_at is not None and not (status.worker.active or status.launcher.active)


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


def _used(has: Capacity, *, asks: bool) -> Amounts:
    """Whoever uses it. Of processors and memory no more than we count as being there."""
    from oarsman.control.usage import gpus_in_use

    memory = psutil.virtual_memory()
    return Amounts(
        cpus=round(min(_processors.busy(), float(has.cpus)), 2),
        memory_bytes=min(int(memory.total - memory.available), int(has.memory)),
        gpus=sum(1 for gpu in gpus_in_use().values() if gpu.percent > 0) if has.gpus and asks else 0,
    )


_RUN = "<run>"  # folders that exist only once the job does
_FOLDER = "<job>"


def preview(job: Job, environment: Mapping[str, str], folder: Path, *, trusts: bool = True) -> Preview:
    """trusts: what the job names is looked at: its MPI, which is run, and its folders. Else what we have ourselves."""
    separation = probe()
    found = None
    if trusts:
        found = installed_mpi.choose(job, environment, folder)
    elif not job.mpi_path:
        found = installed_mpi.choose(job, os.environ, folder)
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
    placement = launch.expected_placement(job.launch, job.hosts, job.slots_per_worker) if job.launch else None
    argv = job.launcher.container.argv
    absent: tuple[str, ...] = ()
    if job.mpi_path and found is None:
        explained = partial(installed_mpi.explain_absence, job, environment)
        absent = (explained() if trusts else installed_mpi.not_looked_for(job.mpi_path),)
    refused = host_spec.all_refusals(job, folder=folder, separation=separation, environment=environment, looks=trusts)
    return Preview(
        mpi=str(found) if found is not None else "",
        hosts=job.hosts,
        ranks=dict(enumerate(placement or ())),
        hostfile=hostfile(mpi.family.implementation, job.hosts, job.slots_per_worker),
        discover_hosts=discover_hosts(job.hosts, job.slots_per_worker),
        environment={name: value for name, value in given.items() if environment.get(name) != value and _shown(name)},
        launch_line=shlex.join(argv),
        rewritten=shlex.join(launch.rewrite(argv).argv if job.rewrites_launch_line else argv),
        objects=_objects(job, host_specs, folder),
        not_honoured=(*absent, *refused, *host_spec.remarks(job, separation, cgroups.find())),
    )


def _shown(name: str) -> bool:
    """Our own plumbing is of no interest to anybody."""
    return not name.startswith("OARSMAN_") or name in (names.ENV_JOB, names.ENV_HOST)


def _objects(job: Job, host_specs: LocalHostSpecs, folder: Path) -> tuple[str, ...]:
    network = Text("private network") if host_specs.private else Text("the machine's network")
    members = [job.launcher_host, *(job.worker_host(index) for index in range(job.workers))]
    hosts = [
        Text("host {name} ({address}, {network})", name=name, address=host_specs.address(name), network=network)
        for name in members
    ]
    files = [f"{names.MPI_CONFIG_DIR}/{name}" for name in (names.HOSTFILE, names.DISCOVER_HOSTS, names.KUBEXEC)]
    return (
        *hosts,
        *(Text("file {path} on every host", path=path) for path in files),
        Text("launcher process in {folder}", folder=folder),
        Text("log files per rank"),
    )
