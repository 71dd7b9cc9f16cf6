"""What the hosts of jobs use: the process table, taken apart once for all of them.

Hosts that are other machines tell it every few seconds; what each told last is a file. What is used over time is noted
down by the supervisor in the job's folder (store/samples.py), so it outlives the supervisor and the job.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import psutil

from oarsman.engines.contract import HostUsage
from oarsman.engines.hosts.core import process
from oarsman.engines.hosts.core.job_spec import JobSpec, SshHostSpec, find_spec
from oarsman.engines.hosts.core.journal import JournalReader
from oarsman.engines.hosts.core.journal_state import HostSeen, Seen
from oarsman.engines.hosts.core.process import ProcessId
from oarsman.store import samples
from oarsman.store.samples import Moment, Sample, Series

log = logging.getLogger("oarsman")
EVERY_SECONDS = 5.0

_INTERVAL = 0.2  # two looks at the processor clocks
_GPU_QUERY = "--query-gpu=index,utilization.gpu,memory.used"
_GPU_PATIENCE = 4.0


class ProcessEntry(NamedTuple):
    """One process. `waited` is the time of children that ended and were waited for, and of theirs."""

    parent: int
    seconds: float
    waited: float
    memory_bytes: int


class Totals(NamedTuple):
    processes: int
    seconds: float  # of all that ran there so far, also of what has ended
    memory_bytes: int


class GpuUse(NamedTuple):
    percent: float
    memory_bytes: int


class ProcessTable:
    """All processes at one moment, and who descends from whom. One pass, however many hosts are asked about."""

    def __init__(self) -> None:
        self._entries = dict(_entries())
        self._children: dict[int, list[int]] = {}
        for pid, entry in self._entries.items():
            self._children.setdefault(entry.parent, []).append(pid)

    def below(self, root: int) -> Totals:
        """What runs on a host whose first process is `root`; that one itself is ours and does not count."""
        first = self._entries.get(root)
        seconds = first.waited if first is not None else 0.0
        memory = count = 0
        queue = list(self._children.get(root, ()))
        while queue:
            pid = queue.pop()
            entry = self._entries[pid]
            seconds += entry.seconds + entry.waited
            memory += entry.memory_bytes
            count += 1
            queue += self._children.get(pid, ())
        return Totals(count, seconds, memory)


def _entries() -> Iterator[tuple[int, ProcessEntry]]:
    if sys.platform != "linux":
        yield from _portable_entries()
        return
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        yield (
            int(name),
            ProcessEntry(
                parent=int(fields[1]),
                seconds=(int(fields[11]) + int(fields[12])) / tick,
                waited=(int(fields[13]) + int(fields[14])) / tick,
                memory_bytes=int(fields[21]) * page,
            ),
        )


def _portable_entries() -> Iterator[tuple[int, ProcessEntry]]:
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            times = one.cpu_times()
            yield one.pid, ProcessEntry(one.ppid(), times.user + times.system, 0.0, int(one.memory_info().rss))


def living_hosts(seen: Seen) -> list[HostSeen]:
    """The launcher's first, then the workers in order."""
    living = [host for host in seen.hosts.values() if host.down_at is None and process.alive(host.process)]
    return sorted(living, key=lambda host: (not host.launcher, host.index))


def of_job(folder: Path) -> Sequence[HostUsage]:
    """Now, from two looks."""
    seen = Seen()
    for fact in JournalReader(str(folder)).news():
        seen.learn(fact)
    living = living_hosts(seen)
    if not living:
        return []
    spec = find_spec(folder)
    elsewhere = spec if spec is not None and spec.elsewhere else None
    found: Iterable[tuple[HostSeen, Totals | Figures, float]]
    found = _as_told(folder, elsewhere, living) if elsewhere is not None else _in_two_looks(living)
    own = spec.hosts if spec is not None and elsewhere is None else {}
    return [
        HostUsage(
            host=host.name,
            role="launcher" if host.launcher else "worker",
            processes=now.processes,
            cpu_percent=round(percent, 1),
            memory_bytes=now.memory_bytes,
            memory_limit_bytes=own[host.name].memory if host.name in own else None,
            gpus=_gpus(spec, host.name),
        )
        for host, now, percent in found
    ]


def _in_two_looks(living: Sequence[HostSeen]) -> Iterator[tuple[HostSeen, Totals, float]]:
    before = ProcessTable()
    time.sleep(_INTERVAL)
    after = ProcessTable()
    for host in living:
        then, now = before.below(host.process.pid), after.below(host.process.pid)
        yield host, now, 100 * max(0.0, now.seconds - then.seconds) / _INTERVAL


def _gpus(spec: JobSpec | None, host: str) -> tuple[int, ...]:
    """The numbers of its devices, which on SSH hosts have the name of the machine before them."""
    devices = (device.rpartition(":")[2] for device in (spec.gpus.get(host, ()) if spec is not None else ()))
    return tuple(int(device) for device in devices if device.isdigit())


def traffic(pid: int) -> tuple[int, int] | None:
    """Bytes received and sent so far in the network that is this process's own; None if it shares ours."""
    try:
        if os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino:
            return None
        with open(f"/proc/{pid}/net/dev") as file:
            lines = file.readlines()[2:]
    except OSError:
        return None
    received = sent = 0
    for line in lines:
        name, _, numbers = line.partition(":")
        if name.strip() != "lo":
            fields = numbers.split()
            received += int(fields[0])
            sent += int(fields[8])
    return received, sent


