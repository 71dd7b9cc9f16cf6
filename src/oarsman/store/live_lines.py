"""Lines that have not ended yet: a prompt, a progress bar. Each is what a rank wrote after its last line.

They are read from the bytes that are kept of every rank and stream, so that whoever writes a log has no more to do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from oarsman.store.logs import LogLine

_NAME = re.compile(r"(launcher|rank-([0-9]+))\.(out|err)")
_TAIL = 4096  # bytes: more than a terminal shows of one line


class LiveLines(list[LogLine]):
    """All there are at this moment, in the order of ranks; they take the place of those before."""

    def same(self, other: LiveLines) -> bool:
        """Whatever the time is."""
        return [line[1:] for line in self] == [line[1:] for line in other]


class LiveReader:
    """Of one attempt. A file is read again only when it has changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[int, str]] = {}  # name -> size, text

    def now(self, stamp: str, hosts: Mapping[int | None, str]) -> LiveLines:
        """hosts: by rank; None: the launcher's. Of a rank that is not there nothing is shown yet."""
        found = LiveLines()
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if (name := _NAME.fullmatch(entry.name)) is None or not (text := self._text(entry)):
                    continue
                rank = int(name[2]) if name[2] else None
                if rank in hosts:
                    found.append(LogLine(stamp, rank, hosts[rank], name[3], text))
        found.sort(key=lambda line: (-1 if line.rank is None else line.rank, line.stream))
        return found

    def _text(self, entry: os.DirEntry[str]) -> str:
        size = entry.stat().st_size
        known = self._known.get(entry.name)
        if known is None or known[0] != size:
            known = self._known[entry.name] = (size, _last_of(entry.path, size))
        return known[1]


def _last_of(path: str, size: int) -> str:
    with open(path, "rb") as file:
        file.seek(max(0, size - _TAIL))
        line = file.read(_TAIL).rpartition(b"\n")[2].rstrip(b"\r")
    return line.rpartition(b"\r")[2].decode(errors="replace")
