"""What a request can show to say whose it is: sessions, API tokens, and links that open a session once.

All are 256 random bits, and only their SHA-256 is kept: whoever reads the file has nothing to come in with.
"""

from __future__ import annotations

import hmac
import os
import secrets
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from oarsman.console.security.database import Kept, hashed, moment, plain, read, text
from oarsman.errors import ConflictError, NotFoundError, UnauthenticatedError
from oarsman.service.models import Identity, Role, Token
from oarsman.text.sentence import Text

if TYPE_CHECKING:
    from oarsman.backends.kube.identity import TokenOwner

IDLE = timedelta(hours=12)
LONGEST = timedelta(days=7)
LINK_LASTS = timedelta(minutes=10)
TOKEN_PREFIX = "oar_"
_ID_LENGTH = len(TOKEN_PREFIX) + 8  # of the secret's 43 characters, 35 remain unknown: 210 bits
_NOTED_EVERY = timedelta(minutes=1)
_SESSIONS_EACH, _TOKENS_EACH, _LINKS = 50, 200, 20

# An account's role and state are those of now, not of when the session or token was made.
_WITH_ACCOUNT = "LEFT JOIN accounts ON accounts.name = account"


class Holder(NamedTuple):
    """Whose a credential is. Without an account: the owner of this machine, who can read and write the file itself."""

    identity: Identity
    account: str | None


class _Sessions(Kept):
    """They end when they are idle or old, and the oldest of somebody who has too many."""

    table: str
    counted_by: str  # the column that says whose they are
    found: str  # all that is known of one hash, with when it `expires`

    def _open(self, secret: str, **values: object) -> str:
        now = self._now()
        row = {"hash": hashed(secret), **values, "opened": text(now), "seen": text(now)}
        same = f"FROM {self.table} WHERE {self.counted_by} IS ?1"
        with self._database.transaction() as db:
            db.execute(
                f"DELETE FROM {self.table} WHERE seen <= ? OR opened <= ?", (text(now - IDLE), text(now - LONGEST))
            )
            db.execute(
                f"INSERT INTO {self.table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()]
            )
            db.execute(
                f"DELETE {same} AND rowid NOT IN (SELECT rowid {same} ORDER BY opened DESC, rowid DESC LIMIT ?2)",
                (values[self.counted_by], _SESSIONS_EACH),
            )
        return secret

    def _row(self, hash: bytes, *, note: bool) -> sqlite3.Row | None:
        """`note`: this is a use, which keeps the session from ending of idleness."""
        row, now = self._database.row(self.found, (hash,)), self._now()
        if row is None or now >= moment(row["seen"]) + IDLE or now >= moment(row["opened"]) + LONGEST:
            return None
        if row["expires"] is not None and now >= moment(row["expires"]):
            return None
        if note and now >= moment(row["seen"]) + _NOTED_EVERY:
            with self._database.transaction() as db:
                db.execute(f"UPDATE {self.table} SET seen = ? WHERE hash = ?", (text(now), hash))
        return row

    def close(self, hash: bytes) -> None:
        with self._database.transaction() as db:
            db.execute(f"DELETE FROM {self.table} WHERE hash = ?", (hash,))


class Sessions(_Sessions):
    table, counted_by = "sessions", "account"
    found = f"SELECT sessions.*, role, disabled, NULL AS expires FROM sessions {_WITH_ACCOUNT} WHERE hash = ?"

    def open(self, name: str, account: str | None) -> str:
        """Always a new one: a value that somebody brought along never becomes a session."""
        return self._open(secrets.token_urlsafe(32), account=account, name=name)

    def holder(self, hash: bytes, *, note: bool = True) -> Holder | None:
        row = self._row(hash, note=note)
        return _holder(row, row["name"]) if row is not None else None


