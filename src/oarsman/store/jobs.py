"""The jobs table. Every change is one transaction and gets the next revision number.

After each change the database file is touched: whoever follows the store (see change_watch.py) hears of it, whichever
process made it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import shutil
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, Unpack

from oarsman.errors import ConflictError, NotFoundError, StoreError
from oarsman.job.state import EventRecord
from oarsman.store.damage import explained
from oarsman.store.rows import ALL, ALL_BUT_ENVIRONMENT, EVENT, KEPT, NUMBER, OF_RUN, event_of, job_of, time_text
from oarsman.store.rows import NewJob as NewJob
from oarsman.store.rows import StoredJob as StoredJob
from oarsman.text.sentence import Text, dump

T = TypeVar("T")
# Each makes the next version of the one before.
_SCHEMAS = ("schema.sql", "schema-2.sql", "schema-3.sql", "schema-4.sql", "schema-5.sql")
_SCHEMA_VERSION = len(_SCHEMAS)
_REMOVALS_KEPT = 50_000  # revisions; schema-2.sql says so too
_RESERVE_BYTES = 2 << 20
_PATIENCE_MS = 30_000  # for others who write
_READ_AT_ONCE = 200  # jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChanges:
    """What became different between two revisions. The jobs come without their environments: nobody who looks on
    needs them, and they are most of what a job weighs."""

    revision: int
    jobs: Iterable[StoredJob]
    gone: Sequence[str]  # keys
    whole: bool  # the jobs are all there are, read while one walks over them


@dataclass(frozen=True, slots=True)
class _All:
    """Every job, a few at a time: taken to pieces all at once they would be most of the memory of a server."""

    store: JobStore
    namespace: str | None

    def __iter__(self) -> Iterator[StoredJob]:
        """By revision, so that nothing is missed: one that changes meanwhile comes once more."""
        last = -1
        while rows := self.store.changed_after(last, self.namespace, _READ_AT_ONCE):
            yield from map(job_of, rows)
            last = rows[-1]["revision"]


_NEVER_CLOSED: list[sqlite3.Connection] = []


class _Own:
    """The connection of one thread. It is closed as soon as that one has ended, not when the collector comes by."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._process = os.getpid()

    def __del__(self) -> None:
        """In a child, right after a fork, all other threads have ended. What one of them held then, nobody gives back:
        to close its connection there would be to wait for ever, and whoever made the child waits for that."""
        if os.getpid() == self._process:
            self.db.close()
        else:
            _NEVER_CLOSED.append(self.db)


