"""Limits of a host, where the machine lets us set them: control groups, version 1 or 2."""

import contextlib
import os
from collections.abc import Mapping
from typing import NamedTuple

_ROOT = "/sys/fs/cgroup"
_PERIOD_US = 100_000


class Slices(NamedTuple):
    """Folders under which groups can be made: one for version 2, one per controller for version 1."""

    version: int  # 0: none
    memory: str = ""
    cpu: str = ""


def find(pid: int | None = None) -> Slices:
    """Where that process of ours, or this one, may make groups of its own."""
    own: dict[str, str] = {}
    with contextlib.suppress(OSError), open(f"/proc/{pid or 'self'}/cgroup") as file:
        for line in file:
            _number, controllers, path = line.rstrip("\n").split(":", 2)
            own |= dict.fromkeys(controllers.split(","), path)
    if os.path.exists(f"{_ROOT}/cgroup.controllers"):
        parent = f"{_ROOT}{own.get('', '/')}".rstrip("/")
        # In version 2 a group with processes of its own cannot hand controllers down, unless it is the root.
        with contextlib.suppress(OSError), open(f"{parent}/cgroup.subtree_control") as file:
            if "memory" in file.read().split() and os.access(parent, os.W_OK):
                return Slices(2, parent, parent)
        return Slices(0)
    folders = [f"{_ROOT}/{name}{own.get(name, '/')}".rstrip("/") for name in ("memory", "cpu")]
    memory, cpu = (path if os.access(path, os.W_OK) else "" for path in folders)
    return Slices(1, memory, cpu) if memory or cpu else Slices(0)


class Group(NamedTuple):
    """The group of one host. Every method is harmless where no group could be made."""

    slices: Slices
    name: str

    def make(self, *, memory_bytes: int | None, cpus: float | None) -> list[str]:
        """Make it and set the limits; returns those that could not be set, in plain words."""
        quota = max(1000, int((cpus or 0) * _PERIOD_US))
        memory_limits: dict[str, object] = {"memory.limit_in_bytes": memory_bytes}
        cpu_limits: dict[str, object] = {"cpu.cfs_period_us": _PERIOD_US, "cpu.cfs_quota_us": quota}
        if self.slices.version == 2:
            memory_limits = {"memory.max": memory_bytes, "memory.swap.max": 0}
            cpu_limits = {"cpu.max": f"{quota} {_PERIOD_US}"}
        memory = memory_bytes is None or self._set(self.slices.memory, memory_limits)
        cpu = cpus is None or self._set(self.slices.cpu, cpu_limits)
        return ([] if memory else ["memory limit"]) + ([] if cpu else ["CPU limit"])

    def join(self) -> None:
        for folder in self._folders():
            with contextlib.suppress(OSError):
                _write(f"{folder}/cgroup.procs", str(os.getpid()))

    def out_of_memory_kills(self) -> int:
        file = "memory.events" if self.slices.version == 2 else "memory.oom_control"
        with contextlib.suppress(OSError, ValueError), open(f"{self.slices.memory}/{self.name}/{file}") as text:
            for line in text:
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        return 0

    def remove(self) -> None:
        for folder in self._folders():
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    def _set(self, parent: str, limits: Mapping[str, object]) -> bool:
        """Make the group there and set these limits, in this order; whether that could be done."""
        if not parent:
            return False
        try:
            os.makedirs(f"{parent}/{self.name}", exist_ok=True)
            for file, limit in limits.items():
                _write(f"{parent}/{self.name}/{file}", str(limit))
        except OSError:
            return False
        return True

    def _folders(self) -> list[str]:
        folders = (f"{parent}/{self.name}" for parent in {self.slices.memory, self.slices.cpu} - {""})
        return [folder for folder in folders if os.path.isdir(folder)]


def group_of(slices: Slices, uid: str, host: str) -> Group:
    return Group(slices, f"{_prefix(uid)}{host}")


def remove_all(slices: Slices, uid: str) -> None:
    """Every group of a job whose job agent can no longer do it."""
    for parent in {slices.memory, slices.cpu} - {""}:
        with contextlib.suppress(OSError):
            for name in os.listdir(parent):
                if name.startswith(_prefix(uid)):
                    Group(slices, name).remove()


def _prefix(uid: str) -> str:
    return f"oarsman-{uid[:13]}-"


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
