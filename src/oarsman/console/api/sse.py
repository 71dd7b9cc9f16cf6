"""Server-sent events: answers as they come, over one request that lasts.

A stream ends with its source, when the client goes, when what the client showed is no longer good, and when the server
stops. In each case whatever the source had open is closed before the request counts as over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from oarsman.console.api import problems
from oarsman.errors import OarsmanError

log = logging.getLogger("oarsman.console")
HEARTBEAT_SECONDS = 15.0
MEDIA_TYPE = "text/event-stream"
STILL_HERE: Final = b": still here\n\n"
END: Final = b"event: end\ndata: {}\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # the second is for nginx in front of us

Events = AsyncGenerator[bytes, None]  # blocks of whole events


def event(data: str | bytes, *, id: str | None = None, kind: str | None = None) -> bytes:
    """One event. JSON has no bare line breaks, so one data line is enough."""
    raw = data if isinstance(data, bytes) else data.encode()
    head = (f"event: {kind}\n" if kind else "") + (f"id: {id}\n" if id else "")
    return head.encode() + b"data: " + raw + b"\n\n"


class Streams:
    """All that are open, so that a server that stops can end them."""

    def __init__(self) -> None:
        self._open: set[asyncio.Task[None]] = set()
        self.stopping = False

    def __len__(self) -> int:
        return len(self._open)

    async def run(self, work: asyncio.Task[None]) -> None:
        self._open.add(work)
        try:
            if self.stopping:
                work.cancel()
            await asyncio.wait({work})
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work
            self._open.discard(work)

    def stop(self) -> None:
        self.stopping = True
        for work in self._open:
            work.cancel()


class EventStream(Response):
    media_type = MEDIA_TYPE

    def __init__(self, streams: Streams, events: Events, still_holds: Callable[[], bool] = lambda: True) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._streams = streams
        self._events = events
        self._still_holds = still_holds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        leaving = asyncio.create_task(_gone(receive))
        work = asyncio.create_task(self._send_all(send))
        leaving.add_done_callback(lambda _: work.cancel())
        try:
            await self._streams.run(work)
            if not leaving.done():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            leaving.cancel()
            with suppress(asyncio.CancelledError):
                await leaving

    async def _send_all(self, send: Send) -> None:
        try:
            async with aclosing(self._events) as events:
                checked = asyncio.get_running_loop().time()
                async for block in events:
                    now = asyncio.get_running_loop().time()
                    if block is STILL_HERE or now - checked >= HEARTBEAT_SECONDS:  # also where there is no silence
                        if not await asyncio.to_thread(self._still_holds):
                            return
                        checked = now
                    await send({"type": "http.response.body", "body": block, "more_body": True})
            last = END
        except OarsmanError as error:
            last = event(_json(error), kind="problem")
        except OSError:  # the client went while we were sending
            return
        except Exception:
            log.exception("a stream failed")
            return
        await send({"type": "http.response.body", "body": last, "more_body": True})


def _json(error: OarsmanError) -> str:
    return problems.details(error).model_dump_json(by_alias=True, exclude_none=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def described(what: str) -> Mapping[int | str, dict[str, object]]:
    """For OpenAPI: what the data of each event is."""
    text = f"Each event's data is a {what} in JSON. `event: end` comes last; `event: problem` has a ProblemDetails."
    return {200: {"description": text, "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}}
