"""How many connections the server holds, and for how long one may be slow: nobody keeps out the others by being slow.

uvicorn by itself waits for the first request, and for the rest of any, for ever.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from math import inf
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from oarsman.console.security.throttle import network

_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def _most() -> int:
    """Logs, databases and processes need open files as well."""
    return min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 3 // 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    most: int = field(default_factory=_most)
    share: float = 0.25  # of them, that one address has at most
    head_bytes: int = 1 << 16
    head_seconds: float = 20.0  # until all of a request but its body is there; also of a TLS handshake
    body_seconds: float = 120.0  # until all of the body is there
    taking_seconds: float = 60.0  # without anything of an answer being taken


class Connection(AutoHTTPProtocol):  # type: ignore[valid-type,misc]
    """Turned away at once where there are too many; one more than that would be one file too many."""

    def __init__(self, *, limits: ConnectionLimits, is_proxy: Callable[[str], bool], **given: Any) -> None:
        super().__init__(**given)
        self._limits, self._is_proxy, self._head = limits, is_proxy, 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        most, here = self._limits.most, _address(self)
        proxied = self.client is not None and self._is_proxy(self.client[0])  # None: it is gone again already
        of_one = 0 if proxied else sum(_address(each) == here for each in self.connections)
        if len(self.connections) > most or of_one > most * self._limits.share:
            transport.write(_FULL)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """One of the two parsers that uvicorn knows keeps a head of any length."""
        in_head = self.cycle is None or self.cycle.response_complete or not self.cycle.more_body
        self._head = self._head + len(data) if in_head and b"\n\r\n" not in data else 0
        if self._head > self._limits.head_bytes:
            self.transport.abort()
        else:
            super().data_received(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers, of any number, would be added to the headers, when it was decided what the request may."""
        if "method" not in self.scope:
            super().on_header(name, value)


def _address(connection: Any) -> str:
    """Of IPv6 the network: whoever has one address has all of it."""
    return network((getattr(connection, "client", None) or ("",))[0])


class Patience:
    """Looks at all connections now and then, and ends those that have been in one state for too long."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._since: dict[Any, tuple[object, float]] = {}

    def look(self, connections: Collection[Any], now: Callable[[], float] = time.monotonic) -> None:
        since, moment = {}, now()
        for each in list(connections):
            state, patience = self._state(each)
            before = self._since.get(each)
            since[each] = before if before is not None and before[0] == state else (state, moment)
            if moment - since[each][1] > patience:
                each.transport.abort()
        self._since = since

    def _state(self, connection: Any) -> tuple[object, float]:
        """What would be another after any progress, and how long it may last."""
        if waiting := connection.transport.get_write_buffer_size():
            return waiting, self._limits.taking_seconds
        if not isinstance(connection, Connection):  # a WebSocket: once begun, it has beats of its own
            return None, inf if connection.handshake_complete else self._limits.head_seconds
        cycle = connection.cycle
        if cycle is None or cycle.response_complete:
            return ("head", cycle), self._limits.head_seconds
        return ("body", cycle), self._limits.body_seconds if cycle.more_body else inf
