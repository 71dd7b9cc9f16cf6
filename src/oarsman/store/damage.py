"""What is wrong with a file of SQLite, and how to go on."""

from __future__ import annotations

import shlex
import sqlite3
from pathlib import Path

from oarsman.errors import StoreError
from oarsman.text.sentence import Text

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_NOT_OURS = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)


def explained(path: Path, error: Exception) -> StoreError:
    kind = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what SQLite adds to it
    if kind in _DAMAGED:
        command = f"sqlite3 {shlex.quote(str(path))} .recover | sqlite3 {shlex.quote(f'{path}.new')}"
        hint = Text(
            "logs and journals of jobs are in other files. End what uses it (oarsman supervisor stop, oarsman serve), "
            "copy its folder, and see what can be saved: {command}; put the new file in its place, or begin anew",
            command=command,
        )
        return StoreError(Text("{path} is damaged, or no database of SQLite: {why}", path=path, why=error), hint=hint)
    message = Text("{path} cannot be used: {why}", path=path, why=error)
    if kind in _LOCKED:
        return StoreError(message, hint=Text("another process keeps it locked; fuser {path} shows which", path=path))
    if kind in _NO_ROOM:
        return StoreError(message, hint=Text("make room on the disk that holds {path}", path=path.parent))
    if kind in _NOT_OURS or isinstance(error, OSError):
        hint = Text("make {path} and its contents writable, or set OARSMAN_STATE to another folder", path=path.parent)
        return StoreError(message, hint=hint)
    return StoreError(message)
