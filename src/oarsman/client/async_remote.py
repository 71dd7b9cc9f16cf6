"""The service of a server, asked from an event loop. The rules are those of `remote.py`."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

import httpx
from httpx_sse import aconnect_sse

from oarsman.client import http
from oarsman.client.http import Again, Patience, ServerAddress
from oarsman.errors import RetryableError
from oarsman.service.operations import Call, StreamCall

T = TypeVar("T")


class OverRest:
    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        verify: str | os.PathLike[str] | ssl.SSLContext | bool = True,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.address = ServerAddress.of(address, token=token, verify=verify)
        self._http = httpx.AsyncClient(**self.address.options, transport=transport)

    async def close(self) -> None:
        await self._http.aclose()

    async def do(self, call: Call[T]) -> T:
        patience = Patience()
        while True:
            try:
                return http.answer(call, await self._send(call), self.address.url)
            except Again as again:
                await asyncio.sleep(patience.delay(again))

    async def _send(self, call: Call[Any]) -> httpx.Response:
        try:
            return await self._http.request(call.method, call.path, params=call.parameters, json=call.body)
        except httpx.HTTPError as error:
            raise http.trouble(error, call, self.address.url) from error

    async def stream(self, stream: StreamCall[T]) -> AsyncGenerator[T, None]:
        patience = Patience()
        while True:
            try:
                async for answer in self._connected(stream):
                    patience.encouraged()
                    stream = stream.resumed(stream, answer)
                    yield answer
                return
            except Again as again:
                await asyncio.sleep(patience.delay(again))

    async def _connected(self, stream: StreamCall[T]) -> AsyncGenerator[T, None]:
        """The answers of one connection. Raises Again when it breaks."""
        established = False
        try:
            async with aconnect_sse(
                self._http, "GET", stream.path, params=stream.parameters, **http.STREAMED
            ) as source:
                await _check(source.response, self.address.url)
                established, ended = True, False
                async for event in source.aiter_sse():
                    ended = ended or event.event == "end"
                    if data := http.data_of(event):
                        yield http.read(stream.reads, data, self.address.url)
                if not ended:
                    raise http.cut_off(self.address.url)
        except httpx.HTTPError as error:
            raise http.broken(error, self.address.url, established=established) from error

    async def download(self, stream: StreamCall[bytes]) -> AsyncGenerator[bytes, None]:
        try:
            async with self._http.stream("GET", stream.path, params=stream.parameters) as response:
                await _check(response, self.address.url)
                async for chunk in response.aiter_bytes():
                    yield chunk
        except Again as again:
            raise again.error from again
        except httpx.HTTPError as error:
            raise RetryableError(
                f"the download from {self.address.url} broke off: {error}", hint="begin again"
            ) from error


async def _check(response: httpx.Response, url: str) -> None:
    if not response.is_success:
        await response.aread()
        http.refuse(response, url)