def gpus_in_use() -> Mapping[str, GpuUse]:
    """Every NVIDIA device by its index; nothing where there are none, or where the driver does not answer."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return {}
    try:
        answer = subprocess.run(
            [command, _GPU_QUERY, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=_GPU_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(_gpu_lines(answer.stdout.splitlines())) if answer.returncode == 0 else {}


def _gpu_lines(lines: Iterable[str]) -> Iterator[tuple[str, GpuUse]]:
    for line in lines:
        with contextlib.suppress(ValueError):  # a device that cannot say, as some virtual ones
            index, percent, mebibytes = (word.strip() for word in line.split(","))
            yield index, GpuUse(float(percent), int(float(mebibytes) * (1 << 20)))


class Figures(NamedTuple):
    """All but the processes and their memory only ever grow; bytes are those of the whole machine."""

    time: float
    seconds: float  # of its processors, for this job
    memory_bytes: int
    processes: int
    received: int
    sent: int


def told(spec: JobSpec) -> dict[str, Figures]:
    """By host. Hosts that share a machine tell the same, and only the one in whose name all runs there counts."""
    found = {}
    for name, host in spec.hosts.items():
        leads = isinstance(host, SshHostSpec) and host.members[0][0] == name
        with contextlib.suppress(OSError, ValueError, TypeError):  # not told yet, or not all of it
            if leads:
                found[name] = _read(Path(spec.run_folder, "u", name).read_text())
    return found


def _read(line: str) -> Figures:
    time, seconds, memory, processes, received, sent = line.split()
    return Figures(float(time), float(seconds), int(memory), int(processes), int(received), int(sent))


def _as_told(folder: Path, spec: JobSpec, living: Sequence[HostSeen]) -> Iterator[tuple[HostSeen, Figures, float]]:
    """As last told; how busy processors are takes two looks, and those are the supervisor's."""
    figures = told(spec)
    newest = next(iter(deque(samples.read(folder), maxlen=1)), None)
    lately = {name: sample.cpu_percent for name, sample in newest.hosts.items()} if newest is not None else {}
    for host in living:
        if (now := figures.get(host.name)) is not None:
            since_start = 100 * now.seconds / max(now.time - host.made_at.timestamp(), 1.0)
            yield host, now, lately.get(host.name, since_start)


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

    def since(self, host: HostSeen, now: _Counters, first: tuple[int, int] | None) -> _Counters | None:
        """What was counted the last time. At first: since the host was made, unless that was before our time, with so
        much traffic then."""
        before = self.before.get(host.process)
        self.before[host.process] = now
        return before or (None if self.taken_up else _Counters(host.made_at.timestamp(), 0.0, first))


@dataclass(eq=False)
class Sampler:
    """Notes down every few seconds what running jobs use. One look at the process table serves all of them."""

    job_folder: Callable[[str], Path]
    every: float = EVERY_SECONDS
    now: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self._jobs: dict[str, _Sampled] = {}

    def look(self, running: Collection[str]) -> None:
        """Sample these jobs, as far as it is time. Trouble with one of them costs its sample and nothing else."""
        for gone in self._jobs.keys() - set(running):
            del self._jobs[gone]
        now = round(self.now(), 3)
        due: dict[str, list[HostSeen]] = {}
        for uid in running:
            with contextlib.suppress(OSError):
                hosts = self._due(uid, now)
                if hosts:
                    due[uid] = hosts
        if not due:
            return
        specs = {uid: find_spec(self.job_folder(uid)) for uid in due}
        elsewhere = {uid: spec for uid, spec in specs.items() if spec is not None and spec.elsewhere}
        here = [uid for uid in due if uid not in elsewhere]
        held = {uid: spec.gpus if (spec := specs[uid]) is not None else {} for uid in here}
        table = ProcessTable() if here else None
        gpus = gpus_in_use() if any(devices for hosts in held.values() for devices in hosts.values()) else {}
        for uid, hosts in due.items():
            try:
                if table is not None and uid in held:
                    self._sample(self._jobs[uid], hosts, now, table, held[uid], gpus)
                else:
                    self._note(self._jobs[uid], hosts, now, told(elsewhere[uid]))
            except OSError as error:  # a full disk, or the job was deleted this moment
                log.warning("%s: its usage is not noted: %s", uid, error)

    def _due(self, uid: str, now: float) -> list[HostSeen]:
        job = self._jobs.get(uid)
        if job is None:
            folder = self.job_folder(uid)
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
            if (before := job.since(host, counters, (0, 0))) is not None:
                own = [gpus[device] for device in held.get(host.name, ()) if device in gpus]
                samples[host.name] = _sample(before, counters, totals.memory_bytes, own)
        job.taken_up = False  # hosts made from now on are known from their first moment
        if samples:
            job.series.add(Moment(now, samples))

    def _note(self, job: _Sampled, hosts: Sequence[HostSeen], now: float, told: Mapping[str, Figures]) -> None:
        """Of hosts that are other machines: what they told since the last time."""
        samples: dict[str, Sample] = {}
        for host in hosts:
            figures, last = told.get(host.name), job.before.get(host.process)
            if figures is None or (last is not None and figures.time <= last.time):
                continue
            counters = _Counters(figures.time, figures.seconds, (figures.received, figures.sent))
            if (before := job.since(host, counters, None)) is not None:  # of its machine more came and went than ours
                samples[host.name] = _sample(before, counters, figures.memory_bytes, ())
        job.taken_up = job.taken_up and not told
        if samples:
            job.series.add(Moment(now, samples))


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
