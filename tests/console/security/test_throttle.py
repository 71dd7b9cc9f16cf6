"""Guessing is slowed, the right people are not."""

from __future__ import annotations

import threading

import pytest

from oarsman.console.security.throttle import Throttle, network
from oarsman.errors import ThrottledError

from .console import PASSWORD, Clock, Console


def wait(throttle: Throttle, address: str, name: str | None) -> float:
    """Seconds until an attempt is admitted; 0: it was, and counts as failed."""
    try:
        throttle.begin(address, name)
    except ThrottledError as error:
        return error.retry_after
    return 0.0


@pytest.fixture
def throttle(clock: Clock) -> Throttle:
    return Throttle(clock.seconds)


def test_after_five_failures_the_wait_doubles_up_to_a_quarter_of_an_hour(throttle: Throttle, clock: Clock) -> None:
    waits = []
    for number in range(18):
        waited = wait(throttle, "10.0.0.1", f"name-{number}")  # ever new names: only the address counts
        if waited:
            waits.append(waited)
            clock.move(seconds=waited)
            assert wait(throttle, "10.0.0.1", f"name-{number}") == 0
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]


def test_an_account_waits_half_a_minute_at_most_whoever_fails_in_its_name(throttle: Throttle, clock: Clock) -> None:
    for number in range(500):  # a stranger with many addresses
        address = f"10.0.{number // 250}.{number % 250}"
        while waited := wait(throttle, address, "ann"):
            clock.move(seconds=waited)
    assert 0 < wait(throttle, "192.168.0.7", "ann") <= 30
    clock.move(seconds=30)
    assert wait(throttle, "192.168.0.7", "ann") == 0


def test_where_an_account_was_entered_before_strangers_do_not_slow_it(throttle: Throttle) -> None:
    throttle.begin("192.168.0.7", "ann")
    throttle.succeeded("192.168.0.7", "ann")
    for number in range(20):
        wait(throttle, f"10.0.0.{number}", "ann")
    assert wait(throttle, "192.168.0.8", "ann") > 0
    assert wait(throttle, "192.168.0.7", "ann") == 0


def test_one_strangers_address_is_shut_out_long_before_the_account(throttle: Throttle, clock: Clock) -> None:
    for _ in range(12):
        clock.move(seconds=wait(throttle, "10.0.0.1", "ann"))
        wait(throttle, "10.0.0.1", "ann")
    assert wait(throttle, "10.0.0.1", "ann") > 60
    assert wait(throttle, "192.168.0.7", "ann") <= 30


def test_a_success_forgives_only_what_was_failed_in_the_same_name(throttle: Throttle, clock: Clock) -> None:
    for name in ("ann", "bob", "cem", "dan"):
        throttle.begin("10.0.0.1", name)
    throttle.begin("10.0.0.1", "mallory")
    throttle.succeeded("10.0.0.1", "mallory")  # with an account of one's own, in between
    throttle.begin("10.0.0.1", "eve")
    assert wait(throttle, "10.0.0.1", "fay") == 1
    clock.move(hours=2)
    for _ in range(4):
        throttle.begin("10.0.0.1", "ann")
    throttle.succeeded("10.0.0.1", "ann")
    assert [wait(throttle, "10.0.0.1", "ann") for _ in range(6)] == [0, 0, 0, 0, 0, 1]


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


def test_memory_is_bounded_whatever_is_tried(clock: Clock) -> None:
    throttle = Throttle(clock.seconds, bound=50)
    for number in range(1000):
        address = f"10.0.{number // 250}.{number % 250}"
        throttle.begin(address, f"name-{number}")
        throttle.succeeded(address, f"name-{number}")
        throttle.begin(address, f"name-{number}")
    kept = (throttle._addresses, throttle._accounts, throttle._pairs, throttle._welcome)
    assert [len(each) for each in kept] == [50] * 4


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


def test_a_name_that_does_not_exist_is_slowed_just_the_same(console: Console) -> None:
    console.account("ann")
    known, unknown = console.browser(address="10.0.0.1"), console.browser(address="10.0.0.2")
    answers = [
        [(a.status_code, a.text, a.headers.get("retry-after")) for a in (b.log_in(name, "wrong one") for _ in range(7))]
        for b, name in ((known, "ann"), (unknown, "bob"))
    ]
    assert answers[0] == answers[1]


def test_an_address_that_a_header_claims_is_not_believed(console: Console) -> None:
    console.account("ann")
    stranger = console.browser(address="10.0.0.1")
    answers = [stranger.log_in("ann", "wrong one", X_Forwarded_For=f"10.1.1.{n}").status_code for n in range(6)]
    assert answers == [401] * 5 + [429]
