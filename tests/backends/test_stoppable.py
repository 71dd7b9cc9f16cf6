"""Endless answers end when another thread says so."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator

import pytest

from oarsman.backends.stoppable import Stop, Stoppable, readable


def one_and_then_nothing(stop: Stop, ended: list[bool]) -> Generator[int, None, None]:
    try:
        yield 1
        readable(stop.fileno())
    finally:
        ended.append(True)


def test_who_waits_is_woken_by_another_thread() -> None:
    ended: list[bool] = []
    items = Stoppable(lambda stop: one_and_then_nothing(stop, ended))
    assert next(items) == 1
    rest: list[int] = []
    waiting = threading.Thread(target=lambda: rest.extend(items))
    waiting.start()
    items.close()
    waiting.join()
    assert (rest, ended) == ([], [True])
    items.close()
    assert list(items) == []


def test_one_that_nobody_waits_for_is_closed_on_the_spot() -> None:
    ended: list[bool] = []
    items = Stoppable(lambda stop: one_and_then_nothing(stop, ended))
    assert next(items) == 1
    items.close()
    assert ended == [True]


def test_an_error_closes_it_and_is_passed_on() -> None:
    def fails(stop: Stop) -> Generator[int, None, None]:
        raise ValueError("no")
        yield 1

    items = Stoppable(fails)
    with pytest.raises(ValueError, match="no"):
        next(items)
    assert list(items) == []


def test_nothing_is_left_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        items = Stoppable(lambda stop: one_and_then_nothing(stop, []))
        next(items)
        items.close()
    del items
    assert len(os.listdir("/proc/self/fd")) == before
