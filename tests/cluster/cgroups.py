"""Control groups of a node: a folder of its own in every hierarchy, for two kubelets in one kill each other's pods."""

from __future__ import annotations

import os
import time
from pathlib import Path

HIERARCHIES = Path("/sys/fs/cgroup")


def unified() -> bool:
    return (HIERARCHIES / "cgroup.controllers").exists()


def _hierarchies() -> list[Path]:
    if unified():
        return [HIERARCHIES]
    return [path for path in HIERARCHIES.iterdir() if path.is_dir() and not path.is_symlink() and path.is_mount()]


def make(group: str) -> None:
    for hierarchy in _hierarchies():
        folder = hierarchy
        for name in group.strip("/").split("/"):
            above, folder = folder, folder / name
            folder.mkdir(exist_ok=True)
            # A new folder of cpuset allows no CPU at all until it is told which.
            for file in ("cpuset.cpus", "cpuset.mems"):
                if not unified() and (folder / file).exists() and not (folder / file).read_text().strip():
                    (folder / file).write_text((above / file).read_text())
            if unified():
                controllers = (above / "cgroup.controllers").read_text().split()
                (above / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def remove(group: str, patience: float = 60.0) -> None:
    """From the bottom up; the kernel needs a moment to let go of processes that were just killed."""
    deadline = time.monotonic() + patience
    for hierarchy in _hierarchies():
        for folder, _, _ in os.walk(hierarchy / group.strip("/"), topdown=False):
            while True:
                try:
                    os.rmdir(folder)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.01)


def left(group: str) -> list[Path]:
    return [path for hierarchy in _hierarchies() if (path := hierarchy / group.strip("/")).exists()]
