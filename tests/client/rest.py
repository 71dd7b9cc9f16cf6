"""The routes of a server, without one: requests of httpx become calls of a service, errors become problem+json."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import httpx
from pydantic import BaseModel

from oarsman.errors import OarsmanError
from oarsman.service import models as m
from oarsman.service.contract import Service

_STATUS = {"invalid-manifest": 422, "not-found": 404, "conflict": 409, "retryable": 503}

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}


class Rest(httpx.BaseTransport):
    """A server for `RemoteService`. What arrived is in `requests`."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self.answer(request)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        path = request.url.path.removeprefix("/api/v1")
        if path.endswith(("/stream", "/watch")):
            return self._streamed(path, request)
        try:
            return self._plain(path, request)
        except OarsmanError as error:
            return problem(error)

    def _plain(self, path: str, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else {}
        method, query = request.method, request.url.params
        fixed: dict[tuple[str, str], Callable[[], Any]] = {
            ("GET", "/info"): self.service.info,
            ("GET", "/overview"): self.service.overview,
            ("GET", "/hosts"): self.service.hosts,
            ("GET", "/queue"): self.service.queue,
            ("GET", "/templates"): self.service.templates,
            ("GET", "/jobs"): lambda: self.service.jobs(_query(query)),
            ("POST", "/jobs"): lambda: self.service.create(m.Create.model_validate(body)),
            ("POST", "/preview"): lambda: self.service.preview(m.Create.model_validate(body)),
            ("POST", "/convert"): lambda: _converted(*self.service.convert(body["document"], body["apiVersion"])),
        }
        if (method, path) in fixed:
            return _json(fixed[method, path]())
        found = re.fullmatch(r"/jobs/([^/]+)/([^/]+)(?:/(.+))?", path)
        assert found, path
        key, verb = f"{unquote(found[1])}/{unquote(found[2])}", found[3] or ""
        return self._about(key, method, verb, body, query)

    def _about(
        self, key: str, method: str, verb: str, body: Mapping[str, Any], query: httpx.QueryParams
    ) -> httpx.Response:
        service = self.service
        if verb == "log/download":
            return httpx.Response(200, content=b"".join(service.download_log(key, _filter(query))))
        if method == "DELETE":
            service.delete(key)
            return httpx.Response(204)
        since = query.get("since")
        answers: dict[str, Callable[[], Any]] = {
            "": lambda: service.job(key),
            "scale": lambda: service.scale(key, body["workers"]),
            "clone": lambda: service.clone(key, m.Clone.model_validate(body)),
            "events": lambda: service.events(key),
            "usage": lambda: service.usage(key, since=datetime.fromisoformat(since) if since else None),
            "log": lambda: service.log(
                key, _filter(query), after=query.get("after"), before=query.get("before"), limit=int(query["limit"])
            ),
        }
        return _json(answers[verb]() if verb in answers else getattr(service, verb)(key))

    def _streamed(self, path: str, request: httpx.Request) -> httpx.Response:
        query = request.url.params
        if path == "/jobs/stream":
            items: Iterator[BaseModel] = self.service.changes(_query(query))
        else:
            namespace, name, verb = path.removeprefix("/jobs/").split("/", 2)
            key = f"{unquote(namespace)}/{unquote(name)}"
            try:
                self.service.job(key)
            except OarsmanError as error:
                return problem(error)
            if verb == "watch":
                items = self.service.watch(key)
            else:
                items = self.service.follow_log(key, _filter(query), after=query.get("after"))
        return httpx.Response(200, headers=EVENT_STREAM, stream=Body(items))


class Body(httpx.SyncByteStream):
    def __init__(self, items: Iterator[BaseModel]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[bytes]:
        yield b": hello\n\n"
        try:
            for item in self._items:
                yield event(item)
        except OarsmanError as error:
            yield b"event: problem\ndata: " + problem(error).content + b"\n\n"
        yield b"event: end\ndata: {}\n\n"


def event(item: BaseModel) -> bytes:
    return f"id: {getattr(item, 'after', '')}\ndata: {item.model_dump_json(by_alias=True)}\n\n".encode()


def _query(query: httpx.QueryParams) -> m.JobQuery:
    fields = {name: value for name, value in query.items() if name != "state"}
    return m.JobQuery.model_validate({**fields, "states": query.get_list("state")})


def _filter(query: httpx.QueryParams) -> m.LogFilter:
    return m.LogFilter.model_validate(
        {
            "ranks": [int(rank) for rank in query.get_list("rank")],
            "launcher": query.get("launcher") == "true",
            "workers": [int(worker) for worker in query.get_list("worker")],
            "stream": query.get("stream"),
            "search": query.get("search"),
            "attempt": int(query["attempt"]) if "attempt" in query else None,
        }
    )


def _converted(manifest: str, losses: Sequence[str]) -> dict[str, Any]:
    return {"manifest": manifest, "losses": list(losses)}


def _json(found: Any) -> httpx.Response:
    def plain(value: Any) -> Any:
        return value.model_dump(mode="json", by_alias=True) if isinstance(value, BaseModel) else value

    return httpx.Response(200, json=[plain(item) for item in found] if isinstance(found, list) else plain(found))


def problem(error: OarsmanError) -> httpx.Response:
    status = _STATUS.get(error.code, 400)
    found = [
        m.ProblemView(line=p.line, column=p.column, field=p.field, message=p.message, hint=p.hint)
        for p in getattr(error, "problems", ())
    ]
    details = m.ProblemDetails(
        title="wrong",
        status=status,
        detail=error.message,
        code=error.code,
        field=error.field,
        hint=error.hint,
        errors=found,
    )
    return httpx.Response(status, content=details.model_dump_json(by_alias=True))


class AsyncRest(httpx.AsyncBaseTransport):
    """The same in an event loop; streams are read by threads."""

    def __init__(self, service: Service) -> None:
        self.rest = Rest(service)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        response = self.rest.answer(request)
        if isinstance(response.stream, Body):
            return httpx.Response(200, headers=EVENT_STREAM, stream=AsyncBody(response.stream))
        return response


class AsyncBody(httpx.AsyncByteStream):
    def __init__(self, body: Body) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        from oarsman.client.threads import InThreads
        from oarsman.service.operations import StreamCall

        blocks: StreamCall[bytes] = StreamCall(of=lambda _: iter(self._body), path="", reads=bytes)
        async for block in InThreads(None).stream(blocks):  # type: ignore[arg-type]
            yield block
