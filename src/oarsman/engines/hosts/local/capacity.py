"""What this machine has to give: CPUs, memory and GPUs."""

from __future__ import annotations

import contextlib
import os
import subprocess
from decimal import Decimal
from functools import lru_cache

import psutil

from oarsman.engines.hosts.core import limits
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.placement import Machine


def measure() -> Machine:
    has = Capacity(gpu=Decimal(len(gpus())), cpu=Decimal(cpu_count()), memory=Decimal(_memory()))
    return Machine(name="", capacity=has)


def cpu_count() -> int:
    """Those that a container lets us use. A job may have others of them than this process was confined to."""
    return len(limits.all_cpus()) or os.cpu_count() or 1


def _memory() -> int:
    """The smaller of what is built in and what a container lets us use."""
    total = int(psutil.virtual_memory().total)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError), open(path) as file:
            limit = file.read().strip()
            total = min(total, int(limit)) if limit.isdigit() else total
    return total


@lru_cache(maxsize=1)
def gpus() -> tuple[str, ...]:
    """The identifiers of NVIDIA devices, in the driver's order."""
    query = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in answer.stdout.splitlines() if line.strip())
