"""Accounts, tokens and the audit log through the API, for each role."""

from __future__ import annotations

from typing import Any

import pytest

from oarsman.console.security.database import plain
from oarsman.errors import ConflictError, NotFoundError, UsageError
from oarsman.service.models import Role

from .console import PASSWORD, Browser, Clock, Console

NEW = {"name": "new", "password": PASSWORD, "role": "viewer"}


def test_an_admin_makes_changes_and_removes_accounts(console: Console) -> None:
    admin = console.logged_in("ann", Role.ADMIN)
    made = admin.ask("POST", "/api/v1/accounts", NEW)
    assert made.status_code == 201
    assert made.json() == {"name": "new", "role": "viewer", "created": "2026-11-15T12:00:00Z", "disabled": False}
    assert admin.ask("POST", "/api/v1/accounts", NEW).status_code == 409
    change = {"role": "user", "disabled": True, "password": "another password"}
    assert admin.ask("PATCH", "/api/v1/accounts/new", change).json()["disabled"] is True
    assert [a["name"] for a in admin.get("/api/v1/accounts").json()] == ["ann", "new"]
    assert admin.ask("DELETE", "/api/v1/accounts/new").status_code == 204
    assert admin.ask("DELETE", "/api/v1/accounts/new").status_code == 404
    assert console.audited()[:3] == [
        ("ann", "remove account", "new", "ok"),
        ("ann", "change account", "new: role user, new password, disabled", "ok"),
        ("ann", "add account", "new as viewer", "ok"),
    ]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.USER])
def test_others_learn_and_change_nothing_about_accounts(console: Console, role: Role) -> None:
    other = console.logged_in("ben", role)
    asked: list[tuple[str, str, Any]] = [
        ("GET", "/api/v1/accounts", None),
        ("POST", "/api/v1/accounts", NEW),
        ("PATCH", "/api/v1/accounts/ben", {"role": "admin"}),
        ("DELETE", "/api/v1/accounts/ben", None),
        ("PATCH", "/api/v1/accounts/nobody", {}),
        ("GET", "/api/v1/audit", None),
    ]
    assert {other.ask(*what).status_code for what in asked} == {403}
    assert [(a.name, a.role) for a in console.store.accounts.all()] == [("ben", role)]


@pytest.mark.parametrize("change", [{"role": "user"}, {"disabled": True}, {"role": "viewer", "disabled": True}, None])
def test_the_last_admin_stays(console: Console, change: dict[str, Any] | None) -> None:
    admin = console.logged_in("ann", Role.ADMIN)
    console.account("off", Role.ADMIN)
    console.store.accounts.change("off", disabled=True)  # an admin who cannot log in is none
    method = "PATCH" if change else "DELETE"
    assert admin.ask(method, "/api/v1/accounts/ann", change).status_code == 409
    assert admin.me().json()["role"] == "admin"
    console.store.accounts.change("off", disabled=False)
    assert admin.ask(method, "/api/v1/accounts/ann", change).is_success


def test_a_name_differs_from_others_in_more_than_capitals(console: Console) -> None:
    console.account("Ann")
    with pytest.raises(ConflictError):
        console.account("aNN")
    browser = console.browser()
    assert browser.log_in("ANN").json()["name"] == "Ann"


@pytest.mark.parametrize("name", ["", "-x", "a b", "a\n", "a\0", "é", "x" * 64, "../x", "a'b", "\ud800"])
def test_odd_names_are_refused_or_unknown(console: Console, name: str) -> None:
    with pytest.raises(UsageError):
        console.account(name)
    with pytest.raises(NotFoundError):
        console.store.accounts.get(name)


@pytest.mark.parametrize("password", ["", "short", "x" * 1025])
def test_passwords_are_neither_short_nor_endless(console: Console, password: str) -> None:
    admin = console.logged_in("ann", Role.ADMIN)
    assert admin.ask("POST", "/api/v1/accounts", {**NEW, "password": password}).status_code == 422
    with pytest.raises(UsageError):
        console.account("new", password=password)


def test_an_answer_to_a_mistake_does_not_repeat_the_password(console: Console) -> None:
    admin = console.logged_in("ann", Role.ADMIN)
    answer = admin.ask("POST", "/api/v1/accounts", {**NEW, "name": "a b", "password": "my secret words"})
    assert answer.status_code == 422
    assert "secret" not in answer.text


# -- tokens ------------------------------------------------------------------------------------------
def bearer(console: Console, secret: str) -> Browser:
    return Browser(console, headers={"Authorization": f"Bearer {secret}"})


def test_a_token_speaks_for_its_owner_until_it_is_revoked(console: Console) -> None:
    browser = console.logged_in("ben")
    made = browser.ask("POST", "/api/v1/tokens", {"note": "nightly"}).json()
    secret, id = made["secret"], made["token"]["id"]
    assert secret.startswith("oar_")
    assert len(secret) == 47
    assert secret.startswith(id)
    program = bearer(console, secret)
    assert program.me().json() == {"name": "ben", "role": "user"}
    listed = browser.get("/api/v1/tokens").json()
    assert [(t["id"], t["owner"], t["note"]) for t in listed] == [(id, "ben", "nightly")]
    assert secret not in str(listed)
    assert browser.ask("DELETE", f"/api/v1/tokens/{id}").status_code == 204
    assert program.me().status_code == 401


