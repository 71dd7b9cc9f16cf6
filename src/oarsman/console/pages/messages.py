"""What is sent through the connection of a page and means nothing ends that connection.

Whoever has one could otherwise fill the log: for each such message the framework writes a traceback there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf

from nicegui import core
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("oarsman.console")
_PATH = "/_nicegui_ws/socket.io"  # the only address at which there is a web socket
_KINDS = tuple("0123456")  # one of them begins each message of Engine.IO
_IN_PARTS = ("5", "6")  # kinds of Socket.IO, of which any number of parts is kept until the last one; pages send none
_AGAIN_AFTER_SECONDS = 60.0


def only_meaningful(app: ASGIApp) -> ASGIApp:
    """Once per process: there is one framework in it."""
    handlers = core.sio.eio.handlers
    handlers["message"] = _understood(handlers["message"])
    core.sio.eio.disconnect = _let_go
    logging.getLogger("uvicorn.error").addFilter(_without_traceback)
    logging.getLogger("engineio.server").addFilter(_not_what_was_sent)
    logging.getLogger("nicegui").addFilter(Seldom())

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_message() -> Message:
            message = await receive()
            text = message.get("text")
            if message["type"] == "websocket.receive" and text is not None and not text.startswith(_KINDS):
                return {"type": "websocket.disconnect", "code": 1007}
            return message

        if scope["type"] == "websocket" and not scope["path"].startswith(_PATH):
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await app(scope, receive_message if scope["type"] == "websocket" else receive, send)

    return answer


def _understood(handler: Callable[[str, object], Awaitable[None]]) -> Callable[[str, object], Awaitable[None]]:
    """It only reads: what is done because of a message is done in a task, whose faults are told as such."""

    async def message(sid: str, said: object) -> None:
        try:
            if not isinstance(said, str) or said.startswith(_IN_PARTS):
                raise ValueError("in parts")
            await handler(sid, said)
        except Exception as error:
            log.debug("a page's connection said what means nothing: %r", error)
            with suppress(KeyError):  # it is gone already
                await core.sio.eio._get_socket(sid).close(wait=False)

    return message


async def _let_go(sid: str) -> None:
    """By itself it waits until what is left has been taken; whoever polls may never come for it."""
    if (socket := core.sio.eio.sockets.pop(sid, None)) is not None:
        await socket.close(wait=False)


def _without_traceback(record: logging.LogRecord) -> bool:
    if "Invalid UTF-8" in str(record.msg):
        record.exc_info = None
    return True


def _not_what_was_sent(record: logging.LogRecord) -> bool:
    """What somebody sent, in their own letters."""
    said = str(record.msg)
    return said != "post request handler error" and "further occurrences" not in said


class Seldom(logging.Filter):
    """Of errors at the same place one a minute: whoever has a page can cause them as often as they like."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._told: dict[object, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind, _, frame = record.exc_info or (None, None, None)
        if frame is None:
            return True
        while frame.tb_next is not None:
            frame = frame.tb_next
        place, now = (kind, frame.tb_frame.f_code, frame.tb_lineno), self._clock()
        if now - self._told.get(place, -inf) < _AGAIN_AFTER_SECONDS:
            return False
        self._told[place] = now
        return True
