"""From threads that wait to an event loop that does not: one loop, in a thread of its own, for every door.

Nothing here polls. A caller that is interrupted (Ctrl-C) takes its work in the loop with it.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

_AHEAD = 16  # how many things a stream may hold that nobody has taken yet
_TICK_SECONDS = 1.0  # a signal that comes just before a wait begins would not end it
_LAST_WORDS_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


class Bridge:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._closers: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._thread = threading.Thread(target=self._turn, name="cluster", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def _turn(self) -> None:
        self.loop.run_forever()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work. Interrupted, the work is cancelled and has ended before the interruption goes on."""
        future, ended = self._start(work)
        try:
            while not ended.wait(_TICK_SECONDS):
                pass
            return future.result()
        finally:
            self._end(future, ended)

    def stream(self, source: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
        """What the source yields, as it comes. The source lives in one task, and ends with this generator."""
        items: SimpleQueue[T | _End] = SimpleQueue()
        room = asyncio.Semaphore(_AHEAD)

        async def pump() -> None:
            found = source()
            try:
                async for item in found:
                    items.put(item)
                    await room.acquire()
                items.put(_End(None))
            except asyncio.CancelledError:  # by those who left, or at the very end
                items.put(_End(None))
            except BaseException as error:
                items.put(_End(error))
            finally:
                if (close := getattr(found, "aclose", None)) is not None:
                    await close()

        future, ended = self._start(pump())
        try:
            while True:
                with suppress(Empty):
                    item = items.get(timeout=_TICK_SECONDS)
                    if not isinstance(item, _End):
                        self.loop.call_soon_threadsafe(room.release)
                        yield item
                    elif item.error is not None:
                        raise item.error
                    else:
                        return
        finally:
            self._end(future, ended)

    def at_exit(self, closer: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._closers.append(closer)

    def forget(self, closer: Callable[[], Coroutine[Any, Any, None]]) -> None:
        with suppress(ValueError):
            self._closers.remove(closer)

    def close(self) -> None:
        """Before Python goes: what is under way ends, connections are closed, the thread ends."""
        if self.loop.is_closed():
            return
        atexit.unregister(self.close)
        with suppress(Exception):
            self.run(_end_everything())
        for closer in self._closers:
            with suppress(Exception):
                self.run(closer())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_LAST_WORDS_SECONDS)

    def _start(self, work: Coroutine[Any, Any, T]) -> tuple[Future[T], threading.Event]:
        ended = threading.Event()

        async def whole() -> T:
            try:
                return await work
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(whole(), self.loop)
        return future, ended

    @staticmethod
    def _end(future: Future[Any], ended: threading.Event) -> None:
        if not ended.is_set():
            future.cancel()
            ended.wait(_LAST_WORDS_SECONDS)


async def _end_everything() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


_shared: Bridge | None = None
_lock = threading.Lock()


def shared() -> Bridge:
    global _shared
    with _lock:
        if _shared is None:
            _shared = Bridge()
        return _shared
