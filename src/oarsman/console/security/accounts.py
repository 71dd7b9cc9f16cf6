"""Accounts. Passwords, kept so that a stolen file helps little and checked so that the time it takes tells nothing."""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from oarsman.console.security.database import Database, Kept, read, text
from oarsman.errors import ConflictError, NotFoundError, ThrottledError, UsageError
from oarsman.service.models import Account, Role
from oarsman.text.sentence import Text

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST, LONGEST = 8, 1024
TOO_MANY = Text("too many logins at the same time")
LENGTH = Text("a password has {least} to {most} characters", least=SHORTEST, most=LONGEST)
_AT_ONCE = max(1, min(4, (os.cpu_count() or 1) // 2))  # each takes 64 MiB and a core
_WAITING, _WAITING_KNOWN = 16, 8
_OF_ONE = 2  # of those places, for one account: with the right password it may come as often as it likes


class Passwords:
    """argon2id with the parameters of RFC 9106 that its package recommends."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        if hasher is None:
            from argon2 import PasswordHasher

            hasher = PasswordHasher()
        self._hasher = hasher
        self._working = threading.Semaphore(_AT_ONCE)
        self._room = threading.Semaphore(_AT_ONCE + _WAITING)
        self._room_of_known = threading.Semaphore(_WAITING_KNOWN)
        self._inside: Counter[str] = Counter()  # of those who are known, by account
        self._lock = threading.Lock()

    @cached_property
    def _of_nobody(self) -> str:
        return self._hasher.hash(secrets.token_urlsafe())

    def hash(self, password: str, *, known: str = "") -> str:
        with self._turn(self._room_of_known, known):  # of those who are in
            return self._hasher.hash(password.encode("utf-8", "surrogatepass"))

    def fits(self, stored: str | None, password: str, *, known: str = "") -> bool:
        """None: there is no such account, which takes as long to find out as a wrong password.

        `known`: the account that was entered from there before, so there is room that strangers cannot fill.
        """
        from argon2.exceptions import InvalidHashError, VerificationError

        of_nobody = self._of_nobody  # made by whichever login comes first, known name or not
        with self._turn(self._room_of_known if known else self._room, known):
            try:
                self._hasher.verify(stored or of_nobody, password.encode("utf-8", "surrogatepass"))
            except (VerificationError, InvalidHashError):
                return False
        return stored is not None

    def is_outdated(self, stored: str) -> bool:
        return self._hasher.check_needs_rehash(stored)

    @contextmanager
    def _turn(self, room: threading.Semaphore, known: str) -> Iterator[None]:
        """A flood of logins takes neither all memory nor every thread of the server."""
        with self._lock:
            if (known and self._inside[known] >= _OF_ONE) or not room.acquire(blocking=False):
                raise ThrottledError(TOO_MANY, retry_after=1.0)
            self._inside[known] += 1
        try:
            with self._working:
                yield
        finally:
            room.release()
            with self._lock:
                self._inside -= Counter([known])


T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")  # as in models.NewAccount


class Accounts(Kept):
    def __init__(self, database: Database, now: Callable[[], datetime], passwords: Callable[[], Passwords]) -> None:
        super().__init__(database, now)
        self._passwords = passwords

    def all(self) -> list[Account]:
        return [read(Account, row) for row in self._database.rows("SELECT * FROM accounts ORDER BY name")]

    def get(self, name: str) -> Account:
        row = self._find(name)
        if row is None:
            raise NotFoundError(
                Text("there is no account of that name"), field="name", hint=Text("`oarsman users list` shows them")
            )
        return read(Account, row)

    def enabled(self) -> int:
        return int(self._database.rows("SELECT count(*) FROM accounts WHERE disabled = 0")[0][0])

    def hash(self, password: str, *, of: str = "") -> str:
        """A new password as it is kept. It takes its time: not for within a transaction, where all others wait."""
        if not SHORTEST <= len(password) <= LONGEST:
            raise UsageError(
                LENGTH,
                field="password",
                hint=Text("three or four words that do not belong together are hard to guess and easy to remember"),
            )
        return self._passwords().hash(password, known=of.casefold())

    def add(self, name: str, role: Role, hashed_password: str) -> Account:
        if not _NAME.fullmatch(name):
            raise UsageError(
                Text("a name has at most 63 letters, digits and . _ @ -, and begins with a letter or a digit"),
                field="name",
            )
        with self._database.transaction() as db:
            if self._find(name) is not None:
                raise ConflictError(Text("there is an account {name} already", name=name), field="name")
            db.execute(
                "INSERT INTO accounts (name, role, password, created) VALUES (?, ?, ?, ?)",
                (name, role.value, hashed_password, text(self._now())),
            )
            return self.get(name)

    def change(
        self, name: str, *, role: Role | None = None, hashed_password: str | None = None, disabled: bool | None = None
    ) -> Account:
        """A new password and being disabled end the sessions; a new role counts from the next request on."""
        with self._database.transaction() as db:
            before = self.get(name)
            name = before.name
            if role is not None:
                db.execute("UPDATE accounts SET role = ? WHERE name = ?", (role.value, name))
            if disabled is not None:
                db.execute("UPDATE accounts SET disabled = ? WHERE name = ?", (int(disabled), name))
            if hashed_password is not None:
                db.execute("UPDATE accounts SET password = ? WHERE name = ?", (hashed_password, name))
            if hashed_password is not None or disabled:
                db.execute("DELETE FROM sessions WHERE account = ?", (name,))
            if before.role is Role.ADMIN and not before.disabled:
                self._keep_an_admin(db, name)
            return self.get(name)

    def remove(self, name: str) -> None:
        """Its sessions and tokens go along."""
        with self._database.transaction() as db:
            account = self.get(name)
            db.execute("DELETE FROM accounts WHERE name = ?", (account.name,))
            if account.role is Role.ADMIN and not account.disabled:
                self._keep_an_admin(db, account.name)

    def log_in(self, name: str, password: str, then: Callable[[Account], T], *, known: bool = False) -> T | None:
        """What `then` makes for the account, in one transaction with a last look at it.

        None, and the same time spent, whether the name, the password or the account is wrong.
        """
        row = self._find(name)
        passwords = self._passwords()
        of = name.casefold() if known else ""
        if not passwords.fits(row["password"] if row else None, password, known=of) or row is None:
            return None
        stored = passwords.hash(password) if passwords.is_outdated(row["password"]) else row["password"]
        with self._database.transaction() as db:
            now = self._find(name)
            if now is None or now["password"] != row["password"] or now["disabled"]:
                return None  # it was changed while the password was looked at
            if stored != row["password"]:
                db.execute("UPDATE accounts SET password = ? WHERE name = ?", (stored, row["name"]))
            return then(read(Account, now))

    def _find(self, name: str) -> sqlite3.Row | None:
        if not _NAME.fullmatch(name):  # it may hold what no database takes
            return None
        return self._database.row("SELECT * FROM accounts WHERE name = ?", (name,))

    def _keep_an_admin(self, db: sqlite3.Connection, name: str) -> None:
        left = db.execute("SELECT 1 FROM accounts WHERE role = 'admin' AND disabled = 0 LIMIT 1").fetchone()
        if left is None:
            raise ConflictError(
                Text("{name} is the last admin", name=name), hint=Text("make somebody else an admin first")
            )
