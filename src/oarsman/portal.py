"""From threads that wait to an event loop that does not: one loop, in a thread of its own, for synchronous callers.

Nothing here polls. A caller that is interrupted (Ctrl-C) takes its work in the loop with it.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import wraps
from typing import Any, Final, Generic, ParamSpec, TypeVar

log = logging.getLogger("oarsman")
T = TypeVar("T")
P = ParamSpec("P")

_TICK_SECONDS: Final = 1.0  # a signal that comes just before a wait begins would not end it
_LAST_WORDS_SECONDS: Final = 5.0
_END: Final[Any] = object()


def in_thread(work: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The other way round: work that waits, for callers in an event loop."""

    @wraps(work)
    async def started(*args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(work, *args, **kwargs)

    return started


def in_own_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """For work that takes as long as somebody else likes: no thread that others need is held by it."""
    loop = asyncio.get_running_loop()
    asked: asyncio.Future[T] = loop.create_future()

    def tell(say: Callable[[Any], None], what: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: None if asked.done() else say(what))

    def run() -> None:
        try:
            tell(asked.set_result, work())
        except Exception as error:
            tell(asked.set_exception, error)

    threading.Thread(target=run, daemon=True).start()
    return asked


@asynccontextmanager
async def running(*works: Coroutine[Any, Any, T]) -> AsyncIterator[Sequence[asyncio.Task[T]]]:
    """The works go on beside what the caller does, and have ended when it is done."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def with_silences(source: AsyncGenerator[T, None], seconds: float) -> AsyncGenerator[T | None, None]:
    """What comes; None: nothing did for so long."""
    async with aclosing(source):
        while True:
            coming = asyncio.ensure_future(anext(source, _END))
            try:
                while not (await asyncio.wait({coming}, timeout=seconds))[0]:
                    yield None
            finally:
                if not coming.done():
                    coming.cancel()
                    await asyncio.wait({coming})
            if coming.result() is _END:
                return
            yield coming.result()


def in_background(work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
    """A task that nobody waits for. Should it fail, that is logged at once."""

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", what, exc_info=error)

    task = asyncio.get_running_loop().create_task(work, name=what)
    task.add_done_callback(ended)
    return task


class Portal:
    ending = False  # the loop turns for the last time: nothing new is begun in it

    def __init__(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._turn, args=(ready,), name="portal", daemon=True)
        self._thread.start()
        ready.wait()
        atexit.register(self.close)

    def _turn(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:  # at the end it cancels what is under way and closes what was left open
            self._loop = runner.get_loop()
            ready.set()
            self._loop.run_forever()
            self.ending = True

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work. Interrupted, the work is cancelled and has ended before the interruption goes on."""
        running = self._start(work)
        try:
            return running.wait()
        finally:
            running.end()

    def iterate(self, source: AsyncGenerator[T, None]) -> PortalIterator[T]:
        """What the source yields, one by one as it is asked for."""
        return PortalIterator(self, source)

    @property
    def open(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        """What is under way ends, what is open in the loop is closed, the thread ends."""
        atexit.unregister(self.close)
        if self.open:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_LAST_WORDS_SECONDS)

    def _start(self, work: Coroutine[Any, Any, T]) -> _Work[T]:
        if threading.current_thread() is self._thread or not self.open:
            work.close()
            raise RuntimeError("the portal is closed, or would wait for itself")
        return _Work(self, work)


class _Work(Generic[T]):
    """A task of the loop that another thread waits for."""

    def __init__(self, portal: Portal, work: Coroutine[Any, Any, T]) -> None:
        self._portal, self._loop = portal, portal._loop
        self._ended = threading.Event()
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self._exit: BaseException | None = None
        with suppress(RuntimeError):  # the loop was closed just now
            self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._carry_out())
        self._task.add_done_callback(self._end)
        if self._portal.ending:
            self._task.cancel()

    def _end(self, _: asyncio.Task[T]) -> None:
        self._work.close()  # a task that is cancelled before its first step never looks at its work
        self._ended.set()

    async def _carry_out(self) -> T:
        """What is meant to end the program ends the caller, not the loop that others wait for, too."""
        try:
            return await self._work
        except (KeyboardInterrupt, SystemExit) as error:
            self._exit = error
            raise asyncio.CancelledError from error

    def wait(self) -> T:
        while not self._ended.wait(_TICK_SECONDS):
            if self._task is None and self._loop.is_closed():
                self._work.close()
                raise asyncio.CancelledError("the portal was closed")
        assert self._task is not None
        if self._exit is not None:
            raise self._exit
        return self._task.result()

    def end(self) -> None:
        """Cancelled, unless it has ended already; and then it has ended, unless it refuses to."""
        if not self._ended.is_set():
            with suppress(RuntimeError):  # the loop is closed, and everything in it has ended
                self._loop.call_soon_threadsafe(self._cancel)
                self._ended.wait(_LAST_WORDS_SECONDS)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


class PortalIterator(Iterator[T]):
    """Ends with its source, with an error, and when any thread closes it: one that waits for the next thing at that
    moment is told that there is none. If nobody has it any more, the loop closes its source."""

    def __init__(self, portal: Portal, source: AsyncGenerator[T, None]) -> None:
        self._portal, self._source = portal, source
        self._lock = threading.Lock()
        self._work: _Work[T] | None = None
        self._task: asyncio.Task[Any] | None = None  # in the loop: whoever asks for the next thing
        self._over = False

    def __next__(self) -> T:
        with self._lock:
            if self._over or not self._portal.open:
                raise StopIteration
            self._work = self._portal._start(self._next())
        try:
            item = self._work.wait()
            if item is not _END:
                return item
        except asyncio.CancelledError:  # it was closed, or the portal was
            pass
        except BaseException:  # also when interrupted
            self.close()
            raise
        self._over = True
        raise StopIteration

    def close(self) -> None:
        with self._lock:
            over, self._over, work = self._over, True, self._work
        if over:
            return
        if work is not None:
            work.end()
        if self._portal.open:
            self._portal.run(self._close())

    async def _next(self) -> T:
        self._task = asyncio.current_task()
        return await anext(self._source, _END)

    async def _close(self) -> None:
        """An interruption may come before the one who waits knows what it waits for; the loop does."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_LAST_WORDS_SECONDS)
        await self._source.aclose()


_shared: Portal | None = None
_lock = threading.Lock()


def shared() -> Portal:
    """The one of this process. Ask for it each time: a process that was forked has none of its threads."""
    global _shared
    with _lock:
        if _shared is None or not _shared.open:
            _shared = Portal()
        return _shared


def _forked() -> None:
    global _shared, _lock
    _shared, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forked)
