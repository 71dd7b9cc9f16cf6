"""Limits of a host, where the machine lets us set them: control groups, version 1 or 2."""

import contextlib
import os
from typing import NamedTuple

_ROOT = "/sys/fs/cgroup"
_PERIOD_US = 100_000


class Slices(NamedTuple):
    """Folders under which groups can be made: one for version 2, one per controller for version 1."""

    version: int  # 0: none
    memory: str = ""
    cpu: str = ""


def find() -> Slices:
    """Where this process may make groups of its own."""
    own = _own_groups()
    if os.path.exists(f"{_ROOT}/cgroup.controllers"):
        parent = f"{_ROOT}{own.get('', '/')}".rstrip("/")
        ours = os.access(parent, os.W_OK) and _enables_children(parent)
        return Slices(2, parent, parent) if ours else Slices(0)
    folders = [f"{_ROOT}/{name}{own.get(name, '/')}".rstrip("/") for name in ("memory", "cpu")]
    memory, cpu = (path if os.access(path, os.W_OK) else "" for path in folders)
    return Slices(1, memory, cpu) if memory or cpu else Slices(0)


def _enables_children(parent: str) -> bool:
    """In version 2 a group with processes of its own cannot hand controllers down, unless it is the root."""
    with contextlib.suppress(OSError), open(f"{parent}/cgroup.subtree_control") as file:
        return "memory" in file.read().split()
    return False


def _own_groups() -> dict[str, str]:
    groups: dict[str, str] = {}
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as file:
        for line in file:
            _number, controllers, path = line.rstrip("\n").split(":", 2)
            for controller in controllers.split(","):
                groups[controller] = path
    return groups


class Group(NamedTuple):
    """The group of one host. Every method is harmless where no group could be made."""

    slices: Slices
    name: str

    def make(self, *, memory_bytes: int | None, cpus: float | None) -> list[str]:
        """Make it and set the limits; returns those that could not be set, in plain words."""
        missing = []
        if memory_bytes is not None and not self._limit_memory(memory_bytes):
            missing.append("memory limit")
        if cpus is not None and not self._limit_cpus(cpus):
            missing.append("CPU limit")
        return missing

    def join(self) -> None:
        for folder in self._folders():
            with contextlib.suppress(OSError):
                _write(f"{folder}/cgroup.procs", str(os.getpid()))

    def out_of_memory_kills(self) -> int:
        file = "memory.events" if self.slices.version == 2 else "memory.oom_control"
        with contextlib.suppress(OSError, ValueError), open(f"{self._folder(self.slices.memory)}/{file}") as text:
            for line in text:
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        return 0

    def remove(self) -> None:
        for folder in self._folders():
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    def _limit_memory(self, memory_bytes: int) -> bool:
        folder = self._folder(self.slices.memory)
        if not folder:
            return False
        try:
            os.makedirs(folder, exist_ok=True)
            if self.slices.version == 2:
                _write(f"{folder}/memory.max", str(memory_bytes))
                _write(f"{folder}/memory.swap.max", "0")
            else:
                _write(f"{folder}/memory.limit_in_bytes", str(memory_bytes))
        except OSError:
            return False
        return True

    def _limit_cpus(self, cpus: float) -> bool:
        folder = self._folder(self.slices.cpu)
        if not folder:
            return False
        quota = max(1000, int(cpus * _PERIOD_US))
        try:
            os.makedirs(folder, exist_ok=True)
            if self.slices.version == 2:
                _write(f"{folder}/cpu.max", f"{quota} {_PERIOD_US}")
            else:
                _write(f"{folder}/cpu.cfs_period_us", str(_PERIOD_US))
                _write(f"{folder}/cpu.cfs_quota_us", str(quota))
        except OSError:
            return False
        return True

    def _folder(self, parent: str) -> str:
        return f"{parent}/{self.name}" if parent else ""

    def _folders(self) -> list[str]:
        folders = {self._folder(self.slices.memory), self._folder(self.slices.cpu)} - {""}
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
