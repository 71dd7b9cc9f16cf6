"""Blocking services and iterators for event loops and time limits: a thread waits, the caller never blocks."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from oarsman.service.contract import Service
from oarsman.service.operations import Call, StreamCall

T = TypeVar("T")
_CAPACITY = 64  # items kept for a slow reader; then the thread waits


class Carrier(Protocol):
    """Whoever carries questions out for an event loop: threads, or `async_remote`."""

    async def do(self, call: Call[T]) -> T: ...
    def stream(self, stream: StreamCall[T]) -> AsyncGenerator[T, None]: ...
    def download(self, stream: StreamCall[bytes]) -> AsyncGenerator[bytes, None]: ...
    async def close(self) -> None: ...


class Ended(Exception):
    """There are no more items."""


class Pump(Generic[T]):
    """The thread is a daemon: one that waits for a silent iterator must not keep the program from ending."""

    def __init__(self, start: Callable[[], Iterator[T]], *, told: Callable[[], None] = lambda: None) -> None:
        """`told` is called in the thread whenever there is something to take."""
        self._start, self._told = start, told
        self._change = threading.Condition()
        self._items: deque[T] = deque()
        self._end: BaseException | None = None
        self._closed = False
        self._iterator: Iterator[T] | None = None
        threading.Thread(target=self._run, name="oarsman-pump", daemon=True).start()

    def take(self, timeout: float | None = None) -> T:
        """The next item. Raises Ended, TimeoutError, or what the iterator raised."""
        with self._change:
            if not self._change.wait_for(lambda: self._items or self._end is not None, timeout):
                raise TimeoutError
            return self._next()

    def ready(self) -> bool:
        """Whether `take` would answer at once."""
        with self._change:
            return bool(self._items) or self._end is not None

    def close(self) -> None:
        with self._change:
            self._closed = True
            self._items.clear()
            self._change.notify_all()
            iterator = self._iterator
        interrupt = getattr(iterator, "interrupt", None)
        if interrupt is not None:
            with suppress(ValueError):  # a generator that waits can only be left alone: it ends with its next item
                interrupt()

    def _next(self) -> T:
        if self._items:
            item = self._items.popleft()
            self._change.notify_all()
            return item
        assert self._end is not None
        raise self._end

    def _run(self) -> None:
        try:
            iterator = self._start()
            with self._change:
                self._iterator = iterator
            for item in iterator:
                if not self._put(item):
                    break
            if close := getattr(iterator, "close", None):
                close()
            self._finish(Ended())
        except BaseException as error:
            self._finish(error)

    def _put(self, item: T) -> bool:
        with self._change:
            self._change.wait_for(lambda: self._closed or len(self._items) < _CAPACITY)
            if self._closed:
                return False
            self._items.append(item)
            self._change.notify_all()
        self._told()
        return True

    def _finish(self, end: BaseException) -> None:
        with self._change:
            self._end = end
            self._change.notify_all()
            told = not self._closed
        if told:
            self._told()


class InThreads:
    """Cancelling stops the waiting, not the thread: a submission that has begun is carried to its end."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def do(self, call: Call[T]) -> T:
        return await asyncio.to_thread(call.of, self._service)

    async def stream(self, stream: StreamCall[T]) -> AsyncGenerator[T, None]:
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is over, and so is everybody's interest
                loop.call_soon_threadsafe(news.set)

        pump = Pump(lambda: stream.of(self._service), told=tell)
        try:
            while True:
                while not pump.ready():
                    await news.wait()
                    news.clear()
                try:
                    item = pump.take(0)
                except Ended:
                    return
                yield item
        finally:
            pump.close()

    def download(self, stream: StreamCall[bytes]) -> AsyncGenerator[bytes, None]:
        return self.stream(stream)

    async def close(self) -> None:
        close = getattr(self._service, "close", None)
        if close is not None:
            await asyncio.to_thread(close)
