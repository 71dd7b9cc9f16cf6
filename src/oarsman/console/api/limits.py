"""How much may be sent: read no further than that, whatever the client says its length is."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oarsman.console.api import PREFIX, problems

LARGEST_BODY = 1 << 20


class BodyLimit:
    """An ASGI layer around the API. What is too large is refused before anything looks at it."""

    def __init__(self, app: ASGIApp, largest: int = LARGEST_BODY) -> None:
        self._app = app
        self._largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        if _announced(scope) > self._largest:
            await self._refuse(scope, receive, send)
            return
        body = await self._whole(receive)
        if body is None:
            await self._refuse(scope, receive, send)
            return
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()  # from now on: that the client has gone
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)

    async def _whole(self, receive: Receive) -> bytes | None:
        """The body; None if it is too large. A client that goes away in the middle has sent nothing."""
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return b""
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._largest:
                return None
            if not message.get("more_body"):
                return b"".join(parts)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        said = problems.plain(413, f"more than {self._largest} bytes were sent")
        await problems.answer(said, {"Connection": "close"})(scope, receive, send)


def _announced(scope: Scope) -> int:
    value = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(value) if value.isdigit() else 0
