"""What is sent through the connection of a page and means nothing ends that connection.

Whoever has one could otherwise fill the log: for each such message the framework writes a traceback there.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from nicegui import core
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("oarsman.console")
_PATH = "/_nicegui_ws/socket.io"  # the only address at which there is a web socket
_KINDS = tuple("0123456")  # one of them begins each message of Engine.IO


def only_meaningful(app: ASGIApp) -> ASGIApp:
    """Once per process: there is one framework in it."""
    handlers = core.sio.eio.handlers
    handlers["message"] = _understood(handlers["message"])
    logging.getLogger("uvicorn.error").addFilter(_without_traceback)

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
            await handler(sid, said)
        except Exception as error:
            log.debug("a page's connection said what means nothing: %r", error)
            await core.sio.eio.disconnect(sid)

    return message


def _without_traceback(record: logging.LogRecord) -> bool:
    if "Invalid UTF-8" in str(record.msg):
        record.exc_info = None
    return True
