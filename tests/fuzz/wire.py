"""Requests as bytes: no library in between that would mend or refuse them."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from urllib.parse import urlsplit

LIMIT_SECONDS = 60.0  # ends what hangs: nothing here takes a second, on a machine that does nothing else
_LISTENED_SECONDS = 0.2  # to a stream
_MOST = 64 << 20


@dataclass(frozen=True)
class Request:
    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    afterwards: tuple[bytes, ...] = ()  # sent when the answer has begun: frames of a web socket
    whole: bool = True  # a well-formed request, which has to be answered

    @property
    def path(self) -> str:
        return self.target.decode("latin-1").partition("?")[0]

    def bytes(self, host: str) -> bytes:
        given = {name.lower() for name, _ in self.headers}
        more = [] if b"host" in given else [(b"Host", host.encode())]
        if self.body and not given & {b"content-length", b"transfer-encoding"}:
            more.append((b"Content-Length", b"%d" % len(self.body)))
        lines = [b"%s: %s\r\n" % header for header in (*more, *self.headers)]
        return b"%s %s HTTP/1.1\r\n%s\r\n%s" % (self.method, self.target, b"".join(lines), self.body)


@dataclass(frozen=True)
class Answer:
    status: int | None  # None: the connection was closed without one
    raw: bytes = b""  # head and body
    seconds: float = 0.0

    @property
    def body(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[2]


class _Reading:
    """What http.client reads from, which stays ours: behind the head of a web socket there is more."""

    def __init__(self, connection: socket.socket) -> None:
        self.file = connection.makefile("rb")

    def makefile(self, *_: object) -> BufferedReader:
        return self.file


def ask(address: str, request: Request) -> Answer:
    """Raises TimeoutError if nothing comes in time."""
    where = urlsplit(address)
    began = time.monotonic()
    with socket.create_connection((where.hostname or "", where.port or 80), timeout=LIMIT_SECONDS) as connection:
        with suppress(OSError):  # refused before all was sent; why may have come
            connection.sendall(request.bytes(where.netloc))
            if not request.whole and not request.afterwards:
                connection.shutdown(socket.SHUT_WR)
        try:
            reading = _Reading(connection)
            response = http.client.HTTPResponse(reading, method=request.method.decode("latin-1"))  # type: ignore[arg-type]
            response.begin()
            head = "".join(f"{name}: {value}\r\n" for name, value in response.getheaders())
            if response.status == http.HTTPStatus.SWITCHING_PROTOCOLS:
                body = _heard(connection, reading.file, request.afterwards)
            elif "text/event-stream" in (response.getheader("content-type") or ""):
                body = _heard(connection, response, ())
            else:
                body = response.read(_MOST)
        except (http.client.HTTPException, ConnectionError, ValueError) as error:
            return Answer(None, repr(error).encode(), time.monotonic() - began)
    return Answer(response.status, head.encode("latin-1", "replace") + b"\r\n" + body, time.monotonic() - began)


def _heard(
    connection: socket.socket, reader: http.client.HTTPResponse | BufferedReader, says: Iterable[bytes]
) -> bytes:
    """What comes within a moment; then we are gone, in the middle of it."""
    found, until = b"", time.monotonic() + _LISTENED_SECONDS
    with suppress(TimeoutError, ConnectionError):
        for words in says:
            connection.sendall(words)
        while (left := until - time.monotonic()) > 0:
            connection.settimeout(left)
            if not (piece := reader.read1(65536)):
                break
            found += piece
    return found