class JobStore:
    """Readers never wait; writers wait for each other. Any number of threads may use it: each has a connection of its
    own, opened when it first asks and closed when it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.local()
        self._connections: weakref.WeakSet[_Own] = weakref.WeakSet()
        self._opening = threading.Lock()
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            path.chmod(0o600)
            self._reserve = path.with_suffix(".reserve")
            # Room for the last words of jobs that filled the disk.
            if not self._reserve.exists() and shutil.disk_usage(path.parent).free > 2 * _RESERVE_BYTES:
                with contextlib.suppress(OSError):
                    self._reserve.write_bytes(bytes(_RESERVE_BYTES))
            if self._version() != _SCHEMA_VERSION:
                self._write(self._migrate)
        except (sqlite3.Error, OSError) as error:
            raise explained(path, error) from error

    @property
    def _db(self) -> sqlite3.Connection:
        """The connection of this thread."""
        try:
            own: _Own = self._threads.own
        except AttributeError:
            own = self._threads.own = _Own(self._connect())
            with self._opening:
                self._connections.add(own)
        return own.db

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=_PATIENCE_MS / 1000, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA synchronous = NORMAL")  # survives kill -9; a power cut may lose the last moment
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA secure_delete = ON")  # what is taken out of it is not in the file any more
        return db

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _migrate(self) -> None:
        version = self._version()
        if version > _SCHEMA_VERSION:
            template = Text("the store was written by a newer Oarsman (schema {theirs}, this one knows {ours})")
            hint = Text("upgrade oarsman, or point OARSMAN_STATE to another folder")
            raise StoreError(Text(template, theirs=version, ours=_SCHEMA_VERSION), hint=hint)
        for name in _SCHEMAS[version:]:
            for statement in _statements(resources.files(__package__).joinpath(name).read_text()):
                self._db.execute(statement)
        self._db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def _write(self, work: Callable[[], T]) -> T:
        """One transaction, whole or not at all. On a full disk the reserve is given up for it."""
        try:
            return self._transaction(work)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode not in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE):
                raise
            self._reserve.unlink(missing_ok=True)
        return self._transaction(work)

    def _transaction(self, work: Callable[[], T]) -> T:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            result = work()
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        with contextlib.suppress(OSError):
            os.utime(self._path)  # for those who follow; what they read now has the change in it
        return result

    def close(self) -> None:
        """For all threads."""
        with self._opening:
            for connection in self._connections:
                connection.db.close()

    # -- reading -------------------------------------------------------------------------------------
    def get(self, key: str, uid: str = "") -> StoredJob:
        """The job, or with "namespace/name#3" that run of it. With a uid that job alone."""
        key, _, number = key.partition("#")
        if not number:
            return self._one(key, f"SELECT {ALL} FROM jobs WHERE ? IN ('', uid) AND namespace = ? AND name = ?", uid)
        found = next((run for run in self.runs(key) if str(run.run) == number), None)
        if found is None:
            hint = Text("{command} shows the runs that are kept", command=f"oarsman history {key}")
            raise NotFoundError(Text("there is no run {number} of {key}", number=number, key=key), hint=hint)
        return found

    def runs(self, key: str) -> list[StoredJob]:
        """The job and what is kept of its earlier runs, the newest first."""
        namespace, _, name = key.partition("/")
        kept = f"SELECT {OF_RUN} FROM runs WHERE namespace = ? AND name = ? ORDER BY number DESC"
        self._db.execute("BEGIN")  # the job may be run again between the two
        try:
            return [self.get(key), *map(job_of, self._db.execute(kept, (namespace, name)).fetchall())]
        finally:
            self._db.execute("COMMIT")

    def _one(self, key: str, statement: str, *given: Any) -> StoredJob:
        namespace, _, name = key.rpartition("/")
        row = self._db.execute(statement, (*given, namespace, name)).fetchone()
        if row is None:
            raise NotFoundError(Text("there is no job {name} in namespace {space}", name=name, space=namespace))
        return job_of(row)

    def by_uid(self, uid: str) -> StoredJob | None:
        row = self._db.execute(f"SELECT {ALL} FROM jobs WHERE uid = ?", (uid,)).fetchone()
        return job_of(row) if row is not None else None

    def unfinished(self) -> list[StoredJob]:
        """Jobs the supervisor still has something to do for."""
        return self._jobs("finished = 0 OR deleting = 1 ORDER BY created_at, uid")

    def anything_unfinished(self) -> bool:
        """Whether there is any such job, without reading one."""
        found = "EXISTS (SELECT 1 FROM jobs WHERE finished = 0) OR EXISTS (SELECT 1 FROM jobs WHERE deleting = 1)"
        return bool(self._db.execute(f"SELECT {found}").fetchone()[0])

    def unsettled(self) -> list[StoredJob]:
        """The unfinished ones in the order they came, without their environments."""
        return self._jobs("finished = 0 ORDER BY created_at, uid", columns=ALL_BUT_ENVIRONMENT)

    def waiting_for_ttl(self) -> list[StoredJob]:
        return self._jobs("finished = 1 AND document LIKE '%ttlSecondsAfterFinished%' ORDER BY created_at")

    def _jobs(self, which: str, columns: str = ALL) -> list[StoredJob]:
        return [job_of(row) for row in self._db.execute(f"SELECT {columns} FROM jobs WHERE {which}")]

    def changes(self, since: int | None, namespace: str | None = None) -> StoreChanges:
        """What happened after that revision (None: everything there is). Its cost is that of the changes alone."""
        db = self._db
        db.execute("BEGIN")
        try:
            revision = int(db.execute("SELECT value FROM counters WHERE name = 'revision'").fetchone()[0])
            if since == revision:
                return StoreChanges(revision=revision, jobs=(), gone=(), whole=False)
            if since is None or not revision - _REMOVALS_KEPT <= since <= revision:
                return StoreChanges(revision=revision, jobs=_All(self, namespace), gone=(), whole=True)
            jobs = [job_of(row) for row in self.changed_after(since, namespace)]
            removed = db.execute(
                "SELECT namespace, name FROM removed WHERE revision > ?1 AND (?2 IS NULL OR namespace = ?2)"
                " ORDER BY revision",
                (since, namespace),
            )
            gone = list(dict.fromkeys(f"{row[0]}/{row[1]}" for row in removed))
        finally:
            db.execute("COMMIT")
        there = {job.key for job in jobs}  # removed, and another one of that name made
        return StoreChanges(revision=revision, jobs=jobs, gone=[key for key in gone if key not in there], whole=False)

    def changed_after(self, revision: int, namespace: str | None, at_most: int = -1) -> Sequence[sqlite3.Row]:
        return self._db.execute(
            f"SELECT {ALL_BUT_ENVIRONMENT} FROM jobs"
            " WHERE revision > ?1 AND (?2 IS NULL OR namespace = ?2) ORDER BY revision LIMIT ?3",
            (revision, namespace, at_most),
        ).fetchall()

    def uids(self) -> set[str]:
        return {row[0] for row in self._db.execute("SELECT uid FROM jobs")}

    def keeps(self, uid: str) -> bool:
        """Whether it is an earlier run of a job."""
        return self._db.execute("SELECT 1 FROM runs WHERE uid = ?", (uid,)).fetchone() is not None

    def events(self, uid: str) -> list[EventRecord]:
        kept = self._db.execute("SELECT events FROM runs WHERE uid = ?", (uid,)).fetchone()
        return [event_of(values) for values in (self._events(uid) if kept is None else json.loads(kept[0]))]

    def _events(self, uid: str) -> list[Sequence[Any]]:
        rows = self._db.execute(f"SELECT {', '.join(EVENT)} FROM events WHERE uid = ? ORDER BY id", (uid,))
        return [tuple(row) for row in rows]

    # -- writing: what is wanted ---------------------------------------------------------------------
    def add(self, **wanted: Unpack[NewJob]) -> StoredJob:
        return self._write(lambda: self._add(wanted))

    def replace(self, ended: str, /, *, keeping: int, **wanted: Unpack[NewJob]) -> tuple[StoredJob, Sequence[str]]:
        """The next run of the job of this uid, which has ended, and the uids of those that there is something to
        clear away of: of the one before, which is kept as a run, and of those that are not among the newest `keeping`
        any more. A job that has its name by now and is another stays."""

        def work() -> tuple[StoredJob, Sequence[str]]:
            named = wanted["namespace"], wanted["name"]
            there = "SELECT 1 FROM jobs WHERE uid = ? AND namespace = ? AND name = ? AND finished = 1 AND deleting = 0"
            if self._db.execute(there, (ended, *named)).fetchone() is None:
                return self._add(wanted), []
            self._db.execute(
                f"INSERT INTO runs ({KEPT}, number, events) SELECT {KEPT}, {NUMBER}, ? FROM jobs WHERE uid = ?",
                (json.dumps(self._events(ended)), ended),
            )
            self._db.execute("DELETE FROM jobs WHERE uid = ?", (ended,))
            old = "(SELECT number FROM runs WHERE namespace = ?1 AND name = ?2 ORDER BY number DESC LIMIT -1 OFFSET ?3)"
            drop = f"DELETE FROM runs WHERE namespace = ?1 AND name = ?2 AND number IN {old} RETURNING uid"
            gone = [row[0] for row in self._db.execute(drop, (*named, keeping)).fetchall()]
            return self._insert(wanted), [*gone, ended]

        return self._write(work)

    def _add(self, wanted: NewJob) -> StoredJob:
        namespace, name = wanted["namespace"], wanted["name"]
        if self._db.execute("SELECT 1 FROM jobs WHERE namespace = ? AND name = ?", (namespace, name)).fetchone():
            wrong = Text("a job named {name} exists already in namespace {space}", name=name, space=namespace)
            hint = Text("choose another name, or remove it first: {command}", command=f"oarsman delete {name}")
            raise ConflictError(wrong, field="metadata.name", hint=hint)
        self._drop_runs(namespace, name)  # an older Oarsman that deletes a job does not know of them
        return self._insert(wanted)

    def _insert(self, wanted: NewJob) -> StoredJob:
        columns = {
            **{name: value for name, value in wanted.items() if name != "now"},
            "document": json.dumps(wanted["document"]),
            "environment": json.dumps(dict(wanted["environment"])),
            "created_at": time_text(wanted["now"]),
            "revision": self._next_revision(),
        }
        marks = ", ".join(f":{column}" for column in columns)
        insert = f"INSERT INTO jobs ({', '.join(columns)}) VALUES ({marks}) RETURNING {ALL}"
        return job_of(self._db.execute(insert, columns).fetchone())

    def _drop_runs(self, namespace: str, name: str) -> list[str]:
        """Their uids."""
        drop = "DELETE FROM runs WHERE namespace = ? AND name = ? RETURNING uid"
        return [row[0] for row in self._db.execute(drop, (namespace, name)).fetchall()]

    def change_document(
        self, key: str, document: Mapping[str, Any], uid: str = "", *, expected_generation: int
    ) -> StoredJob:
        """Replace what is wanted; refused if somebody else changed it meanwhile."""
        job = self.get(key, uid)

        def work() -> StoredJob:
            row = self._db.execute(
                "UPDATE jobs SET document = ?, generation = generation + 1, finished = 0, revision = ?"
                f" WHERE uid = ? AND generation = ? RETURNING {ALL}",
                (json.dumps(document), self._next_revision(), job.uid, expected_generation),
            ).fetchone()
            if row is None:
                raise ConflictError(Text("{key} was changed by somebody else at the same time; try again", key=job.key))
            return job_of(row)

        return self._write(work)

    def request_stop(self, key: str, uid: str = "") -> StoredJob:
        return self._flag(key, "stop_requested = 1", uid)

    def request_delete(self, key: str, uid: str = "") -> StoredJob:
        return self._flag(key, "deleting = 1", uid)

    def _flag(self, key: str, change: str, uid: str) -> StoredJob:
        """As it is then: a moment later it may be gone, or another may have its name."""
        change = f"UPDATE jobs SET {change}, revision = ? WHERE ? IN ('', uid) AND namespace = ? AND name = ?"
        change += f" RETURNING {ALL}"
        return self._write(lambda: self._one(key, change, self._next_revision(), uid))

    # -- writing: what it became ---------------------------------------------------------------------
    def write_status(
        self,
        uid: str,
        status: Mapping[str, Any],
        *,
        finished: bool,
        events: Sequence[tuple[str, str, str]] = (),
        now: datetime,
    ) -> bool:
        """Status and its events together, or neither. False if the job is gone. With its end the variables go that it
        was given: nobody needs them any more, and there are passwords among them."""

        def work() -> bool:
            updated = self._db.execute(
                "UPDATE jobs SET status = ?1, finished = ?2, revision = ?3,"
                " environment = iif(?2, '{}', environment) WHERE uid = ?4",
                (json.dumps(status), int(finished), self._next_revision(), uid),
            )
            if updated.rowcount == 0:
                return False
            for severity, reason, message in events:
                self._add_event(uid, severity, reason, message, now)
            return True

        written = self._write(work)
        if finished:
            self._empty_the_log()
        return written

    def _empty_the_log(self) -> None:
        """What was taken out of the database is in its log until others write over it. Nobody is waited for; if one
        reads just now, the next end of a job does it."""
        db = self._db
        db.execute("PRAGMA busy_timeout = 0")
        with contextlib.suppress(sqlite3.OperationalError):
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        db.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")

    def _add_event(self, uid: str, severity: str, reason: str, message: str, now: datetime) -> None:
        if isinstance(written := dump(message), dict):
            message = json.dumps(written)
        repeated = self._db.execute(
            "UPDATE events SET time = ?, count = count + 1 WHERE uid = ? AND reason = ? AND message = ?",
            (time_text(now), uid, reason, message),
        )
        if repeated.rowcount == 0:
            self._db.execute(
                "INSERT INTO events (uid, first_time, time, severity, reason, message) VALUES (?, ?, ?, ?, ?, ?)",
                (uid, time_text(now), time_text(now), severity, reason, message),
            )

    def remove(self, uid: str) -> Sequence[str]:
        """With its earlier runs, whose uids are returned. An earlier run itself is not removed by this."""

        def work() -> Sequence[str]:
            removed = "DELETE FROM jobs WHERE uid = ? RETURNING namespace, name"
            row = self._db.execute(removed, (uid,)).fetchone()
            return self._drop_runs(*row) if row is not None else ()

        return self._write(work)

    def _next_revision(self) -> int:
        change = "UPDATE counters SET value = value + 1 WHERE name = 'revision' RETURNING value"
        return int(self._db.execute(change).fetchone()[0])


def _explaining(ask: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(ask)
    def asked(store: JobStore, *words: Any, **more: Any) -> Any:
        try:
            return ask(store, *words, **more)
        except sqlite3.DatabaseError as error:
            raise explained(store._path, error) from error

    return asked


for _name, _ask in list(vars(JobStore).items()):  # whatever is asked of it, and whenever the file turns out to be bad
    if inspect.isfunction(_ask) and not _name.startswith("_"):
        setattr(JobStore, _name, _explaining(_ask))


def _statements(script: str) -> Iterator[str]:
    """One by one, because a script run as a whole would commit what is open."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
