"""The file: of no use to a thief, whole after kill -9, and never half open."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher

from oarsman.console.security import database
from oarsman.console.security.accounts import Passwords
from oarsman.console.security.store import ConsoleStore
from oarsman.errors import StoreError, ThrottledError
from oarsman.service.models import Role

from .console import PASSWORD, Clock, Console, quick_passwords


def test_a_stolen_file_opens_nothing(console: Console) -> None:
    browser = console.logged_in("ann", Role.ADMIN)
    secret = browser.ask("POST", "/api/v1/tokens", {}).json()["secret"]
    key = console.gate.new_link().partition("key=")[2]
    secrets = [PASSWORD, secret, key, browser.cookies["oarsman-8080"]]
    stolen = b"".join(path.read_bytes() for path in console.path.parent.iterdir())
    assert b"oar_" in stolen  # the beginning is there, to recognise it by
    assert [s for s in secrets if s.encode() in stolen] == []

    db = sqlite3.connect(console.path)
    values = [
        value
        for table in ("accounts", "sessions", "tokens", "links")
        for row in db.execute(f"SELECT * FROM {table}")
        for value in row
    ]
    db.close()
    shown = [v.hex() if isinstance(v, bytes) else str(v) for v in values]
    for value in [v for v in shown if v.isascii() and "\n" not in v]:
        assert console.browser(cookies={"oarsman-8080": value.replace(" ", "")}).me().status_code == 401
        assert console.browser().me(Authorization=f"Bearer {value}").status_code == 401
        assert console.store.links.burn(value) is None
    assert all(v.startswith("$argon2id$") for v in shown if v.startswith("$"))


def test_nobody_else_can_read_the_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = ConsoleStore(tmp_path / "console.db")
        store.audit.note("a", "b", "c")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    assert len(list(tmp_path.iterdir())) == 3  # with what is written ahead
    store.close()


def test_a_file_of_a_newer_oarsman_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "console.db"
    ConsoleStore(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="newer"):
        ConsoleStore(path)


def test_a_file_that_is_none_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "console.db"
    path.write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StoreError, match=r"console\.db is damaged"):
        ConsoleStore(path)
    with pytest.raises(StoreError, match="cannot be used"):
        ConsoleStore(tmp_path / "nowhere" / "console.db")


def test_a_damaged_page_is_told_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "console.db"
    ConsoleStore(path).close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    store = ConsoleStore(path)
    with pytest.raises(StoreError, match=r"console\.db is damaged"):
        store.accounts.all()
    with pytest.raises(StoreError, match=r"console\.db is damaged"):
        store.audit.note("me", "here", "login")
    store.close()


def test_nobody_who_reads_waits_for_somebody_who_waits_to_write(tmp_path: Path) -> None:
    path = tmp_path / "console.db"
    with closing(ConsoleStore(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = threading.Thread(target=store.audit.note, args=("me", "here", "login"))
        writing.start()
        read = threading.Thread(target=store.accounts.all)
        try:
            while store.accounts._database._lock.acquire(blocking=False):
                store.accounts._database._lock.release()  # until the other thread waits for the file
            read.start()
            read.join(5)
            assert not read.is_alive()
        finally:
            other.execute("ROLLBACK")
            writing.join()
            read.join()


def test_what_is_done_and_that_it_was_done_are_written_together(console: Console) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("the machine stops here")

    admin = console.logged_in("ann", Role.ADMIN)
    console.account("ben")
    console.store.audit.note = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        admin.ask("DELETE", "/api/v1/accounts/ben")
    assert [a.name for a in console.store.accounts.all()] == ["ann", "ben"]


WRITER = """
import sys
from pathlib import Path
from oarsman.console.security.store import ConsoleStore
from oarsman.service.models import Role

store = ConsoleStore(Path(sys.argv[1]))
for number in range(1_000_000):
    with store.together():
        store.accounts.add(f"user-{number}", Role.USER, "$argon2id$")
        if number == 20:
            print("now", flush=True)
        store.audit.note("root", "::1", "add account", f"user-{number}")
