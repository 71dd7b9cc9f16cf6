"""Between threads and the event loop: nothing is lost, nothing is left, interruptions go through."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from oarsman.backends.kube.bridge import Bridge


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    found = Bridge()
    yield found
    found.close()


async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


def test_a_stream_keeps_its_order_and_its_end(bridge: Bridge) -> None:
    assert list(bridge.stream(lambda: numbers(1000))) == list(range(1000))


def test_an_error_comes_after_what_came_before_it(bridge: Bridge) -> None:
    async def source() -> AsyncIterator[int]:
        yield 1
        raise KeyError("x")

    stream = bridge.stream(source)
    assert next(stream) == 1
    with pytest.raises(KeyError):
        next(stream)


def test_a_source_does_not_run_away_from_a_slow_reader(bridge: Bridge) -> None:
    made = []

    async def source() -> AsyncIterator[int]:
        for number in range(10_000):
            made.append(number)
            yield number

    stream = bridge.stream(source)
    assert next(stream) == 0
    bridge.run(asyncio.sleep(0.05))
    assert len(made) < 100
    stream.close()  # type: ignore[attr-defined]


def test_a_stream_that_is_left_ends_its_source(bridge: Bridge) -> None:
    ended = threading.Event()

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(3600)
        finally:
            ended.set()

    stream = bridge.stream(source)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert ended.wait(120)


def test_a_stream_that_nobody_has_any_more_ends_its_source_even_from_within_the_loop(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oarsman.backends.kube.bridge._LAST_WORDS_SECONDS", 150.0)
    ended = threading.Event()

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(3600)
        finally:
            ended.set()

    held = [bridge.stream(source)]
    next(held[0])
    bridge.loop.call_soon_threadsafe(held.clear)  # as the collector does that happens to run there
    assert ended.wait(100)  # less than one who waits for the loop in the loop would need


def test_an_interruption_ends_the_work_and_goes_on(bridge: Bridge) -> None:
    cancelled = threading.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        bridge.run(work())
    assert cancelled.is_set()


def test_a_program_that_ends_in_the_middle_of_a_stream_ends_quietly() -> None:
    script = """
import asyncio, threading
from oarsman.backends.kube.bridge import shared
async def inner():
    while True:
        await asyncio.sleep(0.01)
        yield 1
async def outer():
    async for one in inner():
        yield one
began = threading.Event()
def follow():
    for _ in shared().stream(outer):
        began.set()
threading.Thread(target=follow, daemon=True).start()
began.wait()
"""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
