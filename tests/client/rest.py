"""The routes of a server, without one: requests of httpx become calls of a service, errors become problem+json."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import unquote

import httpx
from pydantic import BaseModel, TypeAdapter

from oarsman.errors import OarsmanError
from oarsman.service import models as m
from oarsman.service.contract import Service, operations
from oarsman.service.operations import Operation

_STATUS = {"invalid-manifest": 422, "not-found": 404, "conflict": 409, "retryable": 503}

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}


class Rest(httpx.AsyncBaseTransport):
    """A server for `RemoteService`. What arrived is in `requests`."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        operation, named = _operation(request)
        given = _arguments(operation, named, request)
        try:
            if "key" in given and operation.streams:
                await self.service.job(given["key"])  # what is not there is said at once
            answer = getattr(self.service, operation.name)(**given)
            if operation.answer is bytes:
                return httpx.Response(200, content=b"".join([block async for block in answer]))
            if operation.streams:
                return httpx.Response(200, headers=EVENT_STREAM, stream=Body(answer))
            return _json(await answer)
        except OarsmanError as error:
            return problem(error)


def _operation(request: httpx.Request) -> tuple[Operation, Mapping[str, str]]:
    path = request.url.raw_path.decode().partition("?")[0].removeprefix("/api/v1")
    for operation in operations().values():
        found = re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", operation.path), path)
        if found and operation.method == request.method:
            return operation, {name: unquote(value) for name, value in found.groupdict().items()}
    raise AssertionError(f"no operation is {request.method} {path}")


def _arguments(operation: Operation, named: Mapping[str, str], request: httpx.Request) -> dict[str, Any]:
    given: dict[str, Any] = {name: value for name, value in named.items() if name in operation.arguments}
    if operation.key is not None:
        given["key"] = f"{named['namespace']}/{named['name']}"
    body = json.loads(request.content) if request.content else {}
    if operation.body is not None:
        sent = operation.body.model_validate(body)
        given.update({name: getattr(sent, name) for name in type(sent).model_fields})
    if operation.whole_body:
        given[operation.whole_body] = operation.arguments[operation.whole_body].annotation.model_validate(body)
    for one in operation.query:
        given.update(_value(one, request.url.params))
    return given


def _value(one: inspect.Parameter, query: httpx.QueryParams) -> dict[str, Any]:
    if one.annotation is m.JobQuery:
        fields = {name: value for name, value in query.items() if name != "state"}
        return {one.name: m.JobQuery.model_validate({**fields, "states": query.get_list("state")})}
    if one.annotation is m.LogFilter:
        several = {"ranks": query.get_list("rank"), "workers": query.get_list("worker")}
        rest = {name: query[name] for name in ("launcher", "stream", "search", "attempt") if name in query}
        return {one.name: m.LogFilter.model_validate({**several, **rest})}
    return {one.name: TypeAdapter(one.annotation).validate_python(query[one.name])} if one.name in query else {}


class Body(httpx.AsyncByteStream):
    def __init__(self, items: AsyncGenerator[BaseModel, None]) -> None:
        self._items = items

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b": hello\n\n"
        try:
            async with aclosing(self._items) as items:
                async for item in items:
                    yield event(item)
        except OarsmanError as error:
            yield b"event: problem\ndata: " + problem(error).content + b"\n\n"
        yield b"event: end\ndata: {}\n\n"


def event(item: BaseModel) -> bytes:
    return f"id: {getattr(item, 'after', '')}\ndata: {item.model_dump_json(by_alias=True)}\n\n".encode()


def _json(found: Any) -> httpx.Response:
    def plain(value: Any) -> Any:
        return value.model_dump(mode="json", by_alias=True) if isinstance(value, BaseModel) else value

    if found is None:
        return httpx.Response(204)
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
