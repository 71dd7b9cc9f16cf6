"""Passwords: kept so that a stolen file is of little use, checked so that the time it takes tells nothing."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from oarsman.errors import ThrottledError, UsageError
from oarsman.text.sentence import Text

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST, LONGEST = 8, 1024
TOO_MANY = Text("too many logins at the same time")
LENGTH = Text("a password has {least} to {most} characters", least=SHORTEST, most=LONGEST)
_AT_ONCE = max(1, min(4, (os.cpu_count() or 1) // 2))  # each takes 64 MiB and a core
_WAITING = 16


class Passwords:
    """argon2id with the parameters of RFC 9106 that its package recommends."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        if hasher is None:
            from argon2 import PasswordHasher

            hasher = PasswordHasher()
        self._hasher = hasher
        self._working = threading.Semaphore(_AT_ONCE)
        self._room = threading.Semaphore(_AT_ONCE + _WAITING)

    @cached_property
    def _of_nobody(self) -> str:
        return self._hasher.hash(secrets.token_urlsafe())

    def hash(self, password: str) -> str:
        with self._turn():
            return self._hasher.hash(password.encode("utf-8", "surrogatepass"))

    def fits(self, stored: str | None, password: str) -> bool:
        """None: there is no such account, which takes as long to find out as a wrong password."""
        from argon2.exceptions import InvalidHashError, VerificationError

        of_nobody = self._of_nobody  # made by whichever login comes first, known name or not
        with self._turn():
            try:
                self._hasher.verify(stored or of_nobody, password.encode("utf-8", "surrogatepass"))
            except (VerificationError, InvalidHashError):
                return False
        return stored is not None

    def is_outdated(self, stored: str) -> bool:
        return self._hasher.check_needs_rehash(stored)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """A flood of logins takes neither all memory nor every thread of the server."""
        if not self._room.acquire(blocking=False):
            raise ThrottledError(TOO_MANY, retry_after=1.0)
        try:
            with self._working:
                yield
        finally:
            self._room.release()


def check(password: str) -> None:
    if not SHORTEST <= len(password) <= LONGEST:
        raise UsageError(
            LENGTH,
            field="password",
            hint=Text("three or four words that do not belong together are hard to guess and easy to remember"),
        )
