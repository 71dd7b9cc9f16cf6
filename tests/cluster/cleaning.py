"""Removes every trace of a cluster: what runs, its control groups, its cable, its folder. What is cached stays.

python -m cluster.cleaning NAME    waits until its owner is gone, by the end of a pipe, and then removes the cluster
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

from cluster import cgroups, network
from cluster.places import running, try_lock
from cluster.world import end, started


def group_of(name: str) -> str:
    return f"oarsman-{_owner()}-{name}"


def link_of(name: str) -> str:
    return f"o{_owner()}-{name}"  # the kernel allows fifteen letters


def _owner() -> str:
    """Tells clusters of the same name apart that lie in different caches: nobody removes another's."""
    return hashlib.sha256(str(running()).encode()).hexdigest()[:4]


def alive(name: str) -> list[int]:
    """The first processes of the cluster's worlds, as they noted themselves in its folder."""
    found = []
    for file in (running() / name).glob("*/init"):
        pid, birth = file.read_text().split()
        if started(int(pid)) == birth:
            found.append(int(pid))
    return found


def remove(name: str) -> None:
    """May be said at any time and any number of times."""
    for pid in alive(name):
        end(pid)
    cgroups.remove(group_of(name))
    network.unlink(link_of(name))
    shutil.rmtree(running() / name, ignore_errors=True)


def sweep() -> None:
    """Clusters whose owner and whose cleaner were both killed: nobody holds their lock, no world of theirs lives."""
    for folder in running().iterdir():
        if folder.is_dir() and not alive(folder.name) and (lock := try_lock(lock_of(folder.name))):
            remove(folder.name)
            lock.close()


def lock_of(name: str) -> Path:
    return running() / f"{name}.lock"


if __name__ == "__main__":
    sys.stdin.buffer.read()
    remove(sys.argv[1])
