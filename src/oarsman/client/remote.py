"""The service of a server, through REST: the methods of `Service`, the errors of this process.

Questions are asked again when the connection fails, with growing pauses. Changes that may have arrived are not.
Streams go on behind the last answer that came whole, so that no log line is lost or seen twice.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, cast

import httpx
from httpx_sse import aconnect_sse

from oarsman.client import http
from oarsman.client.http import Again, Patience
from oarsman.errors import RetryableError
from oarsman.service.contract import Service, operations
from oarsman.service.models import ALL_LINES, LogFilter, LogLineView, LogPageView
from oarsman.service.operations import Arguments, Operation, OperationRequest
from oarsman.store.live_lines import LiveLines
from oarsman.store.logs import LogLine, parse, stamp


class RemoteService:
    """Its other methods are those of `Service`, made from their declarations. Close it."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        verify: str | os.PathLike[str] | ssl.SSLContext | bool = True,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`transport` takes the place of the network, for tests."""
        options = http.options(address, token, verify)
        self._url = options["base_url"].removesuffix(http.PREFIX)
        self._http = httpx.AsyncClient(**options, transport=transport)

    async def close(self) -> None:
        await self._http.aclose()

    async def _ask(self, operation: Operation, given: Arguments) -> Any:
        request = operation.request(given)
        patience = Patience()
        while True:
            try:
                response = await self._send(request)
                http.check(response, self._url, request.unsure)
                return http.read(operation.read, response.content, self._url)
            except Again as again:
                await asyncio.sleep(patience.delay(again))

    async def _send(self, request: OperationRequest) -> httpx.Response:
        try:
            return await self._http.request(request.method, request.path, params=request.parameters, json=request.body)
        except httpx.HTTPError as error:
            raise http.trouble(error, self._url, request.unsure) from error

    async def _stream(self, operation: Operation, given: Arguments) -> AsyncGenerator[Any, None]:
        patience = Patience()
        while True:
            try:
                async with aclosing(self._connected(operation, given)) as answers:
                    async for answer in answers:
                        patience.encouraged()
                        if operation.resumed is not None:
                            given = operation.resumed(given, answer)
                        yield answer
                return
            except Again as again:
                await asyncio.sleep(patience.delay(again))

    async def _connected(self, operation: Operation, given: Arguments) -> AsyncGenerator[Any, None]:
        """The answers of one connection. Raises Again when it breaks."""
        request = operation.request(given)
        established = False
        try:
            async with aconnect_sse(
                self._http, "GET", request.path, params=request.parameters, **http.STREAMED
            ) as source:
                await self._check(source.response)
                established, ended = True, False
                async for event in source.aiter_sse():
                    ended = ended or event.event == "end"
                    if data := http.data_of(event):
                        yield http.read(operation.read, data, self._url)
                if not ended:  # the connection was closed, but the server has not said that nothing follows
                    text = f"{self._url} ended a stream before its end"
                    raise Again(RetryableError(text, hint="was the server stopped?"))
        except httpx.HTTPError as error:
            raise http.broken(error, self._url, established=established) from error

    async def _download(self, operation: Operation, given: Arguments) -> AsyncGenerator[bytes, None]:
        """Not taken up again after a break: half a file must not look like a whole one."""
        request = operation.request(given)
        try:
            async with self._http.stream("GET", request.path, params=request.parameters) as response:
                await self._check(response)
                async for chunk in response.aiter_bytes():
                    yield chunk
        except Again as again:
            raise again.error from again
        except httpx.HTTPError as error:
            raise RetryableError(f"the download from {self._url} broke off: {error}", hint="begin again") from error

    async def _check(self, response: httpx.Response) -> None:
        if not response.is_success:
            await response.aread()
            http.check(response, self._url)

    async def lines(
        self,
        key: str,
        only: LogFilter = ALL_LINES,
        *,
        since: datetime | None = None,
        tail: int | None = None,
        follow: bool = False,
        live: bool = False,
    ) -> AsyncGenerator[Sequence[LogLine], None]:
        service = cast(Service, self)
        oldest = stamp(since) if since is not None else ""
        if tail is not None:
            last, end = await _last(service, key, only, oldest, tail)
            yield last
            if not follow:
                return
            only, oldest = only.model_copy(update={"attempt": end.attempt}), ""
            found = _followed(service, key, only, end.after)
        else:
            found = _followed(service, key, only) if follow else _downloaded(service, key, only)
        async with aclosing(found) as blocks:
            async for block in blocks:
                if not isinstance(block, LiveLines):
                    yield [line for line in block if line.stamp >= oldest]
                elif live:
                    yield block


def _method(operation: Operation) -> Callable[..., Any]:
    if not operation.streams:

        async def asks(self: RemoteService, *args: Any, **kwargs: Any) -> Any:
            return await self._ask(operation, operation.bind(*args, **kwargs))

        return asks

    def streams(self: RemoteService, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        answers = self._download if operation.answer is bytes else self._stream
        return answers(operation, operation.bind(*args, **kwargs))

    return streams


for _operation in operations().values():
    setattr(RemoteService, _operation.name, _method(_operation))


_MOST_LINES = 10_000  # of a page


async def _last(
    service: Service, key: str, only: LogFilter, oldest: str, tail: int
) -> tuple[Sequence[LogLine], LogPageView]:
    """The last lines, and the page that ends with them. A page of a search may be short and still have one before."""
    end = page = await service.log(key, only, limit=min(max(tail, 1), _MOST_LINES))
    found = deque(_lines(page))
    while len(found) < tail and page.before is not None and not (found and found[0].stamp < oldest):
        page = await service.log(key, only, before=page.before, limit=min(tail, _MOST_LINES))
        found.extendleft(reversed(_lines(page)))
    wanted = [line for line in found if line.stamp >= oldest]
    return wanted[-tail:] if tail else [], end


def _lines(page: LogPageView) -> list[LogLine]:
    return [_line(line) for line in page.lines]


def _line(line: LogLineView) -> LogLine:
    return LogLine(stamp(line.time), line.rank, line.host, line.stream, line.text)


async def _followed(
    service: Service, key: str, only: LogFilter, after: str | None = None
) -> AsyncGenerator[list[LogLine], None]:
    async with aclosing(service.follow_log(key, only, after=after)) as pages:
        async for page in pages:
            if page.lines:
                yield _lines(page)
            if page.live is not None:
                yield LiveLines(map(_line, page.live))


async def _downloaded(service: Service, key: str, only: LogFilter) -> AsyncGenerator[list[LogLine], None]:
    rest = b""
    async with aclosing(service.download_log(key, only)) as blocks:
        async for block in blocks:
            *whole, rest = (rest + block).split(b"\n")
            found = map(parse, (one.decode("utf-8", "replace") for one in whole))
            yield [line for line in found if line is not None]
