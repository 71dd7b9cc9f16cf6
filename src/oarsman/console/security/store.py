"""Everything the console keeps, opened together; server and command use the same file at the same time."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from oarsman.console.security.accounts import Accounts
from oarsman.console.security.audit import Audit
from oarsman.console.security.cluster_sessions import ClusterSessions
from oarsman.console.security.credentials import Links, Sessions, Tokens
from oarsman.console.security.database import Database
from oarsman.console.security.passwords import Passwords
from oarsman.console.security.saved_views import SavedViews


def _now() -> datetime:
    return datetime.now(UTC)


class ConsoleStore:
    def __init__(
        self, path: Path, *, now: Callable[[], datetime] = _now, passwords: Callable[[], Passwords] = Passwords
    ) -> None:
        """`passwords` is called when the first one is needed: its package is heavy and not always there."""
        self._database = Database(path)
        self.accounts = Accounts(self._database, cache(passwords), now)
        self.sessions = Sessions(self._database, now)
        self.cluster_sessions = ClusterSessions(self._database, now)
        self.tokens = Tokens(self._database, now)
        self.links = Links(self._database, now)
        self.audit = Audit(self._database, now)
        self.views = SavedViews(self._database)

    def together(self) -> AbstractContextManager[object]:
        """What is written inside is written whole or not at all: a deed, and that it was done."""
        return self._database.transaction()

    def close(self) -> None:
        self._database.close()


def machine_owner() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as containers have them
        return str(os.getuid())


def link(server: str, key: str) -> str:
    return f"{server}/login/once?key={key}"
