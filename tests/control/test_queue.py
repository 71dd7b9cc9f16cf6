"""Keys wait once, come back when asked for meanwhile, and back off after trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import uvloop

from oarsman.control.queue import WorkQueue


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 120))


def test_a_key_waits_only_once() -> None:
    async def story() -> None:
        queue = WorkQueue()
        for key in ("a", "b", "a", "a"):
            queue.add(key)
        assert [await queue.take(), await queue.take()] == ["a", "b"]
        assert len(queue) == 2  # both are being worked on
        queue.done("a")
        queue.done("b")
        assert len(queue) == 0

    run(story())


def test_a_key_is_never_worked_on_twice_at_a_time_and_comes_back_afterwards() -> None:
    async def story() -> None:
        queue = WorkQueue()
        queue.add("a")
        assert await queue.take() == "a"
        queue.add("a")
        queue.add("b")
        assert await queue.take() == "b"
        queue.done("a")
        assert await queue.take() == "a"

    run(story())


def test_the_earliest_of_several_delays_counts() -> None:
    async def story() -> None:
        queue = WorkQueue()
        queue.add_after("late", 3600)
        queue.add_after("soon", 1.0)
        queue.add_after("late", 0.01)
        assert await queue.take() == "late"
        queue.done("late")
        assert await queue.take() == "soon"
        queue.done("soon")
        queue.add_after("now", 0)
        assert await queue.take() == "now"

    run(story())


def test_failures_in_a_row_double_the_delay_and_success_forgets_them() -> None:
    async def story() -> None:
        queue = WorkQueue()
        delays = [queue.retry("a") for _ in range(14)]
        assert delays[:3] == [0.05, 0.1, 0.2]
        assert delays[-1] == 60.0
        queue.succeeded("a")
        assert queue.retry("a") == 0.05

    run(story())


def test_idle_is_when_all_work_is_done() -> None:
    async def story() -> None:
        queue = WorkQueue()
        await queue.idle()
        queue.add("a")
        waiting = asyncio.create_task(queue.idle())
        key = await queue.take()
        queue.add(key)
        queue.done(key)
        await asyncio.sleep(0)
        assert not waiting.done()
        queue.done(await queue.take())
        await waiting

    run(story())


def test_a_waiting_worker_is_woken() -> None:
    async def story() -> None:
        queue = WorkQueue()
        taken = asyncio.create_task(queue.take())
        await asyncio.sleep(0)
        queue.add("a")
        assert await taken == "a"

    run(story())


def test_trouble_that_never_ends_is_tried_again_for_ever() -> None:
    async def story() -> None:
        queue = WorkQueue()
        assert {queue.retry("a") for _ in range(1100)} >= {60.0}

    run(story())


def test_what_is_added_while_a_key_rests_is_worked_on_together_when_it_has_rested() -> None:
    async def story() -> None:
        queue = WorkQueue()
        queue.add("crowd")
        key = await queue.take()
        queue.done(key, rest=0.05)
        began = asyncio.get_running_loop().time()
        for _ in range(1000):
            queue.add(key)
        queue.add("other")
        assert await queue.take() == "other"
        queue.done("other")
        assert await queue.take() == key
        assert asyncio.get_running_loop().time() - began >= 0.04
        queue.done(key)
        await queue.idle()  # all thousand were one

    run(story())


def test_a_key_that_nobody_adds_while_it_rests_stays_away() -> None:
    async def story() -> None:
        queue = WorkQueue()
        queue.add("a")
        queue.done(await queue.take(), rest=0.01)
        await queue.idle()
        assert len(queue) == 0

    run(story())


def test_work_that_goes_on_is_taken_before_work_that_begins_and_never_shuts_it_out() -> None:
    async def story() -> None:
        queue = WorkQueue(ahead=lambda key: key.startswith("known"))
        queue.add("new-1")
        queue.add("new-2")
        for number in range(20):
            queue.add(f"known-{number}")
        taken = [await queue.take() for _ in range(22)]
        assert taken[0] == "known-0"
        assert taken.index("new-1") <= 8
        assert taken.index("new-2") <= 16
        assert [key for key in taken if key.startswith("known")] == [f"known-{number}" for number in range(20)]

    run(story())


def test_a_worker_that_is_stopped_while_it_waits_takes_no_key_with_it() -> None:
    async def story() -> None:
        queue = WorkQueue()
        stopped = asyncio.create_task(queue.take())
        await asyncio.sleep(0)
        queue.add("a")
        stopped.cancel()
        await asyncio.gather(stopped, return_exceptions=True)
        if stopped.cancelled():
            assert await queue.take() == "a"
        else:
            assert stopped.result() == "a"

    run(story())


def test_a_delay_too_short_for_a_timer_is_a_delay_like_any_other() -> None:
    """uvloop makes no timer of less than half a millisecond."""

    async def play() -> None:
        queue = WorkQueue()
        for _ in range(3):
            queue.add_after("a", 0.0001)
        queue.add_after("a", 60)
        assert await asyncio.wait_for(queue.take(), 60) == "a"
        assert len(queue) == 1

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(play())
