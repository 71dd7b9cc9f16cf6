"""One job agent per job: it holds a lock in the job's folder, from before its first deed until it is gone.

One that was slow to start may find that another took its place. The lock is that of a process: the hosts, which are
its children, do not hold it when it was killed.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from oarsman.text.sentence import Text

FILE = "agent.lock"
TAKEN = Text("another job agent of this job is starting or ending")


def hold(folder: str) -> int | None:
    """What to close to let it go, which the end of this process does as well; None if another process holds it."""
    fd = os.open(f"{folder}/{FILE}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # systems differ in what they call it
        os.close(fd)
        return None
    return fd


@contextlib.contextmanager
def no_agent(folder: str) -> Iterator[bool]:
    """Whether there is no job agent; then there will be none for as long as this lasts."""
    try:
        fd = hold(folder)
    except FileNotFoundError:  # the job was never prepared
        yield True
        return
    try:
        yield fd is not None
    finally:
        if fd is not None:
            os.close(fd)
