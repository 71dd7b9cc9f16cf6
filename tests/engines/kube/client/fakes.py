"""An API server that does what a test tells it to, wrong things above all."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from oarsman.engines.kube.client import Access, Informer, Kube, Pauses, Resource
from oarsman.engines.kube.client.codec import HasMeta

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
QUICK = Pauses(first=0.01, longest=0.05, refused=0.05, silence=0.2)


class FakeServer:
    """Answers each request with the next handler; the last one stays. Watches have handlers of their own."""

    def __init__(self, *answers: Handler, watches: tuple[Handler, ...] = (), tls: ssl.SSLContext | None = None) -> None:
        self.answers = list(answers)
        self.watches = list(watches)
        self.seen: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.port = 0
        self._tls = tls
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    @property
    def access(self) -> Access:
        return Access(server=self.url, ssl=None, source="a test")

    def targets(self) -> list[str]:
        return [f"{request.method} {request.path_qs}" for request in self.seen]

    def lists(self) -> list[web.Request]:
        return [request for request in self.seen if "watch" not in request.query]

    def watched(self) -> list[str]:
        """The versions that watches began with."""
        return [request.query["resourceVersion"] for request in self.seen if "watch" in request.query]

    async def start(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True, ssl_context=self._tls)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        assert self._runner
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        self.seen.append(request)
        handlers = self.watches if "watch" in request.query else self.answers
        return await (handlers.pop(0) if len(handlers) > 1 else handlers[0])(request)

    async def __aenter__(self) -> FakeServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


def reply(body: object = None, status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        content = body if isinstance(body, bytes) else json.dumps(body if body is not None else {}).encode()
        return web.Response(body=content, status=status, headers=headers, content_type="application/json")

    return handler


def refuse(status: int, reason: str = "", message: str = "no", **rest: Any) -> Handler:
    headers = rest.pop("headers", None)
    return reply({"kind": "Status", "code": status, "reason": reason, "message": message, **rest}, status, headers)


async def cut(request: web.Request) -> web.StreamResponse:
    """The connection breaks without an answer."""
    assert request.transport
    request.transport.abort()
    return web.Response()


def slow(seconds: float) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return web.json_response({})

    return handler


def stream(*pieces: object, then: str = "end") -> Handler:
    """Bytes as they are, seconds as a pause, other things as lines of JSON. Then: end, break, or stay quiet."""

    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        for piece in pieces:
            if isinstance(piece, float):
                await asyncio.sleep(piece)
                continue
            await answer.write(piece if isinstance(piece, bytes) else json.dumps(piece).encode() + b"\n")
        if then == "break":
            assert request.transport
            request.transport.close()
        elif then == "quiet":
            await asyncio.Event().wait()
        return answer

    return handler


QUIET = stream(then="quiet")


def pod(name: str, version: int | str, namespace: str = "default", uid: str = "", **rest: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"kind": "Pod", "metadata": meta | rest}


def listing(*items: dict[str, Any], version: int = 0, more: str = "") -> Handler:
    return reply({"kind": "PodList", "metadata": {"resourceVersion": str(version), "continue": more}, "items": items})


def event(kind: str, item: object) -> dict[str, object]:
    return {"type": kind, "object": item}


def bookmark(version: int) -> dict[str, object]:
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


GONE_EVENT = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"})


async def until(condition: Callable[[], object], patience: float = 120.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "it did not become true in time"
        await asyncio.sleep(0.005)


@asynccontextmanager
async def fake(
    *answers: Handler, watches: tuple[Handler, ...] = (), tls: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[tuple[FakeServer, Kube]]:
    async with FakeServer(*answers, watches=watches, tls=tls) as server, Kube(server.access, **options) as kube:
        yield server, kube


class Told(list[tuple[str | None, str | None]]):
    """Changes as an informer tells them: name@version before and after."""

    def __call__(self, old: HasMeta | None, new: HasMeta | None) -> None:
        self.append((_short(old), _short(new)))


def _short(item: HasMeta | None) -> str | None:
    return f"{item.metadata.name}@{item.metadata.resource_version}" if item else None


@asynccontextmanager
async def following(kube: Kube, resource: Resource, view: Any, **options: Any) -> AsyncIterator[Informer[Any]]:
    informer: Informer[Any] = Informer(kube, resource, view, **({"pauses": QUICK} | options))
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), "it is to follow for ever"
