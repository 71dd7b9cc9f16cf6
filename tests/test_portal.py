"""Between threads and the event loop: nothing is lost, nothing is left, interruptions go through."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator

import pytest

from oarsman.portal import Portal, in_background, shared


@pytest.fixture
def portal() -> Iterator[Portal]:
    found = Portal()
    yield found
    found.close()


async def numbers(count: int) -> AsyncGenerator[int, None]:
    for number in range(count):
        yield number


async def one_and_then_nothing(ended: threading.Event) -> AsyncGenerator[int, None]:
    try:
        yield 1
        await asyncio.sleep(3600)
    finally:
        ended.set()


def test_an_iterator_keeps_its_order_and_its_end(portal: Portal) -> None:
    found = portal.iterate(numbers(1000))
    assert list(found) == list(range(1000))
    assert list(found) == []


def test_an_error_comes_after_what_came_before_it_and_is_the_last(portal: Portal) -> None:
    async def source() -> AsyncGenerator[int, None]:
        yield 1
        raise KeyError("x")

    items = portal.iterate(source())
    assert next(items) == 1
    with pytest.raises(KeyError):
        next(items)
    assert list(items) == []


def test_a_source_does_not_run_away_from_a_slow_reader(portal: Portal) -> None:
    made = []

    async def source() -> AsyncGenerator[int, None]:
        for number in range(10_000):
            made.append(number)
            yield number

    items = portal.iterate(source())
    assert next(items) == 0
    portal.run(asyncio.sleep(0.05))
    assert len(made) < 100
    items.close()


def test_an_iterator_that_is_left_ends_its_source(portal: Portal) -> None:
    ended = threading.Event()
    items = portal.iterate(one_and_then_nothing(ended))
    next(items)
    items.close()
    assert ended.is_set()
    items.close()
    assert list(items) == []


def test_one_that_was_never_begun_can_be_closed(portal: Portal) -> None:
    items = portal.iterate(numbers(3))
    items.close()
    assert list(items) == []


def test_who_waits_is_woken_by_another_thread(portal: Portal) -> None:
    ended = threading.Event()
    items = portal.iterate(one_and_then_nothing(ended))
    assert next(items) == 1
    rest: list[int] = []
    waiting = threading.Thread(target=lambda: rest.extend(items))
    waiting.start()
    items.close()
    waiting.join()
    assert (rest, ended.is_set()) == ([], True)


def test_an_iterator_that_nobody_has_any_more_ends_its_source_even_from_within_the_loop(portal: Portal) -> None:
    ended = threading.Event()
    held = [portal.iterate(one_and_then_nothing(ended))]
    next(held[0])

    async def clear() -> None:
        held.clear()  # as the collector does that happens to run there

    portal.run(clear())
    assert ended.wait(100)


def test_an_interruption_ends_the_work_and_goes_on(portal: Portal) -> None:
    cancelled = threading.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        portal.run(work())
    assert cancelled.is_set()


def test_an_interruption_of_who_waits_for_the_next_ends_the_source(portal: Portal) -> None:
    ended = threading.Event()
    items = portal.iterate(one_and_then_nothing(ended))
    next(items)
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        next(items)
    assert ended.is_set()


def test_who_would_wait_for_itself_is_told(portal: Portal) -> None:
    async def work() -> None:
        portal.run(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="wait for itself"):
        portal.run(work())


def test_what_is_under_way_ends_with_the_portal() -> None:
    portal, began, ended = Portal(), threading.Event(), threading.Event()
    found: list[int] = []

    def take() -> None:
        for item in portal.iterate(one_and_then_nothing(ended)):
            found.append(item)
            began.set()

    waiting = threading.Thread(target=take)
    waiting.start()
    began.wait()
    portal.close()
    waiting.join()
    assert (found, ended.is_set()) == ([1], True)
    with pytest.raises(RuntimeError):
        portal.run(asyncio.sleep(0))


def _in_a_child() -> None:
    assert shared().run(asyncio.sleep(0, "well")) == "well"


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_process_has_a_portal_of_its_own() -> None:
    shared().run(asyncio.sleep(0))
    child = multiprocessing.get_context("fork").Process(target=_in_a_child)
    child.start()
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.parametrize("asks", ["at once", "while the loop ends"])
def test_a_program_that_ends_in_the_middle_of_an_iteration_ends_quietly(asks: str) -> None:
    script = f"""
import asyncio, threading
from oarsman.portal import shared
began, ending = threading.Event(), threading.Event()
async def lingers():
    try:
        await asyncio.sleep(60)
    finally:
        ending.set()
        await asyncio.sleep(0.3)
async def inner():
    task = asyncio.create_task(lingers())
    yield 1
    await asyncio.sleep(60)
async def outer():
    async for one in inner():
        yield one
def follow():
    for _ in shared().iterate(outer()):
        began.set()
        if {asks == "while the loop ends"}:
            ending.wait()
threading.Thread(target=follow, daemon=True).start()
began.wait()
"""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("exit", [KeyboardInterrupt, SystemExit])
def test_what_would_end_the_program_reaches_the_caller_and_leaves_the_loop_to_others(
    portal: Portal, exit: type[BaseException]
) -> None:
    async def work() -> None:
        raise exit

    with pytest.raises(exit):
        portal.run(work())
    assert portal.run(asyncio.sleep(0, "still there")) == "still there"


def test_what_fails_in_the_background_is_logged_at_once(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise ValueError("nobody waits for me")

    async def look_on() -> None:
        task = in_background(fails(), "counting sheep")
        await asyncio.wait({task})
        await asyncio.sleep(0)
        assert "counting sheep failed" in caplog.text  # though somebody still has the task

    asyncio.run(look_on())
