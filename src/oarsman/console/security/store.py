"""Everything the console keeps, opened together; server and command use the same file at the same time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from oarsman.console.security.accounts import Accounts, Passwords
from oarsman.console.security.credentials import ClusterSessions, Links, Sessions, Tokens
from oarsman.console.security.database import Audit, Database, Kept
from oarsman.errors import ConflictError, UsageError
from oarsman.text.sentence import Text

LONGEST_NAME = 60
_LONGEST_ADDRESS = 4000
_MOST = 100


class SavedView(NamedTuple):
    name: str
    address: str  # the query of the jobs page


class Person(NamedTuple):
    """`account` None: the owner of this machine, or somebody whom only the cluster knows."""

    account: str | None
    name: str


class SavedViews(Kept):
    def all(self, person: Person) -> list[SavedView]:
        rows = self._database.rows(
            "SELECT name, address FROM views WHERE account IS ? AND who = ? ORDER BY name", person
        )
        return [SavedView(row["name"], row["address"]) for row in rows]

    def save(self, person: Person, view: SavedView) -> None:
        """Under a name that is there already, the new one takes its place."""
        if not view.name.strip() or len(view.name) > LONGEST_NAME or not view.name.isprintable():
            raise UsageError(
                Text("the name of a view has 1 to {most} characters that can be seen", most=LONGEST_NAME), field="name"
            )
        if len(view.address) > _LONGEST_ADDRESS:
            raise UsageError(Text("this view asks for too much at once"), field="address")
        with self._database.transaction() as db:
            self.remove(person, view.name)
            if len(self.all(person)) >= _MOST:
                raise ConflictError(
                    Text("there are {count} saved views already", count=_MOST), hint=Text("delete one first")
                )
            db.execute("INSERT INTO views (account, who, name, address) VALUES (?, ?, ?, ?)", (*person, *view))

    def remove(self, person: Person, name: str) -> None:
        with self._database.transaction() as db:
            db.execute("DELETE FROM views WHERE account IS ? AND who = ? AND name = ?", (*person, name))


class ConsoleStore:
    def __init__(
        self,
        path: Path,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        passwords: Callable[[], Passwords] = Passwords,
    ) -> None:
        """`passwords` is called when the first one is needed: its package is heavy and not always there."""
        database = Database(path)
        self.accounts = Accounts(database, now, cache(passwords))
        self.sessions = Sessions(database, now)
        self.cluster_sessions = ClusterSessions(database, now)
        self.tokens = Tokens(database, now)
        self.links = Links(database, now)
        self.audit = Audit(database, now)
        self.views = SavedViews(database, now)
        self.together = database.transaction  # what is written inside: a deed, and that it was done
        self._database = database

    def close(self) -> None:
        try:
            self.audit.tell_all()
        finally:
            self._database.close()


def link(server: str, key: str) -> str:
    return f"{server}/login/once?key={key}"