class Tokens(Kept):
    def make(self, owner: str, account: str | None, *, note: str = "", days: int | None = None) -> tuple[Token, str]:
        """The token and its secret, which nobody can show again."""
        now = self._now()
        expires = text(now + timedelta(days=days)) if days is not None else None
        with self._database.transaction() as db:
            held = db.execute("SELECT count(*) FROM tokens WHERE account IS ?", (account,)).fetchone()[0]
            if held >= _TOKENS_EACH:
                raise ConflictError(
                    Text("{name} has {count} tokens already", name=owner, count=held),
                    hint=Text("revoke those that are not used"),
                )
            secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
            while db.execute("SELECT 1 FROM tokens WHERE id = ?", (secret[:_ID_LENGTH],)).fetchone() is not None:
                secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
            db.execute(
                "INSERT INTO tokens (id, hash, account, owner, note, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (secret[:_ID_LENGTH], hashed(secret), account, owner, plain(note), text(now), expires),
            )
        return self.get(secret[:_ID_LENGTH]), secret

    def holder(self, hash: bytes, *, note: bool = True) -> Holder | None:
        row = self._database.row(f"SELECT tokens.*, role, disabled FROM tokens {_WITH_ACCOUNT} WHERE hash = ?", (hash,))
        now = self._now()
        if row is None or (row["expires"] is not None and now >= moment(row["expires"])):
            return None
        holder = _holder(row, row["owner"])
        if holder and note and (row["last_used"] is None or now >= moment(row["last_used"]) + _NOTED_EVERY):
            with self._database.transaction() as db:
                db.execute("UPDATE tokens SET last_used = ? WHERE id = ?", (text(now), row["id"]))
        return holder

    def all(self, account: str | None = None) -> list[Token]:
        """Of one account, or of everybody and the machine's owner too."""
        rows = self._database.rows("SELECT * FROM tokens WHERE ?1 IS NULL OR account = ?1 ORDER BY rowid", (account,))
        return [read(Token, row) for row in rows]

    def get(self, id: str, account: str | None = None) -> Token:
        """With an account given, those of others are as good as not there."""
        row = self._database.row("SELECT * FROM tokens WHERE id = ?1 AND (?2 IS NULL OR account = ?2)", (id, account))
        if row is None:
            raise NotFoundError(
                Text("there is no such token"), field="id", hint=Text("`oarsman tokens list` shows them")
            )
        return read(Token, row)

    def revoke(self, id: str, account: str | None = None) -> Token:
        with self._database.transaction() as db:
            token = self.get(id, account)
            db.execute("DELETE FROM tokens WHERE id = ?", (id,))
        return token


class Links(Kept):
    def make(self, name: str) -> str:
        """A key that is good once, for ten minutes; a session of the machine's owner comes of it."""
        key = secrets.token_urlsafe(32)
        now = self._now()
        with self._database.transaction() as db:
            db.execute("DELETE FROM links WHERE expires <= ?", (text(now),))
            db.execute(
                "INSERT INTO links (hash, name, expires) VALUES (?, ?, ?)", (hashed(key), name, text(now + LINK_LASTS))
            )
            db.execute(
                "DELETE FROM links WHERE rowid NOT IN (SELECT rowid FROM links ORDER BY expires DESC LIMIT ?)",
                (_LINKS,),
            )
        return key

    def burn(self, key: str) -> str | None:
        """The name it was made for; of several who try at once, one gets it."""
        with self._database.transaction() as db:
            row = db.execute("DELETE FROM links WHERE hash = ? RETURNING name, expires", (hashed(key),)).fetchone()
        return str(row["name"]) if row is not None and self._now() < moment(row["expires"]) else None

    def serve_at(self, address: str) -> None:
        """Remember where the server is, for links that are made by another process."""
        with self._database.transaction() as db:
            db.execute("INSERT OR REPLACE INTO notes (name, value) VALUES ('address', ?)", (address.rstrip("/"),))

    @property
    def address(self) -> str | None:
        row = self._database.row("SELECT value FROM notes WHERE name = 'address'")
        return str(row["value"]) if row is not None else None


