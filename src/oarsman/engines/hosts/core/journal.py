"""The journal of a job: what its job agent saw, one JSON line per fact, only ever added to.

It is the truth about a running job. The supervisor reads it, may die, and reads it again; nothing
the job agent noted is lost with either of them.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from oarsman.text.sentence import Text, dump

RESERVE_BYTES = 1 << 20


class Journal:
    """The writing side. While it is open a reserve is kept on the disk, so that a full disk can still be reported."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "journal.jsonl")
        self._reserve = os.path.join(folder, "reserve")
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not os.path.exists(self._reserve):
            with contextlib.suppress(OSError), open(self._reserve, "wb") as file:
                file.write(bytes(RESERVE_BYTES))

    def close(self) -> None:
        os.close(self._fd)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._reserve)

    def note(self, event: str, **facts: Any) -> None:
        line = _line(event, facts)
        try:
            if os.write(self._fd, line) == len(line):
                return
            line = b"\n" + line  # the disk became full in the middle of it: what is there stays a torn line
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._reserve)
        os.write(self._fd, line)


def add_note(folder: str, event: str, **facts: Any) -> None:
    """One fact from somebody other than the job agent."""
    path = os.path.join(folder, "journal.jsonl")
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, _line(event, facts))
    finally:
        os.close(fd)


def _line(event: str, facts: Mapping[str, Any]) -> bytes:
    told = {name: dump(fact) if isinstance(fact, Text) else fact for name, fact in facts.items()}
    return json.dumps({"t": time.time(), "e": event, **told}, separators=(",", ":")).encode() + b"\n"


class JournalReader:
    """The reading side: what was added since the last look. A half-written line waits for its end."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "journal.jsonl")
        self._offset = 0

    def news(self) -> Iterator[dict[str, Any]]:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            with contextlib.suppress(ValueError):  # a line torn by a full disk
                yield json.loads(line)
