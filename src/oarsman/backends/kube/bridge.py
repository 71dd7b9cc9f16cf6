"""From threads that wait to an event loop that does not: one loop, in a thread of its own, for every backend.

Nothing here polls. A caller that is interrupted (Ctrl-C) takes its work in the loop with it.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

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
        future, ended = self.start(work)
        try:
            while not ended.wait(_TICK_SECONDS):
                pass
            return future.result()
        finally:
            self.end(future, ended)

    def stream(
        self, source: Callable[[], AsyncIterator[T]], guard: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> LoopStream[T]:
        """What the source yields, as it comes. `guard` is around every wait, to give errors other words."""
        return LoopStream(self, source, guard)

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

    def start(self, work: Coroutine[Any, Any, T]) -> tuple[Future[T], threading.Event]:
        ended = threading.Event()

        async def whole() -> T:
            try:
                return await work
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(whole(), self.loop)
        return future, ended

    @staticmethod
    def end(future: Future[Any], ended: threading.Event) -> None:
        if not ended.is_set():
            future.cancel()
            ended.wait(_LAST_WORDS_SECONDS)


class LoopStream(Generic[T]):
    """An iterator whose source lives in one task of the loop. The task begins with the first wait.

    It ends with the source, with an error, when nobody has it any more, and when any thread closes it: one that
    waits for the next thing at that moment is told that there is none.
    """

    def __init__(
        self, bridge: Bridge, source: Callable[[], AsyncIterator[T]], guard: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._bridge, self._source, self._guard = bridge, source, guard
        self._items: SimpleQueue[T | _End] = SimpleQueue()
        self._room = asyncio.Semaphore(_AHEAD)
        self._lock = threading.Lock()
        self._work: tuple[Future[None], threading.Event] | None = None
        self._over = False

    def __iter__(self) -> LoopStream[T]:
        return self

    def __next__(self) -> T:
        self._begin()
        try:
            with self._guard():
                return self._wait()
        except BaseException:  # also when interrupted
            self.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._over = True
            work, self._work = self._work, None
        if work is not None:
            self._bridge.end(*work)
            self._items.put(_End(None))

    def __del__(self) -> None:
        """Python may clear away in any thread, the loop's own included: nobody may be waited for here."""
        if self._work is not None:
            with suppress(RuntimeError):  # the loop is closed, and the work has ended with it
                self._work[0].cancel()

    def _begin(self) -> None:
        with self._lock:
            if self._over or self._work is not None:
                return
            begun = threading.Event()
            self._work = self._bridge.start(_pump(self._source, self._items, self._room, begun))
            begun.wait(_LAST_WORDS_SECONDS)  # from here on it can be cancelled and will say that it ended

    def _wait(self) -> T:
        while not self._over:
            with suppress(Empty):
                item = self._items.get(timeout=_TICK_SECONDS)
                if not isinstance(item, _End):
                    self._bridge.loop.call_soon_threadsafe(self._room.release)
                    return item
                if item.error is not None:
                    raise item.error
                break
        raise StopIteration


async def _pump(
    source: Callable[[], AsyncIterator[T]],
    items: SimpleQueue[T | _End],
    room: asyncio.Semaphore,
    begun: threading.Event,
) -> None:
    """Knows nothing of the stream it is for, so that one which nobody has any more goes away."""
    begun.set()
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
