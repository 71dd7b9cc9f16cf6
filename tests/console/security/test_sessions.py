"""Coming in by password and by link, staying in, and being put out."""

from __future__ import annotations

import getpass
import http.cookies
import sqlite3
import threading

import pytest

from oarsman.service.models import Role

from .console import OWN, PASSWORD, Clock, Console

COOKIE = "oarsman-8080"


def test_name_and_password_open_a_session(console: Console) -> None:
    console.account("ann", Role.ADMIN)
    browser = console.browser()
    assert browser.me().status_code == 401
    answer = browser.log_in("ann")
    assert answer.json() == {"name": "ann", "role": "admin"} == browser.me().json()
    assert console.audited() == [("ann", "login", "", "ok")]


def test_the_cookie_is_for_this_server_and_no_script(console: Console) -> None:
    console.account("ann")
    set_cookie = console.browser().log_in("ann").headers["set-cookie"]
    name, *attributes = [part.strip() for part in set_cookie.split(";")]
    assert name.startswith(f"{COOKIE}=")
    assert len(name.partition("=")[2]) == 43
    assert set(attributes) == {"HttpOnly", "Max-Age=604800", "Path=/", "SameSite=lax"}


def test_over_tls_the_cookie_is_secure_and_of_this_host_alone(tmp_path, clock: Clock) -> None:  # type: ignore[no-untyped-def]
    console = Console(tmp_path / "console.db", clock, tls=True)
    console.account("ann")
    browser = console.browser(headers={**OWN, "Origin": "https://127.0.0.1:8080"})
    set_cookie = browser.log_in("ann").headers["set-cookie"]
    assert set_cookie.startswith("__Host-oarsman-8080=")
    assert "; Secure" in set_cookie
    assert "Domain" not in set_cookie
    assert browser.ask("DELETE", "/api/v1/session").headers["set-cookie"].startswith('__Host-oarsman-8080=""')
    console.store.close()


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("ann", "wrong password"),
        ("nobody", PASSWORD),
        ("", ""),
        ("ann", ""),
        ("ann\0", PASSWORD),
        ("ann'--", PASSWORD),
        ("off", PASSWORD),
    ],
)
def test_what_was_wrong_with_a_login_is_not_told(console: Console, name: str, password: str) -> None:
    console.account("ann")
    console.account("off")
    console.store.accounts.change("off", disabled=True)
    answer = console.browser().log_in(name, password)
    assert (answer.status_code, answer.json()["detail"]) == (401, "name or password is wrong")
    assert "set-cookie" not in answer.headers


def test_a_planted_session_does_not_become_the_victims(console: Console) -> None:
    attacker = console.logged_in("mallory")
    planted = dict(attacker.cookies)
    console.account("ann")
    victim = console.browser(cookies=dict(planted))
    victim.log_in("ann")
    assert victim.cookies != planted
    assert victim.me().json()["name"] == "ann"
    assert attacker.me().status_code == 401  # and the planted one has ended

    made_up = {COOKIE: "A" * 43}
    victim = console.browser(cookies=dict(made_up))
    victim.log_in("ann")
    assert victim.cookies != made_up
    assert console.browser(cookies=made_up).me().status_code == 401


def test_a_session_ends_when_told(console: Console) -> None:
    browser = console.logged_in("ann")
    kept = dict(browser.cookies)
    assert browser.ask("DELETE", "/api/v1/session").status_code == 204
    assert console.browser(cookies=kept).me().status_code == 401
    assert console.audited()[0] == ("ann", "logout", "", "ok")


def test_a_session_ends_after_twelve_idle_hours_or_seven_days(console: Console, clock: Clock) -> None:
    idle, busy = console.logged_in("ann"), console.logged_in("ben")
    for _ in range(14):
        clock.move(hours=11, minutes=59)
        assert busy.me().status_code == 200
    assert idle.me().status_code == 401
    clock.move(minutes=20)
    assert busy.me().status_code == 401


def test_an_idle_session_lasts_just_under_twelve_hours(console: Console, clock: Clock) -> None:
    browser = console.logged_in("ann")
    clock.move(hours=11, minutes=59)
    assert browser.me().status_code == 200
    clock.move(hours=12)
    assert browser.me().status_code == 401


def test_a_new_password_and_being_disabled_end_all_sessions(console: Console) -> None:
    first, second = console.logged_in("ann"), console.browser()
    second.log_in("ann")
    other = console.logged_in("ben")
    accounts = console.store.accounts
    accounts.change("ann", hashed_password=accounts.hash("another password"))
    assert [b.me().status_code for b in (first, second, other)] == [401, 401, 200]
    assert first.log_in("ann", "another password").status_code == 200
    accounts.change("ann", disabled=True)
    accounts.change("ann", disabled=False)
    assert first.me().status_code == 401


