"""Work that goes on until the process is told to stop, and then ends in order."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger("oarsman")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_NOT_IN_TIME = 1


def run_until_told(
    work: Coroutine[Any, Any, None], *, patience: float, leave: Callable[[int], object] = os._exit
) -> None:
    """Run `work` on the quickest loop there is. The first signal cancels it, which is how it is asked to put things in
    order; the second one, or the end of `patience` seconds, ends the process at once."""
    with asyncio.Runner(loop_factory=_quickest_loop) as runner:
        runner.run(_until_told(work, patience, leave))


def _quickest_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _until_told(work: Coroutine[Any, Any, None], patience: float, leave: Callable[[int], object]) -> None:
    loop = asyncio.get_running_loop()
    task = loop.create_task(work, name="work")
    last_call: list[asyncio.TimerHandle] = []

    def give_up() -> None:
        log.error("did not stop within %.0f s", patience)
        leave(_NOT_IN_TIME)

    def tell(number: signal.Signals) -> None:
        if last_call:
            log.warning("%s again: leaving at once", number.name)
            leave(128 + number)
            return
        log.info("%s: stopping", number.name)
        last_call.append(loop.call_later(patience, give_up))
        task.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, tell, number)
    try:
        await task
    except asyncio.CancelledError:
        if not last_call:
            raise
        log.info("stopped")
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        for timer in last_call:
            timer.cancel()
