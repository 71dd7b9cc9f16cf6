"""Processes: which have ended, who descends from whom, and signalling nothing that is not ours.

A process is named by its pid and its start time together; a pid alone may belong to somebody else
by the time it is signalled.
"""

import contextlib
import functools
import os
import signal
import sys
from collections.abc import Collection, Iterator
from typing import NamedTuple


class ProcessId(NamedTuple):
    pid: int
    started: str  # kernel ticks since boot, and the boot; opaque


def identify(pid: int) -> ProcessId | None:
    """The process that has this pid now, unless it is gone or only waits to be reaped."""
    if sys.platform != "linux":
        state, _, started = _ps("-o", "stat=,lstart=", "-p", str(pid)).strip().partition(" ")
        return ProcessId(pid, started.strip()) if started and not state.startswith("Z") else None
    fields = _stat(pid)
    if fields is None or fields[0] in ("Z", "X"):
        return None
    return ProcessId(pid, f"{fields[19]}@{_boot_id()}")


def alive(process: ProcessId) -> bool:
    return identify(process.pid) == process


def send_signal(process: ProcessId, number: int) -> bool:
    """Signal it if it is still the same process. A pidfd closes the gap between look and kill."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if not hasattr(os, "pidfd_open"):
            if alive(process):
                os.kill(process.pid, number)
                return True
            return False
        fd = os.pidfd_open(process.pid)
        try:
            if alive(process):
                signal.pidfd_send_signal(fd, number)
                return True
        finally:
            os.close(fd)
    return False


def wake_pipe() -> int:
    """Its end can be read when a signal came, also that of a child's end: who waits for several things wakes up."""
    read, write = os.pipe()
    for fd in (read, write):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read


def drain(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(fd, 4096)


def ended_children() -> Iterator[tuple[int, int]]:
    """Pid and wait status of each, once."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended


def close_all_but(kept: Collection[int]) -> None:
    """Of the files that are open here; not the usual three."""
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd not in kept:
            with contextlib.suppress(OSError):  # that of the list itself
                os.close(fd)


def restore_signals() -> None:
    """Before an exec: what Python and we ignore or catch is nobody else's affair, and what is ignored would stay so."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)


def stopped(pid: int) -> bool:
    """Whether it is halted (SIGSTOP, a debugger) and so silent."""
    return _state(pid) in ("T", "t")


def wants_to_run(pid: int) -> bool:
    """Whether it has something to do, and waits for a processor or for memory to do it."""
    return _state(pid) in ("R", "D")


def descendants(root: int, without: Collection[int] = ()) -> list[int]:
    """Everything below this process, whichever group or session it moved to; not what is `without`, or below that."""
    if os.path.isdir("/proc/self"):
        stats = ((name, _stat(int(name))) for name in os.listdir("/proc") if name.isdigit())
        parents = [(name, fields[1]) for name, fields in stats if fields is not None]
    else:
        parents = [(pid, parent) for pid, parent in map(str.split, _ps("-axo", "pid=,ppid=").splitlines())]
    children: dict[int, list[int]] = {}
    for pid, parent in parents:
        if int(pid) not in without:
            children.setdefault(int(parent), []).append(int(pid))
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def _ps(*words: str) -> str:
    import subprocess  # not on Linux, and every rank would pay for it

    return subprocess.run(["ps", *words], capture_output=True, text=True).stdout


def _stat(pid: int) -> list[str] | None:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()
    return None


def _state(pid: int) -> str:
    return (_stat(pid) or [""])[0]


@functools.cache
def _boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
