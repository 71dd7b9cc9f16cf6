"""Who did what, from where. Entries are only added; the oldest make room for new ones beyond a bound."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from datetime import datetime

from oarsman.console.security.database import Database, moment, text
from oarsman.errors import UsageError
from oarsman.service.models import AuditEntry, AuditPage
from oarsman.text.sentence import Text

KEPT = 100_000  # the schema refuses to delete what is younger
_LONGEST = 300


class Audit:
    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now

    def note(self, who: str, address: str, what: str, about: str = "", outcome: str = "ok") -> None:
        entry = [plain(value) for value in (who, address, what, about, outcome)]
        with self._database.transaction() as db:
            added = db.execute(
                "INSERT INTO audit (time, who, address, what, about, outcome) VALUES (?, ?, ?, ?, ?, ?)",
                (text(self._now()), *entry),
            )
            db.execute("DELETE FROM audit WHERE id <= ?", ((added.lastrowid or 0) - KEPT,))

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
        items = [
            AuditEntry(
                time=moment(row["time"]),
                who=row["who"],
                address=row["address"],
                what=row["what"],
                about=row["about"],
                outcome=row["outcome"],
            )
            for row in rows[:limit]
        ]
        return AuditPage(items=items, next=str(rows[limit - 1]["id"]) if len(rows) > limit else None)


def plain(value: str) -> str:
    """One line of a bounded length in which nothing moves a cursor, breaks a line or turns the direction of text."""
    shown = "".join(char if not _disturbs(char) else _spelled(char) for char in value[: _LONGEST + 1])
    return shown if len(value) <= _LONGEST and len(shown) <= 2 * _LONGEST else shown[: 2 * _LONGEST] + "..."


def _disturbs(char: str) -> bool:
    return char == "\\" or unicodedata.category(char)[0] == "C" or unicodedata.category(char) in ("Zl", "Zp")


def _spelled(char: str) -> str:
    """Backslashes too, or a text could pretend to have been something else."""
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")
