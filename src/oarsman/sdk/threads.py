"""A service of this process, asked from an event loop: each question in a thread, the loop never waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TypeVar

from oarsman.sdk.calls import Call, Stream
from oarsman.sdk.pump import Ended, Pump
from oarsman.sdk.service import Service

T = TypeVar("T")


class InThreads:
    """Cancelling stops the waiting, not the thread: a submission that has begun is carried to its end."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def do(self, call: Call[T]) -> T:
        return await asyncio.to_thread(call.of, self._service)

    async def stream(self, stream: Stream[T]) -> AsyncGenerator[T, None]:
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

    def download(self, stream: Stream[bytes]) -> AsyncGenerator[bytes, None]:
        return self.stream(stream)

    async def close(self) -> None:
        close = getattr(self._service, "close", None)
        if close is not None:
            await asyncio.to_thread(close)
