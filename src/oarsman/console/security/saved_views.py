"""Views of the list of jobs that somebody gave a name. They follow the person, not the browser."""

from __future__ import annotations

from dataclasses import dataclass

from oarsman.console.security.database import Database
from oarsman.errors import ConflictError, UsageError
from oarsman.text.sentence import Text

LONGEST_NAME = 60
_LONGEST_ADDRESS = 4000
_MOST = 100


@dataclass(frozen=True, slots=True)
class SavedView:
    name: str
    address: str  # the query of the jobs page


@dataclass(frozen=True, slots=True)
class Person:
    """`account` None: the owner of this machine, or somebody whom only the cluster knows."""

    account: str | None
    name: str


class SavedViews:
    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, person: Person) -> list[SavedView]:
        rows = self._database.rows(
            "SELECT name, address FROM views WHERE account IS ?1 AND who = ?2 ORDER BY name",
            (person.account, person.name),
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
            db.execute(
                "INSERT INTO views (account, who, name, address) VALUES (?, ?, ?, ?)",
                (person.account, person.name, view.name, view.address),
            )

    def remove(self, person: Person, name: str) -> None:
        with self._database.transaction() as db:
            db.execute(
                "DELETE FROM views WHERE account IS ? AND who = ? AND name = ?", (person.account, person.name, name)
            )
