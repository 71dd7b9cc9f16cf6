"""What somebody without an account cannot fill: the audit log, the room for passwords, what is known of tokens."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher

from oarsman.backends.kube.identity import TokenOwner
from oarsman.console.security.accounts import Passwords
from oarsman.console.security.credentials import ClusterTokens
from oarsman.console.security.store import ConsoleStore
from oarsman.errors import ThrottledError
from oarsman.service.models import Role

from .console import PASSWORD, Clock, Console


def refusals(console: Console) -> list[tuple[str, str, str, str]]:
    return [entry for entry in console.audited() if entry[3] == "refused"]


def test_a_flood_of_refused_logins_is_told_in_a_few_entries_a_minute(console: Console, clock: Clock) -> None:
    console.account("ann")
    for number in range(40):
        assert console.browser(address=f"10.0.0.{number}").log_in(f"junk-{number}").status_code == 401
    assert len(refusals(console)) == 10
    clock.move(minutes=1)
    console.browser(address="10.0.1.1").log_in("ann", "wrong one")
    assert refusals(console)[:2] == [("ann", "login", "", "refused"), ("", "login", "30 more", "refused")]
    assert console.store.audit.page(limit=2).items[1].address == "30 addresses"


def test_wrong_links_and_what_was_done_are_told_in_the_same_log(console: Console) -> None:
    for number in range(40):
        console.browser(address=f"10.0.0.{number}").get(f"/login/once?key={number}")
    console.logged_in("ann")  # somebody who comes in is always noted, and what was left out before that
    assert console.audited()[:2] == [("ann", "login", "", "ok"), ("", "login", "30 more", "refused")]
    assert len(refusals(console)) == 11


def test_what_was_left_out_is_told_when_the_server_ends(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "console.db"
    store = ConsoleStore(path, now=clock.now)
    for number in range(12):
        store.audit.refused(f"junk-{number}", "10.0.0.1", "login")
    store.close()
    again = ConsoleStore(path, now=clock.now)
    entry = again.audit.page().items[0]
    again.close()
    assert (entry.about, entry.address) == ("2 more", "10.0.0.1")


def test_strangers_who_fill_the_room_for_passwords_leave_some_for_those_who_are_known() -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> Any:
            entered.set()
            leave.wait(30)
            return True

    passwords = Passwords(Slow(time_cost=1, memory_cost=8, parallelism=1))
    stored = passwords.hash(PASSWORD)
    strangers = [threading.Thread(target=passwords.fits, args=(stored, "guess")) for _ in range(passwords._room._value)]
    for stranger in strangers:
        stranger.start()
    try:
        assert entered.wait(30)
        while passwords._room._value:
            pass
        with pytest.raises(ThrottledError):
            passwords.fits(stored, PASSWORD)
        answers: list[bool] = []
        known = threading.Thread(target=lambda: answers.append(passwords.fits(stored, PASSWORD, known="ann")))
        known.start()
    finally:
        leave.set()
        for stranger in strangers:
            stranger.join()
    known.join()
    assert answers == [True]


def test_junk_does_not_make_the_cluster_forget_whose_a_good_token_is() -> None:
    counted: list[str] = []
    tokens = ClusterTokens(lambda token: TokenOwner("ann", None) if token == "good" else None)

    def known(token: str) -> TokenOwner | None:
        return tokens.known(token, count=lambda: counted.append(token), uncount=lambda: counted.remove(token))

    assert known("good") is not None
    for number in range(5000):
        known(f"junk-{number}")
    counted.clear()

    def refuse() -> None:
        raise ThrottledError("too many", retry_after=1)

    assert tokens.known("good", count=refuse, uncount=lambda: None) is not None
    with pytest.raises(ThrottledError):
        tokens.known("another", count=refuse, uncount=lambda: None)


def test_whoever_knows_a_password_takes_no_more_of_that_room_than_two_places() -> None:
    """With the right one nobody is slowed: it could be filled for ever, and the others would be kept out."""
    entered, leave = threading.Semaphore(0), threading.Event()

    class Slow(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> Any:
            entered.release()
            leave.wait(30)
            return True

    passwords = Passwords(Slow(time_cost=1, memory_cost=8, parallelism=1))
    stored = passwords.hash(PASSWORD)
    refused: list[str] = []

    def enter(name: str) -> None:
        try:
            passwords.fits(stored, PASSWORD, known=name)
        except ThrottledError:
            refused.append(name)

    many = [threading.Thread(target=enter, args=(name,)) for name in ("vera", "vera", "vera", "vera", "ann")]
    for one in many:
        one.start()
    try:
        assert entered.acquire(timeout=30)
        while len(refused) < 2:
            pass
        with pytest.raises(ThrottledError):
            passwords.hash("another", known="vera")
    finally:
        leave.set()
        for one in many:
            one.join()
    assert refused == ["vera", "vera"]
    assert passwords.fits(stored, PASSWORD, known="vera")


def test_nobody_pushes_out_of_the_log_what_others_did(console: Console, clock: Clock) -> None:
    """To make a token and revoke it takes milliseconds, and leaves two entries."""
    vera, ann = console.logged_in("vera", Role.VIEWER), console.logged_in("ann")
    made = 0
    while (answer := vera.ask("POST", "/api/v1/tokens", {})).status_code == 201:
        vera.ask("DELETE", f"/api/v1/tokens/{answer.json()['token']['id']}")
        made += 1
    assert (answer.status_code, made) == (429, 500)
    assert ann.ask("POST", "/api/v1/tokens", {}).status_code == 201
    clock.move(hours=1)
    assert vera.ask("POST", "/api/v1/tokens", {}).status_code == 201


def test_nobody_comes_in_more_often_than_some_hundred_times_an_hour(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oarsman.console.security.database.OFTEN_AN_HOUR", 3)
    console.account("vera")
    assert [console.browser().log_in("vera").status_code for _ in range(4)] == [200, 200, 200, 429]
