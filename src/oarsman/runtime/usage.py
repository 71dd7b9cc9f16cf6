"""What the hosts of a job use right now, read from the process table."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from oarsman.engines.bare import process
from oarsman.engines.bare.journal import JournalReader
from oarsman.engines.bare.seen import HostSeen, Seen
from oarsman.engines.bare.specification import read_spec
from oarsman.runtime.jobs import HostUsage

_INTERVAL = 0.2  # two looks at the processor clocks


def of_job(folder: Path) -> Sequence[HostUsage]:
    seen = Seen()
    for fact in JournalReader(str(folder)).news():
        seen.learn(fact)
    living = [host for host in seen.hosts.values() if host.down_at is None and process.alive(host.process)]
    trees = {host.name: _tree(host) for host in living}
    before = {name: _cpu_time(tree) for name, tree in trees.items()}
    time.sleep(_INTERVAL if living else 0)
    limits = _limits(folder)
    return [
        HostUsage(
            host=host.name,
            role="launcher" if host.launcher else "worker",
            processes=len(trees[host.name]),
            cpu_percent=round(100 * max(0.0, _cpu_time(trees[host.name]) - before[host.name]) / _INTERVAL, 1),
            memory_bytes=sum(_memory(one) for one in trees[host.name]),
            memory_limit_bytes=limits.get(host.name, (None, ()))[0],
            gpus=limits.get(host.name, (None, ()))[1],
        )
        for host in sorted(living, key=lambda host: (not host.launcher, host.index))
    ]


def _tree(host: HostSeen) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(host.process.pid).children(recursive=True)
    return []


def _cpu_time(tree: Sequence[psutil.Process]) -> float:
    total = 0.0
    for one in tree:
        with contextlib.suppress(psutil.Error):
            times = one.cpu_times()
            total += times.user + times.system
    return total


def _memory(one: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(one.memory_info().rss)
    return 0


def _limits(folder: Path) -> dict[str, tuple[int | None, tuple[int, ...]]]:
    try:
        spec = read_spec(str(folder))
    except (OSError, ValueError):
        return {}
    gpus = spec.get("gpus", {})
    return {
        name: (host["memory"], tuple(int(device) for device in gpus.get(name, ()) if str(device).isdigit()))
        for name, host in spec["hosts"].items()
    }