def test_a_token_expires(console: Console, clock: Clock) -> None:
    browser = console.logged_in("ben")
    made = browser.ask("POST", "/api/v1/tokens", {"days": 2}).json()
    program = bearer(console, made["secret"])
    clock.move(days=1, hours=23)
    assert program.me().status_code == 200
    clock.move(hours=1)
    assert program.me().status_code == 401


def test_a_token_ends_with_its_account_and_rests_while_that_is_disabled(console: Console) -> None:
    console.account("ben")
    _, secret = console.store.tokens.make("ben", "ben")
    program = bearer(console, secret)
    console.store.accounts.change("ben", disabled=True)
    assert program.me().status_code == 401
    console.store.accounts.change("ben", disabled=False)
    assert program.me().status_code == 200
    console.store.accounts.remove("ben")
    assert program.me().status_code == 401
    console.account("ben")  # of the same name, but somebody else
    assert program.me().status_code == 401


def test_only_an_admin_sees_and_revokes_the_tokens_of_others(console: Console) -> None:
    ben, eve = console.logged_in("ben"), console.logged_in("eve", Role.VIEWER)
    admin = console.logged_in("ann", Role.ADMIN)
    id = ben.ask("POST", "/api/v1/tokens", {}).json()["token"]["id"]
    assert eve.get("/api/v1/tokens").json() == []
    assert eve.ask("DELETE", f"/api/v1/tokens/{id}").status_code == 404
    assert [t["owner"] for t in admin.get("/api/v1/tokens").json()] == ["ben"]
    assert admin.ask("DELETE", f"/api/v1/tokens/{id}").status_code == 204


def test_a_stolen_token_cannot_hand_out_access(console: Console) -> None:
    console.account("ann", Role.ADMIN)
    console.account("ben")
    _, secret = console.store.tokens.make("ann", "ann")
    thief = bearer(console, secret)
    asked: list[tuple[str, str, Any]] = [
        ("POST", "/api/v1/tokens", {}),
        ("POST", "/api/v1/accounts", NEW),
        ("PATCH", "/api/v1/accounts/ann", {"password": "another password"}),
        ("PATCH", "/api/v1/accounts/ben", {"role": "admin"}),
        ("PATCH", "/api/v1/accounts/ben", {"disabled": False}),
        ("DELETE", "/api/v1/session", None),
    ]
    assert {thief.ask(*what).status_code for what in asked} == {403}
    assert thief.ask("PATCH", "/api/v1/accounts/ben", {"disabled": True}).status_code == 200  # access can be ended


def test_the_last_use_is_written_at_most_once_a_minute(console: Console, clock: Clock) -> None:
    console.account("ben")
    token, secret = console.store.tokens.make("ben", "ben")
    seen = []
    for _ in range(5):
        bearer(console, secret).me()
        seen.append(console.store.tokens.get(token.id).last_used)
        clock.move(seconds=25)
    assert [(t - seen[0]).total_seconds() for t in seen if t and seen[0]] == [0, 0, 0, 75, 75]


def test_tokens_are_bounded(console: Console) -> None:
    console.account("ben")
    for _ in range(200):
        console.store.tokens.make("ben", "ben")
    with pytest.raises(ConflictError, match="200"):
        console.store.tokens.make("ben", "ben")


# -- audit -------------------------------------------------------------------------------------------
def test_the_audit_log_is_paged_and_stable_while_it_grows(console: Console) -> None:
    admin = console.logged_in("ann", Role.ADMIN)
    for number in range(9):
        console.store.audit.note("ben", "::1", "submit", str(number))
    first = admin.get("/api/v1/audit?limit=4").json()
    console.store.audit.note("ben", "::1", "submit", "meanwhile")
    second = admin.get(f"/api/v1/audit?limit=4&cursor={first['next']}").json()
    third = admin.get(f"/api/v1/audit?limit=4&cursor={second['next']}").json()
    found = [e["about"] for page in (first, second, third) for e in page["items"]]
    assert found == [*map(str, range(8, -1, -1)), ""]
    assert third["next"] is None


@pytest.mark.parametrize("query", ["cursor=x", "cursor=-1", "cursor=", "limit=0", "limit=1001", "cursor=" + "9" * 30])
def test_odd_pages_of_the_audit_log_are_refused(console: Console, query: str) -> None:
    assert console.logged_in("ann", Role.ADMIN).get(f"/api/v1/audit?{query}").status_code == 422


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("ann", "ann"),
        ("刘", "刘"),
        ("a\nb", "a\\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\0", "\\x00"),
        ("\u202eevil", "\\u202eevil"),
        ("\u2028", "\\u2028"),
        ("\ud800", "\\ud800"),
        ("\x9b1m", "\\x9b1m"),
        ("\\n", "\\\\n"),
        ("\u200b", "\\u200b"),
        ("<b>", "<b>"),
        ("x" * 301, "x" * 301 + "..."),
    ],
)
def test_what_is_kept_in_the_audit_log_is_harmless_to_a_terminal(console: Console, value: str, kept: str) -> None:
    console.store.audit.note(value, "::1", "login", value)
    entry = console.store.audit.page().items[0]
    assert (entry.who, entry.about) == (kept, kept)


def test_an_endless_name_leaves_a_short_entry() -> None:
    assert len(plain("\x1b" * 10_000_000)) < 700


def test_a_login_under_an_odd_name_is_noted_in_plain_letters(console: Console) -> None:
    console.browser().log_in("\x1b]0;owned\x07\r\nroot login ok")
    assert console.audited() == [("\\x1b]0;owned\\x07\\r\\nroot login ok", "login", "", "refused")]