def test_a_new_role_counts_at_once_and_a_stream_can_tell(console: Console) -> None:
    from starlette.requests import Request

    browser = console.logged_in("ann", Role.ADMIN)
    console.account("boss", Role.ADMIN)
    cookie = f"{COOKIE}={browser.cookies[COOKIE]}".encode()
    request = Request({"type": "http", "method": "GET", "headers": [(b"cookie", cookie)]})
    caller = console.gate.caller(request)
    assert console.gate.still_holds(caller)
    console.store.accounts.change("ann", role=Role.VIEWER)
    assert browser.me().json()["role"] == "viewer"
    assert not console.gate.still_holds(caller)
    assert browser.get("/api/v1/accounts").status_code == 403


def test_a_password_that_changes_during_a_login_opens_nothing(console: Console) -> None:
    console.account("ann")
    accounts = console.store.accounts
    passwords = accounts._passwords()
    fits = passwords.fits

    def slow(stored: str | None, password: str, *, known: str) -> bool:
        found = fits(stored, password)
        accounts.change("ann", hashed_password=accounts.hash("another password"))
        return found

    passwords.fits = slow  # type: ignore[method-assign]
    assert console.browser().log_in("ann").status_code == 401


def test_many_logins_at_once_get_a_session_each(console: Console) -> None:
    console.account("ann")
    browsers = [console.browser(address=f"10.0.0.{n}") for n in range(4)]
    threads = [threading.Thread(target=browser.log_in, args=("ann",)) for browser in browsers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [browser.me().status_code for browser in browsers] == [200] * 4
    assert len({browser.cookies[COOKIE] for browser in browsers}) == 4


def test_the_sessions_of_an_account_are_bounded(console: Console) -> None:
    first = console.logged_in("ann")
    for _ in range(60):
        console.store.sessions.open("ann", "ann")
    with sqlite3.connect(console.path) as db:
        assert db.execute("SELECT count(*) FROM sessions").fetchone() == (50,)
    db.close()
    assert first.me().status_code == 401


# -- one-time links ----------------------------------------------------------------------------------


def test_a_link_opens_the_console_once_for_the_owner_of_the_machine(console: Console) -> None:
    link = console.gate.new_link()
    assert link.startswith("http://127.0.0.1:8080/login/once?key=")
    browser = console.browser(headers={})
    answer = browser.get(link)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert answer.headers["cache-control"] == "no-store"
    assert browser.me().json() == {"name": getpass.getuser(), "role": "admin"}
    again = console.browser(headers={})
    assert again.get(link).status_code == 401
    assert again.cookies == {}


def test_a_link_is_good_for_ten_minutes(console: Console, clock: Clock) -> None:
    early, late = console.gate.new_link(), console.gate.new_link()
    clock.move(minutes=9, seconds=59)
    assert console.browser().get(early).status_code == 303
    clock.move(seconds=1)
    assert console.browser().get(late).status_code == 401


def test_of_many_who_open_a_link_one_comes_in(console: Console) -> None:
    key = console.store.links.make("me")
    got: list[str | None] = []
    threads = [threading.Thread(target=lambda: got.append(console.store.links.burn(key))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got, key=str) == [None] * 7 + ["me"]


def test_guessing_keys_does_not_flood_the_audit_log(console: Console) -> None:
    stranger = console.browser(address="10.6.6.6")
    answers = [stranger.get("/login/once?key=guess").status_code for _ in range(105)]
    assert answers == [401] * 100 + [429] * 5
    assert len(console.audited()) == 10
    assert console.browser().get(console.gate.new_link()).status_code == 303


def test_the_owner_can_come_in_by_link_where_there_are_accounts_too(console: Console) -> None:
    console.account(getpass.getuser(), Role.VIEWER)  # of the same name, and yet somebody else
    owner = console.owner()
    assert owner.me().json()["role"] == "admin"
    made = owner.ask("POST", "/api/v1/tokens", {}).json()
    assert console.browser().me(Authorization=f"Bearer {made['secret']}").json()["role"] == "admin"
    viewer = console.browser()
    viewer.log_in(getpass.getuser())
    assert viewer.get("/api/v1/tokens").json() == []
    assert viewer.ask("DELETE", f"/api/v1/tokens/{made['token']['id']}").status_code == 404


def test_long_cookies_and_those_of_others_are_not_unquoted(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes older Pythons seconds, for whoever sends one of backslashes."""
    real = http.cookies._unquote  # type: ignore[attr-defined]

    def unquoted(value: str) -> str:
        assert len(value) < 300
        return str(real(value))

    browser = console.logged_in("ann")
    monkeypatch.setattr("http.cookies._unquote", unquoted)
    long = '"' + "\\" * 60_000 + '"'
    mine = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    assert browser.me(Cookie=f"other={long}; {mine}; oarsman-1={long}").status_code == 200
