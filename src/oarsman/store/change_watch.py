"""Hearing that the store was written to, by whichever process. Nobody has to be running for it.

Every write touches the database file once it can be read. The write-ahead log next to it changes a moment before that:
if no touch follows, because the writer was killed in between, one looks after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
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
    """`fileno()` becomes readable when something happened to the store, or in `folder` if one is given."""

    def __init__(self, database: Path, folder: Path | None = None) -> None:
        self._name = database.name
        self._notifier: Any = None
        self._folder_watch = -1
        self._echo_due = False
        with contextlib.suppress(ImportError, OSError):  # not Linux; or the user has too many of these already
            self._notifier = self._watch(database.parent, folder)

    def _watch(self, state: Path, folder: Path | None) -> Any:
        import inotify_simple

        changed = inotify_simple.flags.MODIFY | inotify_simple.flags.CREATE
        notifier = inotify_simple.INotify()
        try:
            notifier.add_watch(os.fspath(state), changed | inotify_simple.flags.ATTRIB)
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                self._folder_watch = notifier.add_watch(os.fspath(folder), changed)
        except OSError:
            notifier.close()
            raise
        return notifier

    def fileno(self) -> int | None:
        return self._notifier.fileno() if self._notifier is not None else None

    def patience(self) -> float | None:
        """How long one may rely on it to ring; None: for ever."""
        if self._notifier is None:
            return _LOOK_AGAIN
        return _ECHO if self._echo_due else None

    def silent(self) -> None:
        """The patience was spent and nothing came."""
        self._echo_due = False

    def heard(self) -> bool:
        """Take in what came. False: it had nothing to do with us."""
        if self._notifier is None:
            return True
        import inotify_simple

        ours = False
        for event in self._notifier.read(timeout=0):
            if event.wd in (self._folder_watch, -1):  # -1: more came than the system could keep
                ours = True
            elif event.name.startswith(self._name):
                touched = bool(event.mask & inotify_simple.flags.ATTRIB)
                ours, self._echo_due = ours or touched, not touched
        return ours

    def close(self) -> None:
        if self._notifier is not None:
            self._notifier.close()
            self._notifier = None
