"""`oarsman users` and `oarsman tokens`: the console's doors, from the machine it runs on."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from oarsman.cli.text import t
from oarsman.console.security.store import ConsoleStore
from oarsman.service.models import Role

from .fakes import NOW, FakeJobs, oarsman

SECRET = "correct horse battery"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OARSMAN_STATE", str(tmp_path / "state"))


def call(*words: str, stdin: str | None = None) -> Result:
    return oarsman(FakeJobs(), *words, stdin=stdin)


def add(name: str, role: str = "user", password: str = SECRET) -> Result:
    return call("users", "add", name, "--role", role, "--password-stdin", stdin=password + "\n")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConsoleStore]:
    (tmp_path / "state").mkdir()
    opened = ConsoleStore(tmp_path / "state" / "console.db", now=lambda: NOW)
    yield opened
    opened.close()


def enters(store: ConsoleStore, name: str, password: str = SECRET) -> bool:
    return store.accounts.log_in(name, password, lambda account: True) is True


def test_an_account_is_made_listed_changed_and_removed(store: ConsoleStore) -> None:
    assert add("ann", "admin").stdout == "ann can log in, as admin\n"
    assert add("ben").stdout == "ben can log in, as user\n"
    assert enters(store, "ben")
    assert call("users", "role", "ben", "viewer").stdout == "ben has the role viewer\n"
    assert call("users", "disable", "ben").exit_code == 0
    assert not enters(store, "ben")
    rows = [line.split() for line in call("users", "list").stdout.splitlines()]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("NAME", "ROLE", "STATE"),
        ("ann", "admin", "enabled"),
        ("ben", "viewer", "disabled"),
    ]
    assert call("users", "enable", "ben").exit_code == 0
    assert enters(store, "ben")
    assert call("users", "remove", "ben").stdout == "ben is removed\n"
    assert [account["name"] for account in json.loads(call("users", "list", "-o", "json").stdout)] == ["ann"]
    assert [entry.what for entry in store.audit.page().items] == [
        "remove account",
        "change account",
        "change account",
        "change account",
        "add account",
        "add account",
    ]
    assert {entry.address for entry in store.audit.page().items} == {"command"}


def test_a_new_password_replaces_the_old_one_and_ends_sessions(store: ConsoleStore) -> None:
    add("ann")
    cookie = store.sessions.open("ann", "ann")
    from oarsman.console.security.database import hashed

    assert store.sessions.holder(hashed(cookie)) is not None
    assert call("users", "passwd", "ann", "--password-stdin", stdin="another password\r\n").exit_code == 0
    assert store.sessions.holder(hashed(cookie)) is None
    assert not enters(store, "ann")
    assert enters(store, "ann", "another password")


@pytest.mark.parametrize(
    ("words", "stdin", "code", "said"),
    [
        (("users", "add", "ann"), "", 2, "there is no terminal"),
        (("users", "add", "ann", "--password-stdin"), "short\n", 2, "8 to 1024 characters"),
        (("users", "add", "ann", "--password-stdin"), "", 2, "8 to 1024 characters"),
        (("users", "add", "a b", "--password-stdin"), SECRET, 2, "a name has at most"),
        (("users", "add", "ann", "--role", "king"), "", 2, "--role takes one of: viewer, user, admin"),
        (("users", "remove", "nobody"), "", 4, "there is no account of that name"),
        (("users", "passwd", "nobody"), "", 4, "there is no account of that name"),
        (("users", "role", "nobody", "user"), "", 4, "there is no account of that name"),
        (("users", "lst"), "", 2, "there is no verb 'users lst'"),
        (("tokens", "revoke", "oar_nothing"), "", 4, "there is no such token"),
        (("tokens", "add", "--user", "nobody"), "", 4, "there is no account of that name"),
        (("tokens", "add", "--note", "x" * 201), "", 2, "at most 200 characters"),
        (("tokens", "add", "--days", "0"), "", 2, "--days takes a whole number"),
        (("tokens", "link"), "", 2, "no console was ever started here"),
    ],
)
def test_mistakes_are_explained(words: tuple[str, ...], stdin: str, code: int, said: str) -> None:
    result = call(*words, stdin=stdin)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr


@pytest.mark.parametrize("words", [("remove", "ann"), ("disable", "ann"), ("role", "ann", "user")])
def test_the_last_admin_stays(store: ConsoleStore, words: tuple[str, ...]) -> None:
    add("ann", "admin")
    result = call("users", *words)
    assert (result.exit_code, result.stderr.splitlines()[0]) == (5, "error: ann is the last admin")
    assert store.accounts.get("ann").role is Role.ADMIN
    assert [entry.what for entry in store.audit.page().items] == ["add account"]


def test_a_name_is_taken_once() -> None:
    add("ann")
    assert add("ANN").exit_code == 5


def test_without_accounts_the_list_says_how_to_come_in() -> None:
    result = call("users", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "oarsman tokens link" in result.stderr
    assert json.loads(call("users", "list", "-o", "json").stdout) == []


@pytest.mark.parametrize("name", ["users", "tokens"])
def test_without_a_verb_the_page_is_shown(name: str) -> None:
    result = call(name)
    assert (result.exit_code, result.stdout) == (0, call(name, "--help").stdout)
    assert "\nVerbs:\n  add " in result.stdout


def test_a_token_is_printed_alone_so_that_a_script_can_keep_it(store: ConsoleStore) -> None:
    from oarsman.console.security.database import hashed

    add("ben", "viewer")
    mine = call("tokens", "add", "--note", "nightly", "--days", "3")
    bens = call("tokens", "add", "--user", "BEN", "-q")
    assert "shown only now" in mine.stderr
    assert bens.stderr == ""
    held = [store.tokens.holder(hashed(result.stdout.rstrip("\n"))) for result in (mine, bens)]
    assert [(h.account, h.identity.role) for h in held if h] == [(None, Role.ADMIN), ("ben", Role.VIEWER)]
    listed = json.loads(call("tokens", "list", "-o", "json").stdout)
    assert [(token["note"], token["expires"] is None) for token in listed] == [("nightly", False), ("", True)]
    assert all(result.stdout.strip() not in call("tokens", "list").stdout for result in (mine, bens))
    assert call("tokens", "revoke", *(token["id"] for token in listed)).exit_code == 0
    assert store.tokens.all() == []
    assert "no tokens" in call("tokens", "list").stderr


def test_a_token_for_programs_comes_as_json() -> None:
    made = json.loads(call("tokens", "add", "-o", "json").stdout)
    assert made["secret"].startswith(made["token"]["id"])


def test_a_link_leads_to_the_server_and_is_good_once(store: ConsoleStore) -> None:
    store.links.serve_at("http://127.0.0.1:8080")
    link = call("tokens", "link").stdout.rstrip("\n")
    assert link.startswith("http://127.0.0.1:8080/login/once?key=")
    key = link.partition("key=")[2]
    assert [bool(store.links.burn(key)) for _ in range(2)] == [True, False]


def test_results_are_chinese_for_chinese_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t, "language", "zh")
    assert add("ann", "admin").stdout == "ann 可以登录，角色为 admin\n"


def test_without_argon2_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "argon2", None)
    result = add("ann")
    assert result.exit_code == 2
    assert "pip install 'oarsman[console]'" in result.stderr


# -- on a real terminal ------------------------------------------------------------------------------
def on_terminal(*words: str, typed: list[str]) -> tuple[int, str]:
    """Answers each question when it has been asked; the exit code and all that was to be seen."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "oarsman.cli", *words]
    environment = {**os.environ, "OARSMAN_LANG": "en"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                piece = os.read(ours, 1000)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            seen += piece
            if typed and seen.endswith(b": "):  # the blank comes when nothing typed is shown or lost any more
                os.write(ours, typed.pop(0).encode() + b"\n")
        code = process.wait()
    os.close(ours)
    return code, seen.decode()


def test_a_password_is_asked_for_twice_and_never_shown(store: ConsoleStore) -> None:
    code, seen = on_terminal("users", "add", "ann", typed=[SECRET, SECRET])
    assert (code, SECRET in seen) == (0, False)
    assert seen.replace("\r", "").split("\n") == ["Password: ", "Once more: ", "ann can log in, as user", ""]
    assert enters(store, "ann")


def test_two_different_passwords_make_no_account(store: ConsoleStore) -> None:
    code, seen = on_terminal("users", "add", "ann", typed=[SECRET, "correct horse bakery"])
    assert code == 2
    assert "the two passwords are not the same" in seen
    assert store.accounts.all() == []
