"""Sessions of people whom only a cluster knows. Each keeps the token that it acts with, sealed.

The key is made of the cookie's value, of which the file has only a hash. Neither the file nor, once the session is
gone from it, the cookie is enough to get the token; and a server that starts anew still knows its sessions.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from oarsman.console.security.credentials import IDLE, LONGEST
from oarsman.console.security.database import Database, hashed, moment, text
from oarsman.errors import UnauthenticatedError
from oarsman.text.sentence import Text

_NONCE = 12
_EACH = 50
_NOTED_EVERY_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Sealed:
    name: str
    token: bytes

    def open(self, secret: str) -> str:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce, inner = self.token[:_NONCE], self.token[_NONCE:]
        try:
            return AESGCM(_key(secret)).decrypt(nonce, inner, self.name.encode()).decode()
        except InvalidTag as error:
            raise UnauthenticatedError(Text("this session is not known, or no longer")) from error


def seal(secret: str, name: str, token: str) -> bytes:
    """Bound to the name: nobody can move a token into the session of somebody else."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(_NONCE)
    return nonce + AESGCM(_key(secret)).encrypt(nonce, token.encode(), name.encode())


def _key(secret: str) -> bytes:
    """Not the hash that the file has."""
    return hmac.digest(secret.encode(), b"oarsman: the token of a cluster session", "sha256")


class ClusterSessions:
    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now

    def open(self, name: str, token: str, expires: datetime | None) -> str:
        secret = secrets.token_urlsafe(32)
        now = text(self._now())
        with self._database.transaction() as db:
            db.execute(
                "DELETE FROM cluster_sessions WHERE seen <= ? OR opened <= ? OR expires <= ?",
                (text(self._now() - IDLE), text(self._now() - LONGEST), now),
            )
            db.execute(
                "INSERT INTO cluster_sessions (hash, name, sealed, opened, seen, expires) VALUES (?, ?, ?, ?, ?, ?)",
                (hashed(secret), name, seal(secret, name, token), now, now, text(expires) if expires else None),
            )
            db.execute(
                "DELETE FROM cluster_sessions WHERE name = ?1 AND rowid NOT IN"
                " (SELECT rowid FROM cluster_sessions WHERE name = ?1 ORDER BY opened DESC, rowid DESC LIMIT ?2)",
                (name, _EACH),
            )
        return secret

    def find(self, hash: bytes, *, note: bool = True) -> Sealed | None:
        """`note`: this is a use, which keeps the session from ending of idleness."""
        row = self._database.row("SELECT * FROM cluster_sessions WHERE hash = ?", (hash,))
        now = self._now()
        if row is None or now >= moment(row["seen"]) + IDLE or now >= moment(row["opened"]) + LONGEST:
            return None
        if row["expires"] is not None and now >= moment(row["expires"]):
            return None
        if note and (now - moment(row["seen"])).total_seconds() >= _NOTED_EVERY_SECONDS:
            with self._database.transaction() as db:
                db.execute("UPDATE cluster_sessions SET seen = ? WHERE hash = ?", (text(now), hash))
        return Sealed(row["name"], row["sealed"])

    def close(self, hash: bytes) -> None:
        with self._database.transaction() as db:
            db.execute("DELETE FROM cluster_sessions WHERE hash = ?", (hash,))