def _holder(row: sqlite3.Row, name: str) -> Holder | None:
    if row["account"] is None:
        return Holder(Identity(name=name, role=Role.ADMIN), None)
    if row["role"] is None or row["disabled"]:
        return None
    return Holder(Identity(name=name, role=Role(row["role"])), row["account"])


_NONCE = 12


class Sealed(NamedTuple):
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


class ClusterSessions(_Sessions):
    """Of people whom only a cluster knows. Each keeps the token that it acts with, sealed.

    The key is made of the cookie's value, of which the file has only a hash. Neither the file nor, once the session is
    gone from it, the cookie is enough to get the token; and a server that starts anew still knows its sessions.
    """

    table, counted_by = "cluster_sessions", "name"
    found = "SELECT * FROM cluster_sessions WHERE hash = ?"

    def open(self, name: str, token: str, expires: datetime | None) -> str:
        secret = secrets.token_urlsafe(32)
        sealed, until = seal(secret, name, token), text(expires) if expires else None
        with self._database.transaction() as db:
            db.execute("DELETE FROM cluster_sessions WHERE expires <= ?", (text(self._now()),))
            return self._open(secret, name=name, sealed=sealed, expires=until)

    def find(self, hash: bytes, *, note: bool = True) -> Sealed | None:
        row = self._row(hash, note=note)
        return Sealed(row["name"], row["sealed"]) if row is not None else None


GOOD_SECONDS = 60.0
BAD_SECONDS = 10.0  # one that has just been made may be known to the cluster in a moment
_BOUND = 4_096


@dataclass(slots=True)
class _Verdict:
    # a page asks many things at once, the cluster only one
    lock: threading.Lock = field(default_factory=threading.Lock)
    known: TokenOwner | None = None
    asked: float | None = None


class ClusterTokens:
    """Whose a token of the cluster is: what the cluster said of it, remembered for a minute.

    A token that was taken back is refused a minute later at the latest. The same wrong token again is no new guess: it
    is answered from memory, and not counted, so a program that forgot to renew its token keeps nobody else out. What
    was good is remembered apart, where no flood of others takes its place. `ask` asks the cluster: somebody, or None
    for a token that it does not accept.
    """

    def __init__(self, ask: Callable[[str], TokenOwner | None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._verdicts = lru_cache(_BOUND)(lambda hash: _Verdict())  # by the token's hash
        self._good: OrderedDict[bytes, _Verdict] = OrderedDict()

    def known(self, token: str, *, count: Callable[[], None], uncount: Callable[[], None]) -> TokenOwner | None:
        """`count` is called before a token is looked at for the first time, and may refuse; `uncount` if it is good."""
        verdict = self._of(token)
        with verdict.lock:
            lasts = GOOD_SECONDS if verdict.known is not None else BAD_SECONDS
            if verdict.asked is None or self._clock() - verdict.asked >= lasts:
                first = verdict.asked is None
                if first:
                    count()
                try:
                    verdict.known = self._ask(token)
                except BaseException:
                    if first:
                        uncount()
                    raise
                if first and verdict.known is not None:
                    uncount()
                verdict.asked = self._clock()
                if verdict.known is not None:
                    self._remember(token, verdict)
            found = verdict.known
        return found if found is None or found.expires is None or datetime.now(UTC) < found.expires else None

    def doubt(self, token: str) -> None:
        """The cluster has refused it elsewhere: what it said before is not believed any longer."""
        verdict = self._of(token)
        with verdict.lock:
            verdict.asked = float("-inf")

    def _of(self, token: str) -> _Verdict:
        hash = hashed(token)
        with self._lock:  # those who ask at the same time get the same
            return self._good.get(hash) or self._verdicts(hash)

    def _remember(self, token: str, verdict: _Verdict) -> None:
        hash = hashed(token)
        with self._lock:
            self._good[hash] = verdict
            self._good.move_to_end(hash)
            if len(self._good) > _BOUND:
                self._good.popitem(last=False)
