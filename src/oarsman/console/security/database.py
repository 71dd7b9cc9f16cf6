"""The console's own file: who may come in, apart from the jobs; and who did what, from where."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import TypeVar

from oarsman.errors import StoreError, ThrottledError, UsageError
from oarsman.service.models import AuditEntry, AuditPage, Value
from oarsman.store.damage import explained
from oarsman.text.sentence import Text

_SCHEMAS = ("schema.sql", "schema-2.sql", "schema-3.sql")  # one per version, each made of the one before
_SCHEMA_VERSION = len(_SCHEMAS)
KEPT = 100_000  # entries of the audit log; the schema refuses to delete what is younger
REFUSALS_A_MINUTE = 10  # told one by one: a week of nothing else until all of them are gone
OFTEN_AN_HOUR = 500  # of one person and kind, of what costs next to nothing to do: four days until all are gone
_LONGEST = 300
V = TypeVar("V", bound=Value)


class Database:
    """One connection for changes by all threads of a process, one at a time; other processes wait for the file. Another
    one reads, which never waits for it: an event loop does not stand still while somebody else writes.

    Every change is a transaction, and what belongs together (a deed and its entry in the audit log) shares one.
    """

    def __init__(self, path: Path) -> None:
        self._lock, self._reading = threading.RLock(), threading.Lock()
        self._writer: int | None = None  # the thread whose transaction is open
        self._path = path
        try:
            os.close(
                os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            )  # never readable by others, not even at first
            path.chmod(0o600)
            self._db, self._reader = _connect(path), _connect(path)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")  # what was revoked stays revoked, after a power cut too
            self._db.execute("PRAGMA foreign_keys = ON")
            self._db.execute("PRAGMA secure_delete = ON")  # an old password's hash does not stay in free pages
            with self.transaction():
                self._migrate()
        except (sqlite3.Error, OSError) as error:
            raise explained(path, error) from error

    def _migrate(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > _SCHEMA_VERSION:
            raise StoreError(
                Text(
                    "the accounts were written by a newer Oarsman (schema {theirs}, this one knows {ours})",
                    theirs=version,
                    ours=_SCHEMA_VERSION,
                ),
                hint=Text("upgrade oarsman, or point OARSMAN_STATE to another folder"),
            )
        for name in _SCHEMAS[version:]:
            for statement in resources.files(__package__).joinpath(name).read_text().split(";\n"):
                if statement.strip():
                    self._db.execute(statement)
        self._db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Whole or not at all. Inside another one of the same thread it becomes part of that."""
        with self._lock:
            if self._db.in_transaction:
                yield self._db
                return
            try:
                self._db.execute("BEGIN IMMEDIATE")
                self._writer = threading.get_ident()
                yield self._db
                self._db.execute("COMMIT")
            except BaseException as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.IntegrityError):
                    raise explained(self._path, error) from error
                raise
            finally:
                self._writer = None

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[sqlite3.Row]:
        mine = self._writer == threading.get_ident()
        try:
            with self._lock if mine else self._reading:
                return (self._db if mine else self._reader).execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise explained(self._path, error) from error

    def row(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Row | None:
        found = self.rows(statement, values)
        return found[0] if found else None

    def close(self) -> None:
        with self._lock, self._reading:
            self._db.close()
            self._reader.close()


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    db.row_factory = sqlite3.Row
    return db


def hashed(secret: str) -> bytes:
    """Of secrets that are 256 random bits: nothing can be guessed from it, so it needs neither salt nor slowness."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def text(moment: datetime) -> str:
    """Of one length, so that texts compare as the moments do."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


moment = datetime.fromisoformat


def read(model: type[V], row: sqlite3.Row) -> V:
    """Columns are called as the fields of the model are; it knows how to read their texts and numbers."""
    return model.model_validate({name: row[name] for name in model.model_fields})


class Kept:
    """What is kept in some tables of the file."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now


class Audit(Kept):
    """Entries are only added; the oldest make room for new ones beyond a bound.

    Who is not in can only add refusals, a few in a minute, and who is in their own comings and tokens, some hundreds an
    hour: what was done stays in the log for days, whatever they try.
    """

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        super().__init__(database, now)
        self._lock = threading.Lock()
        self._minute, self._told = now(), 0
        self._untold, self._untold_from = 0, set[str]()
        self._hour, self._often = now(), Counter[tuple[str, str]]()

    def refuse_too_often(self, who: str, what: str) -> None:
        """Before it is done. Otherwise whoever may log in could push out what others did, in minutes."""
        with self._lock:
            if self._now() - self._hour >= timedelta(hours=1):
                self._hour, self._often = self._now(), Counter()
            if self._often[who, what] >= OFTEN_AN_HOUR:
                raise ThrottledError(
                    Text("this was done too often"), retry_after=3600.0, hint=Text("try again in an hour")
                )
            self._often[who, what] += 1

    def refused(self, who: str, address: str, what: str, about: str = "") -> None:
        """To somebody who is not in. Those beyond the first few of a minute are one entry, before the next one."""
        with self._lock:
            if self._now() - self._minute >= timedelta(minutes=1):
                self._minute, self._told = self._now(), 0
            if self._told >= REFUSALS_A_MINUTE:
                self._untold += 1
                self._untold_from.add(address)
                return
            self._told += 1
        self.note(who, address, what, about, "refused")

    def note(self, who: str, address: str, what: str, about: str = "", outcome: str = "ok") -> None:
        with self._database.transaction():
            self.tell_all()
            self._add(who, address, what, about, outcome)

    def tell_all(self) -> None:
        with self._lock:
            count, places = self._untold, self._untold_from
            self._untold, self._untold_from = 0, set()
        if count:
            address = places.pop() if len(places) == 1 else f"{len(places)} addresses"
            self._add("", address, "login", f"{count} more", "refused")

    def _add(self, *entry: str) -> None:
        with self._database.transaction() as db:
            added = db.execute(
                "INSERT INTO audit (time, who, address, what, about, outcome) VALUES (?, ?, ?, ?, ?, ?)",
                (text(self._now()), *map(plain, entry)),
            )
            db.execute("DELETE FROM audit WHERE id <= ?", ((added.lastrowid or 0) - KEPT,))

    def entered(self) -> list[tuple[str, str]]:
        """Which accounts were entered with their password, and at which addresses; those of late come last."""
        rows = self._database.rows(
            "SELECT who, address FROM audit WHERE what = 'login' AND about = '' AND outcome = 'ok' "
            "GROUP BY who, address ORDER BY max(id)"
        )
        return [(row["who"], row["address"]) for row in rows]

    def page(self, *, limit: int = 100, cursor: str | None = None) -> AuditPage:
        """Newest first. The cursor is the last entry's number: what is added meanwhile moves nothing."""
        if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
            raise UsageError(
                Text("this is not a cursor of the audit log"), field="cursor", hint=Text("hand back what `next` was")
            )
        before = int(cursor) if cursor is not None else None
        rows = self._database.rows(
            "SELECT * FROM audit WHERE ?1 IS NULL OR id < ?1 ORDER BY id DESC LIMIT ?2", (before, limit + 1)
        )
        items = [read(AuditEntry, row) for row in rows[:limit]]
        return AuditPage(items=items, next=str(rows[limit - 1]["id"]) if len(rows) > limit else None)


def plain(value: str) -> str:
    """One line of a bounded length in which nothing moves a cursor, breaks a line or turns the direction of text."""
    shown = "".join(_plain(char) for char in value[: _LONGEST + 1])
    return shown if len(value) <= _LONGEST and len(shown) <= 2 * _LONGEST else shown[: 2 * _LONGEST] + "..."


def _plain(char: str) -> str:
    """Backslashes are spelled too, or a text could pretend to have been something else."""
    kind = unicodedata.category(char)
    disturbs = char == "\\" or kind[0] == "C" or kind in ("Zl", "Zp")
    return char.encode("unicode_escape", "surrogatepass").decode("ascii") if disturbs else char
