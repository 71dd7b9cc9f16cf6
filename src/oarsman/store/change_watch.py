"""Hearing that the store was written to, by whichever process. Nobody has to be running for it.

Every write touches the database file once it can be read. The write-ahead log next to it changes a moment before that:
if no touch follows, because the writer was killed in between, one looks after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from pathlib import Path
from typing import Any

_LOOK_AGAIN = 0.25  # where the system cannot tell us
_ECHO = 1.0  # how long a touch may take to follow a write


async def readable(*descriptors: int, within: float | None = None) -> set[int]:
    """Those that can be read from, once there are any; none when the time is up."""
    loop, found, heard = asyncio.get_running_loop(), set[int](), asyncio.Event()

    def hear(descriptor: int) -> None:
        found.add(descriptor)
        heard.set()

    for descriptor in descriptors:
        loop.add_reader(descriptor, hear, descriptor)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await heard.wait()
    finally:
        for descriptor in descriptors:
            loop.remove_reader(descriptor)
    return found


class ChangeWatch:
    """`fileno()` becomes readable when something happened to the store, or in a folder that was added."""

    def __init__(self, database: Path) -> None:
        self._name = database.name
        self._notifier: Any = None
        self._folders: Counter[int] = Counter()
        self._blind = True
        self._echo_due = False
        with contextlib.suppress(ImportError, OSError):  # not Linux; or the user has too many of these already
            import inotify_simple

            self._changed = inotify_simple.flags.MODIFY | inotify_simple.flags.CREATE
            self._touched = inotify_simple.flags.ATTRIB
            self._notifier = inotify_simple.INotify()
            self._notifier.add_watch(os.fspath(database.parent), self._changed | self._touched)
            self._blind = False

    def add(self, folder: Path) -> int:
        """A number for the folder, which is made if need be."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            watch: int = self._notifier.add_watch(os.fspath(folder), self._changed)
        except (AttributeError, OSError):  # the system cannot tell us, or not of so many
            self._blind = True
            return -1
        self._folders[watch] += 1
        return watch

    def remove(self, watch: int) -> None:
        self._folders[watch] -= 1
        if self._folders[watch] <= 0:
            del self._folders[watch]
            if self._notifier is not None:
                with contextlib.suppress(OSError):  # the folder is gone
                    self._notifier.rm_watch(watch)

    def fileno(self) -> int | None:
        return self._notifier.fileno() if self._notifier is not None else None

    def patience(self) -> float | None:
        """How long one may rely on it to ring; None: for ever."""
        if self._blind:
            return _LOOK_AGAIN
        return _ECHO if self._echo_due else None

    def silent(self) -> None:
        """The patience was spent and nothing came."""
        self._echo_due = False

    def heard(self) -> tuple[bool, set[int]]:
        """Take in what came: whether the store was written to, and the folders in which something happened."""
        store, folders = False, set[int]()
        for event in self._notifier.read(timeout=0) if self._notifier is not None else ():
            if event.wd == -1:  # more came than the system could keep
                store = True
            elif event.wd in self._folders:
                folders.add(event.wd)
            elif event.name.startswith(self._name):
                touched = bool(event.mask & self._touched)
                store, self._echo_due = store or touched, not touched
        return store, folders

    def close(self) -> None:
        if self._notifier is not None:
            self._notifier.close()
            self._notifier = None
