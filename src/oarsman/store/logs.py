"""Reading the logs of a job: the merged file of an attempt, filtered, from its end if wanted, followed if wanted."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

MERGED = "merged.log"
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLine:
    time: datetime
    rank: int | None
    host: str
    stream: str
    text: str


def attempts(folder: Path) -> list[int]:
    logs = folder / "logs"
    if not logs.is_dir():
        return []
    return sorted(
        int(entry.name.removeprefix("attempt-")) for entry in logs.iterdir() if entry.name.startswith("attempt-")
    )


def merged_path(folder: Path, attempt: int) -> Path:
    return folder / "logs" / f"attempt-{attempt}" / MERGED


def parse(line: bytes) -> StoredLine | None:
    """One merged line; None for one torn by a full disk."""
    parts = line.decode(errors="replace").rstrip("\n").split(" ", 4)
    if len(parts) != 5:
        return None
    try:
        time = datetime.fromisoformat(parts[0].replace("Z", "+00:00"))
        rank = None if parts[1] == "-" else int(parts[1])
    except ValueError:
        return None
    return StoredLine(time=time, rank=rank, host=parts[2], stream=parts[3], text=parts[4].rstrip("\r"))


def read(path: Path, *, wanted: Callable[[StoredLine], bool], tail: int | None = None) -> Iterator[StoredLine]:
    lines = (line for line in map(parse, _raw_lines(path)) if line is not None and wanted(line))
    return iter(deque(lines, maxlen=tail)) if tail is not None else lines


def _raw_lines(path: Path) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            yield from file
    except FileNotFoundError:
        return


class Follower:
    """The lines added to a merged log since the last look, and a descriptor that says when to look again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""
        self._notifier = _notifier_on(path.parent)

    def news(self) -> Iterator[StoredLine]:
        while block := self._read():
            complete, _, self._rest = (self._rest + block).rpartition(b"\n")
            for raw in complete.split(b"\n") if complete else []:
                line = parse(raw)
                if line is not None:
                    yield line

    def _read(self) -> bytes:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                block = file.read(_BLOCK)
        except FileNotFoundError:
            return b""
        self._offset += len(block)
        return block

    def fileno(self) -> int | None:
        """Becomes readable when the log grows; None where the system cannot say, and the caller has to look."""
        return self._notifier.fileno() if self._notifier is not None else None

    def acknowledge(self) -> None:
        if self._notifier is not None:
            self._notifier.read(timeout=0)

    def close(self) -> None:
        if self._notifier is not None:
            self._notifier.close()


def _notifier_on(folder: Path) -> Any:
    """Watches the folder, because the file itself may not be there yet."""
    try:
        import inotify_simple
    except ImportError:  # not Linux
        return None
    folder.mkdir(parents=True, exist_ok=True)
    notifier = inotify_simple.INotify()
    notifier.add_watch(os.fspath(folder), inotify_simple.flags.MODIFY | inotify_simple.flags.CREATE)
    return notifier