"""


def test_a_process_that_is_killed_leaves_whole_transactions(tmp_path: Path) -> None:
    path = tmp_path / "console.db"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "now\n"
        writer.kill()
    store = ConsoleStore(path)
    names = {a.name for a in store.accounts.all()}
    assert len(names) >= 20
    assert names == {entry.about for entry in store.audit.page(limit=1_000_000).items}
    store.close()


def test_a_revoked_token_stays_revoked_for_other_processes(console: Console, clock: Clock) -> None:
    token, secret = console.store.tokens.make("me", None)
    other = ConsoleStore(console.path, now=clock.now)  # as the command opens it
    assert console.browser().me(Authorization=f"Bearer {secret}").status_code == 200
    other.tokens.revoke(token.id)
    other.close()
    assert console.browser().me(Authorization=f"Bearer {secret}").status_code == 401


# -- the audit log -----------------------------------------------------------------------------------
def test_entries_are_neither_changed_nor_removed(console: Console) -> None:
    console.store.audit.note("ann", "::1", "login")
    db = sqlite3.connect(console.path)
    for statement in ("UPDATE audit SET who = 'nobody'", "DELETE FROM audit"):
        with pytest.raises(sqlite3.IntegrityError, match="only added to"):
            db.execute(statement)
    db.close()


def test_only_the_newest_hundred_thousand_are_kept(console: Console) -> None:
    db = sqlite3.connect(console.path)
    with db:
        db.executemany(
            "INSERT INTO audit (time, who, address, what, about, outcome) VALUES ('2026-11-15', '', '', '', ?, '')",
            [(str(number),) for number in range(database.KEPT)],
        )
    console.store.audit.note("ann", "::1", "login", "the last")
    count, oldest = db.execute("SELECT count(*), min(id) FROM audit").fetchone()
    db.close()
    assert (count, oldest) == (database.KEPT, 2)
    assert console.store.audit.page(limit=1).items[0].about == "the last"


# -- passwords ---------------------------------------------------------------------------------------
class Counting(PasswordHasher):
    """Notes the parameters of each hash that a password was held against: they decide how long it takes."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.verified: list[str] = []

    def verify(self, hash: str | bytes, password: str | bytes) -> Any:
        self.verified.append(str(hash).rpartition("p=")[0])
        return super().verify(hash, password)


def test_names_that_do_not_exist_take_the_same_work_as_others(tmp_path: Path) -> None:
    hasher = Counting()
    store = ConsoleStore(tmp_path / "console.db", passwords=lambda: Passwords(hasher))
    for name in ("ann", "off"):
        store.accounts.add(name, Role.USER, store.accounts.hash(PASSWORD))
    store.accounts.change("off", disabled=True)
    for name, password in (("ann", "wrong"), ("off", PASSWORD), ("nobody", PASSWORD), ("\0", PASSWORD)):
        assert store.accounts.log_in(name, password, lambda account: account) is None
    assert len(hasher.verified) == 4
    assert len(set(hasher.verified)) == 1
    store.close()


def test_a_password_is_hashed_anew_when_the_parameters_have_changed(tmp_path: Path) -> None:
    path = tmp_path / "console.db"
    old = ConsoleStore(path, passwords=quick_passwords)
    old.accounts.add("ann", Role.USER, old.accounts.hash(PASSWORD))
    old.close()
    stronger = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1)
    new = ConsoleStore(path, passwords=lambda: Passwords(stronger))
    assert new.accounts.log_in("ann", "a wrong one", lambda account: account.name) is None
    assert _stored(path).startswith("$argon2id$v=19$m=8,t=1")
    for _ in range(2):
        assert new.accounts.log_in("ann", PASSWORD, lambda account: account.name) == "ann"
        assert _stored(path).startswith("$argon2id$v=19$m=16,t=2")
    new.close()


def _stored(path: Path) -> str:
    db = sqlite3.connect(path)
    found = db.execute("SELECT password FROM accounts").fetchone()[0]
    db.close()
    return str(found)


def test_the_real_parameters_are_those_of_rfc_9106() -> None:
    assert Passwords().hash("a password").startswith("$argon2id$v=19$m=65536,t=3,p=4$")


def test_a_flood_of_logins_is_turned_away_instead_of_filling_the_memory(console: Console) -> None:
    console.account("ann")
    passwords = console.store.accounts._passwords()
    while passwords._room.acquire(blocking=False):  # as many as may wait
        pass
    browser = console.browser()
    answers = [browser.log_in("ann").status_code for _ in range(10)]
    assert answers == [429] * 10
    while passwords._room_of_known.acquire(blocking=False):
        pass
    with pytest.raises(ThrottledError):
        passwords.hash(PASSWORD)
    for _ in range(3):
        passwords._room.release()
    assert browser.log_in("ann").status_code == 200  # none of them was counted as a failure
