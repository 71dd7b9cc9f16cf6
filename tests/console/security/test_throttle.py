"""Guessing is slowed, the right people are not."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from oarsman.console.security.throttle import Throttle, network
from oarsman.errors import ThrottledError

from .console import PASSWORD, Clock, Console

NAT = "203.0.113.9"  # that many people share


def wait(throttle: Throttle, address: str, name: str | None, browser: str = "") -> float:
    """Seconds until an attempt is admitted; 0: it was, and counts as failed."""
    try:
        throttle.begin(address, name, browser)
    except ThrottledError as error:
        return error.retry_after
    return 0.0


def enter(throttle: Throttle, address: str, name: str, browser: str = "") -> None:
    throttle.succeeded(throttle.begin(address, name, browser))


def admitted(throttle: Throttle, clock: Clock, address: str, name: str, *, hours: float) -> int:
    """How many guesses somebody gets in that time who always waits just as long as they are told."""
    end, count = clock.seconds() + hours * 3600, 0
    while clock.seconds() < end:
        waited = wait(throttle, address, name)
        count += waited == 0
        clock.move(seconds=waited)
    return count


def addresses(count: int) -> list[str]:
    return [f"10.{n // 65536}.{n // 256 % 256}.{n % 256}" for n in range(count)]


@pytest.fixture
def throttle(clock: Clock) -> Throttle:
    return Throttle(clock.seconds)


# -- one address, one account ------------------------------------------------------------------------
def test_after_five_failures_the_wait_doubles_until_five_an_hour_are_left(throttle: Throttle, clock: Clock) -> None:
    waits = []
    for _ in range(21):
        if waited := wait(throttle, "10.0.0.1", "ann"):
            waits.append(waited)
            clock.move(seconds=waited)
    assert [round(waited) for waited in waits] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert admitted(throttle, clock, "10.0.0.1", "ann", hours=24) <= 24 * 5 + 5


def test_an_attempt_that_came_too_early_does_not_count(throttle: Throttle, clock: Clock) -> None:
    for _ in range(5):
        throttle.begin("10.0.0.1", "ann")
    assert [wait(throttle, "10.0.0.1", "ann") for _ in range(100)] == [1.0] * 100
    clock.move(seconds=1)
    assert wait(throttle, "10.0.0.1", "ann") == 0


def test_failures_are_forgotten_after_an_hour(throttle: Throttle, clock: Clock) -> None:
    for _ in range(5):
        throttle.begin("10.0.0.1", "ann")
    clock.move(hours=1, seconds=1)
    assert [wait(throttle, "10.0.0.1", "ann") for _ in range(6)] == [0, 0, 0, 0, 0, 1]


def test_a_thousand_attempts_at_the_same_moment_are_five(throttle: Throttle) -> None:
    waits: list[float] = []
    threads = [
        threading.Thread(target=lambda: waits.extend(wait(throttle, "10.0.0.1", "ann") for _ in range(100)))
        for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert waits.count(0.0) == 5
    assert len(waits) == 1000


def test_a_success_forgives_only_what_was_failed_in_the_same_name(throttle: Throttle) -> None:
    for name in ["ann"] * 5 + ["mallory"] * 4:
        throttle.begin("10.0.0.1", name)
    enter(throttle, "10.0.0.1", "mallory")  # with an account of one's own, in between
    assert wait(throttle, "10.0.0.1", "ann") == 1
    assert [wait(throttle, "10.0.0.1", "mallory") for _ in range(6)] == [0, 0, 0, 0, 0, 1]


def test_an_attempt_that_was_none_is_taken_back(throttle: Throttle) -> None:
    for _ in range(300):
        throttle.take_back(throttle.begin("10.0.0.1", "ann"))
    assert [wait(throttle, "10.0.0.1", "ann") for _ in range(6)] == [0, 0, 0, 0, 0, 1]


# -- one address, many accounts ----------------------------------------------------------------------
def test_an_address_that_tries_many_names_is_slowed_as_well(throttle: Throttle, clock: Clock) -> None:
    tried = [wait(throttle, NAT, f"name-{n}") for n in range(101)]
    assert tried == [0] * 100 + [1]
    hour = clock.seconds() + 3600
    count = 0
    while clock.seconds() < hour:
        waited = wait(throttle, NAT, f"other-{count}")
        count += waited == 0
        clock.move(seconds=waited)
    assert count <= 370  # one in ten seconds, over all names


# -- many addresses, one account ---------------------------------------------------------------------
def test_an_account_waits_half_a_minute_at_most_whoever_fails_in_its_name(throttle: Throttle, clock: Clock) -> None:
    for address in addresses(500):  # a stranger with many addresses
        while waited := wait(throttle, address, "ann"):
            clock.move(seconds=waited)
    assert 0 < wait(throttle, "192.168.0.7", "ann") <= 30
    clock.move(seconds=30)
    assert wait(throttle, "192.168.0.7", "ann") == 0


def test_where_an_account_was_entered_before_strangers_do_not_slow_it(throttle: Throttle) -> None:
    enter(throttle, "192.168.0.7", "ann")
    for address in addresses(20):
        wait(throttle, address, "ann")
    assert wait(throttle, "192.168.0.8", "ann") > 0
    assert wait(throttle, "192.168.0.7", "ann") == 0


def test_nobody_takes_the_pass_of_somebody_elses_address(throttle: Throttle) -> None:
    enter(throttle, "192.168.0.7", "ann")
    for address in addresses(12_000):  # somebody with an account of their own and many addresses
        enter(throttle, address, "mallory")
    for address in addresses(20):
        wait(throttle, address, "ann")
    assert wait(throttle, "192.168.0.7", "ann") == 0


# -- junk --------------------------------------------------------------------------------------------
def test_a_flood_of_names_and_addresses_frees_no_guesser(throttle: Throttle, clock: Clock) -> None:
    while not wait(throttle, "10.200.0.1", "ann"):
        pass
    clock.move(seconds=1)
    assert wait(throttle, "10.200.0.1", "ann") == 0
    for number, address in enumerate(addresses(12_000)):
        wait(throttle, address, f"junk-{number}")
    assert wait(throttle, "10.200.0.1", "ann") == 2  # at its own address
    assert wait(throttle, "192.168.0.7", "ann") == 2  # and in its name
    assert wait(throttle, "192.168.0.7", "ben") == 0  # and those who did nothing are not slowed


def test_memory_is_bounded_whatever_is_tried(clock: Clock) -> None:
    throttle = Throttle(clock.seconds)
    size = throttle.size
    for number, address in enumerate(addresses(3000)):
        wait(throttle, address, f"name-{number}", f"cookie-{number}")
        enter(throttle, address, "ann", f"cookie-{number}")
    assert throttle.size - size <= 1 + 64  # ann, and places at which ann was, the newest


# -- one address, many people ------------------------------------------------------------------------
def test_one_persons_wrong_passwords_do_not_keep_out_others_at_the_same_address(throttle: Throttle) -> None:
    while not wait(throttle, NAT, "ann"):
        pass
    assert [wait(throttle, NAT, name) for name in ("ben", "cem", "dan")] == [0, 0, 0]


def test_while_an_address_is_slowed_those_who_were_in_from_there_are_not(throttle: Throttle) -> None:
    enter(throttle, NAT, "ben")
    for number in range(200):
        wait(throttle, NAT, f"name-{number}")
    assert 0 < wait(throttle, NAT, "cem") <= 10
    assert wait(throttle, NAT, "ben") == 0


def test_a_browser_that_was_in_does_not_wait_for_a_guesser_at_its_own_account_and_address(throttle: Throttle) -> None:
    throttle.welcome("ann", "cookie")
    while not wait(throttle, NAT, "ann"):
        pass
    assert [wait(throttle, NAT, "ann", "cookie") for _ in range(6)] == [0, 0, 0, 0, 0, 1]  # it is no way to guess
    assert wait(throttle, NAT, "ann", "made up") > 0
    assert wait(throttle, NAT, "ben", "cookie") == 0
    while not wait(throttle, "10.0.0.1", "ben"):
        pass
    assert wait(throttle, "10.0.0.2", "ben", "cookie") > 0  # it is a pass for one account


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
    ],
)
def test_whoever_has_one_ipv6_address_has_many(address: str, counted: str) -> None:
    assert network(address) == counted


# -- through the door --------------------------------------------------------------------------------
def test_a_guesser_is_told_when_to_come_again_and_the_right_password_waits_too(console: Console, clock: Clock) -> None:
    console.account("ann")
    stranger = console.browser(address="10.0.0.1")
    for _ in range(5):
        assert stranger.log_in("ann", "a wrong password").status_code == 401
    refused = stranger.log_in("ann", PASSWORD)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.headers["content-type"] == "application/problem+json"
    assert len(console.audited()) == 5
    clock.move(seconds=1)
    assert stranger.log_in("ann", PASSWORD).status_code == 200


def test_everybody_at_one_address_can_log_in_while_somebody_there_guesses(console: Console, clock: Clock) -> None:
    console.account("boss")
    known = console.logged_in("ann")
    clock.move(hours=13)  # its session has ended, its cookie is still there
    for _ in range(40):
        console.browser().log_in("boss", "a wrong password")
        console.browser().log_in("ann", "a wrong password")
        clock.move(seconds=10)
    console.account("cem")
    console.browser().log_in("ann", "a wrong password")
    assert console.browser().log_in("ann").status_code == 429  # perhaps the guesser
    assert known.log_in("ann").status_code == 200
    assert console.browser().log_in("cem").status_code == 200


def test_a_name_that_does_not_exist_is_slowed_just_the_same(console: Console) -> None:
    console.account("ann")
    known, unknown = console.browser(address="10.0.0.1"), console.browser(address="10.0.0.2")
    answers = [
        [(a.status_code, a.text, a.headers.get("retry-after")) for a in (b.log_in(name, "wrong one") for _ in range(7))]
        for b, name in ((known, "ann"), (unknown, "bob"))
    ]
    assert answers[0] == answers[1]


def test_wrong_links_keep_nobody_out(console: Console) -> None:
    console.account("ann")
    stranger = console.browser()
    answers = [stranger.get(f"/login/once?key={n}").status_code for n in range(101)]
    assert answers == [401] * 100 + [429]
    assert console.browser().get(console.gate.new_link()).status_code == 303  # at the same address too
    assert console.browser(address="10.0.0.2").log_in("ann").status_code == 200


def test_where_somebody_was_in_is_known_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    before = Console(tmp_path / "c.db", clock)
    before.account("ann")
    assert before.browser(address="192.168.0.7").log_in("ann").status_code == 200
    before.browser(address="192.168.0.9").log_in("ann", "wrong one")  # nobody was in there
    before.store.close()
    after = Console(tmp_path / "c.db", clock)
    for address in addresses(6):
        after.browser(address=address).log_in("ann", "wrong one")
    answers = [after.browser(address=f"192.168.0.{n}").log_in("ann").status_code for n in (9, 7)]
    after.store.close()
    assert answers == [429, 200]
