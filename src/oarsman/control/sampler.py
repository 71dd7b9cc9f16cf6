"""Notes down every few seconds what the hosts of running jobs use. Lives in the supervisor.

One look at the process table serves all jobs. What it notes is in the job's folder (store/samples.py), so it outlives
the supervisor and the job.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oarsman.control import usage
from oarsman.control.usage import Figures, GpuUse, ProcessTable, gpus_in_use, living_hosts, traffic
from oarsman.engines.hosts.core.job_spec import JobSpec, find_spec
from oarsman.engines.hosts.core.journal import JournalReader
from oarsman.engines.hosts.core.journal_state import HostSeen, Seen
from oarsman.engines.hosts.core.process import ProcessId
from oarsman.store.samples import Moment, Sample, Series

log = logging.getLogger("oarsman")
EVERY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Counters:
    """What only ever grows; two of these make a rate."""

    time: float
    seconds: float
    traffic: tuple[int, int] | None


@dataclass(slots=True)
class _Sampled:
    """A job that is looked at."""

    reader: JournalReader
    series: Series
    taken_up: bool  # an earlier supervisor has sampled it
    seen: Seen = field(default_factory=Seen)
    before: dict[ProcessId, _Counters] = field(default_factory=dict)

    def hosts(self) -> list[HostSeen]:
        for fact in self.reader.news():
            self.seen.learn(fact)
        living = living_hosts(self.seen)
        for gone in self.before.keys() - {host.process for host in living}:
            del self.before[gone]
        return living


class Sampler:
    def __init__(
        self,
        job_folder: Callable[[str], Path],
        *,
        every: float = EVERY_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.every = every
        self._job_folder = job_folder
        self._now = now
        self._jobs: dict[str, _Sampled] = {}

    def look(self, running: Collection[str]) -> None:
        """Sample these jobs, as far as it is time. Trouble with one of them costs its sample and nothing else."""
        for gone in self._jobs.keys() - set(running):
            del self._jobs[gone]
        now = round(self._now(), 3)
        due: dict[str, list[HostSeen]] = {}
        for uid in running:
            with contextlib.suppress(OSError):
                hosts = self._due(uid, now)
                if hosts:
                    due[uid] = hosts
        if not due:
            return
        specs = {uid: find_spec(self._job_folder(uid)) for uid in due}
        elsewhere = {uid: spec for uid, spec in specs.items() if spec is not None and spec.elsewhere}
        here = [uid for uid in due if uid not in elsewhere]
        held = {uid: _gpus(specs[uid]) for uid in here}
        table = ProcessTable() if here else None
        gpus = gpus_in_use() if any(held.values()) else {}
        for uid, hosts in due.items():
            try:
                if table is not None and uid in held:
                    self._sample(self._jobs[uid], hosts, now, table, held[uid], gpus)
                else:
                    self._note(self._jobs[uid], hosts, now, usage.told(elsewhere[uid]))
            except OSError as error:  # a full disk, or the job was deleted this moment
                log.warning("%s: its usage is not noted: %s", uid, error)

    def _due(self, uid: str, now: float) -> list[HostSeen]:
        job = self._jobs.get(uid)
        if job is None:
            folder = self._job_folder(uid)
            series = Series(folder, self.every)
            job = _Sampled(JournalReader(str(folder)), series, taken_up=series.last is not None)
            self._jobs[uid] = job
        return job.hosts() if job.series.due(now) else []

    def _sample(
        self,
        job: _Sampled,
        hosts: Sequence[HostSeen],
        now: float,
        table: ProcessTable,
        held: Mapping[str, Sequence[str]],
        gpus: Mapping[str, GpuUse],
    ) -> None:
        samples: dict[str, Sample] = {}
        for host in hosts:
            totals = table.below(host.process.pid)
            counters = _Counters(now, totals.seconds, traffic(host.process.pid))
            before = job.before.get(host.process)
            if before is None and not job.taken_up:
                before = _Counters(host.made_at.timestamp(), 0.0, (0, 0))
            job.before[host.process] = counters
            if before is not None:
                own = [gpus[device] for device in held.get(host.name, ()) if device in gpus]
                samples[host.name] = _sample(before, counters, totals.memory_bytes, own)
        job.taken_up = False  # hosts made from now on are known from their first moment
        if samples:
            job.series.add(Moment(now, samples))

    def _note(self, job: _Sampled, hosts: Sequence[HostSeen], now: float, told: Mapping[str, Figures]) -> None:
        """Of hosts that are other machines: what they told since the last time."""
        samples: dict[str, Sample] = {}
        for host in hosts:
            figures, before = told.get(host.name), job.before.get(host.process)
            if figures is None or (before is not None and figures.time <= before.time):
                continue
            counters = _Counters(figures.time, figures.seconds, (figures.received, figures.sent))
            if before is None and not job.taken_up:
                before = _Counters(host.made_at.timestamp(), 0.0, None)  # of its machine more came and went than ours
            job.before[host.process] = counters
            if before is not None:
                samples[host.name] = _sample(before, counters, figures.memory_bytes, ())
        job.taken_up = job.taken_up and not told
        if samples:
            job.series.add(Moment(now, samples))


def _gpus(spec: JobSpec | None) -> Mapping[str, Sequence[str]]:
    held = spec.gpus if spec is not None else {}
    return {host: devices for host, devices in held.items() if devices}


def _sample(before: _Counters, now: _Counters, memory: int, gpus: Sequence[GpuUse]) -> Sample:
    elapsed = max(now.time - before.time, 0.001)
    received = sent = None
    if now.traffic is not None and before.traffic is not None:
        received, sent = (
            round(max(0, after - then) / elapsed, 1) for after, then in zip(now.traffic, before.traffic, strict=True)
        )
    return Sample(
        cpu_percent=round(100 * max(0.0, now.seconds - before.seconds) / elapsed, 1),
        memory_bytes=memory,
        received=received,
        sent=sent,
        gpu_percent=round(sum(gpu.percent for gpu in gpus) / len(gpus), 1) if gpus else None,
        gpu_memory_bytes=sum(gpu.memory_bytes for gpu in gpus) if gpus else None,
    )
