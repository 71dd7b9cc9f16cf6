"""Where the cluster keeps things: what is slow to make in the user's cache, what a running cluster needs beside it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def cache() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oarsman"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def running() -> Path:
    """One folder per running cluster, one lock file per name."""
    folder = cache() / "clusters"
    folder.mkdir(exist_ok=True)
    return folder


def try_lock(path: Path) -> IO[str] | None:
    """The lock, held as long as the file is open here or in a process that inherited it; None if another has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def say(words: str) -> None:
    print(f"==> cluster: {words}", flush=True)
