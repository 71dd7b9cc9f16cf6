"""After a keeper was killed: nothing of its job may stay behind.

With process namespaces the kernel has already ended everything. Without them processes are found
again by the mark each of them carries in its environment.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

import psutil

from oarsman import names
from oarsman.engines.bare import cgroups, process
from oarsman.engines.bare.cgroups import Slices
from oarsman.engines.bare.seen import Seen
from oarsman.engines.bare.specification import read_spec

_END_WITHIN = 5.0  # what was killed takes a moment to be gone


def clear_up(uid: str, seen: Seen, folder: Path, run_folder: Path) -> None:
    for host in seen.hosts.values():
        process.send_signal(host.process, signal.SIGKILL)
    for found in marked(uid):
        with contextlib.suppress(psutil.Error):
            found.kill()  # psutil compares start times first
    deadline = time.monotonic() + _END_WITHIN
    while any(process.alive(host.process) for host in seen.hosts.values()) and time.monotonic() < deadline:
        time.sleep(0.02)
    with contextlib.suppress(OSError, ValueError):
        cgroups.remove_all(Slices(**read_spec(str(folder))["cgroups"]), uid)
    shutil.rmtree(run_folder, ignore_errors=True)


def marked(uid: str) -> list[psutil.Process]:
    """Every process of ours that carries the job's mark."""
    found = []
    me = os.getpid()
    for candidate in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if candidate.pid != me and candidate.environ().get(names.ENV_JOB) == uid:
                found.append(candidate)
    return found
