"""Sends requests, again where that is safe, and turns every kind of trouble into one kind of error."""

from __future__ import annotations

import asyncio
import contextlib
import io
import random
import socket
import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass
from itertools import count
from typing import Self, TypeVar

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from oarsman.backoff import Backoff
from oarsman.engines.kube.client.access import Access
from oarsman.engines.kube.client.errors import TooManyRequests, Unauthorized, Unavailable, from_answer
from oarsman.errors import AccessError
from oarsman.text.sentence import Text
from oarsman.version import __version__

Observe = Callable[[str, str, int, float], None]  # verb, plural, status (0: no answer), seconds
Answer = TypeVar("Answer")
on_behalf_of: ContextVar[str] = ContextVar("on_behalf_of", default="")  # the job that the requests of a task are for

_TRIES = 5
_BACKOFF = Backoff(0.1, 2.0, random.uniform)
_LONGEST_PAUSE = 30.0  # however long the server asks for
_CONNECT = 10.0  # seconds for TCP and TLS
_FAREWELL = 0.05
_LARGE = 2**20  # aiohttp wants bodies beyond this as a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    verb: str
    method: str
    target: str  # path and query
    plural: str
    trying: str  # "create pods default/pi", for messages
    headers: Mapping[str, str]
    body: bytes | None = None


class Bucket:
    """At most `rate` requests a second, after a burst."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = self._burst
        self._at = time.monotonic()

    async def take(self) -> None:
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        self._tokens -= 1  # below zero: a place in the queue
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / self._rate)


class Places:
    """So many requests at a time. If more wait, jobs take turns: a large one delays no small one."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(on_behalf_of.get(), deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._pass_on()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            whom, line = self._waiting.popitem(last=False)
            place = line.popleft()
            if line:
                self._waiting[whom] = line
            if not place.done():  # cancelled
                place.set_result(None)
                return
        self._free += 1


@dataclass(eq=False)
class Transport:
    """One session of keep-alive connections. Streams, once open, do not count against the concurrency."""

    access: Access
    _: KW_ONLY
    concurrency: int = 64
    rate: tuple[float, int] | None = None
    observe: Observe | None = None
    timeout: float = 30.0

    def __post_init__(self) -> None:
        self._places = Places(self.concurrency)
        self._bucket = Bucket(*self.rate) if self.rate else None
        self._limits = aiohttp.ClientTimeout(total=self.timeout, sock_connect=_CONNECT)
        self._session: aiohttp.ClientSession | None = None
        self._cut_short = False

    async def __aenter__(self) -> Self:
        headers = {"User-Agent": f"oarsman/{__version__}"}
        if self.access.local:
            headers["Accept-Encoding"] = "identity"  # packing costs both sides more than the loopback does
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self.access.ssl or True, keepalive_timeout=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()
            self._session = None
            # What was cut short is closed in the background, and TLS takes a few turns of the loop for that.
            await asyncio.sleep(_FAREWELL if self._cut_short else 0)

    async def ask(self, request: Request) -> bytes:
        """The whole answer."""

        async def attempt(renew: bool) -> bytes:
            answer = await self._send(request, self._limits, renew=renew)
            try:
                return await answer.read()
            except BaseException:
                self._cut_short = True
                raise
            finally:
                answer.release()

        return await self._persist(request, attempt)

    @asynccontextmanager
    async def stream(self, request: Request, *, quiet: float | None) -> AsyncIterator[AsyncIterator[bytes]]:
        """The answer line by line. `quiet`: seconds without a single byte after which the connection counts as dead."""
        limits = aiohttp.ClientTimeout(sock_connect=_CONNECT, sock_read=quiet)

        async def attempt(renew: bool) -> aiohttp.ClientResponse:
            async with asyncio.timeout(self.timeout):
                return await self._send(request, limits, renew=renew)

        answer = await self._persist(request, attempt)
        try:
            _probe_when_quiet(answer)
            async with aclosing(_lines(request, answer)) as lines:
                yield lines
        finally:
            self._cut_short = True
            _hang_up(answer)

    async def _persist(self, request: Request, attempt: Callable[[bool], Awaitable[Answer]]) -> Answer:
        """Tries again what was refused for now, and what may be repeated."""
        renew = False
        for tries in count(1):
            try:
                async with self._places:
                    with _named_trouble(request):
                        return await attempt(renew)
            except Unauthorized:
                if renew:
                    raise
                renew = True
            except (TooManyRequests, Unavailable) as error:
                pause = _pause(request, error, tries)
                if pause is None:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("counting ended")

    async def _send(self, request: Request, limits: aiohttp.ClientTimeout, *, renew: bool) -> aiohttp.ClientResponse:
        """One try. An answer that says no is raised."""
        if self._session is None:
            raise RuntimeError("the client is not open: use `async with Kube(...)`")
        if self._bucket:
            await self._bucket.take()
        headers = CIMultiDict(request.headers)
        headers.extend(await self.access.credentials.headers(renew=renew))
        body: object = request.body
        if request.body and len(request.body) > _LARGE:
            body = io.BytesIO(request.body)
        started, status = time.perf_counter(), 0
        try:
            answer = await self._session.request(
                request.method,
                URL(self.access.server + request.target, encoded=True),
                data=body,
                headers=headers,
                timeout=limits,
                allow_redirects=False,
                proxy=self.access.proxy,
                server_hostname=self.access.server_name or None,
            )
            status = answer.status
        finally:
            self._cut_short |= status == 0
            if self.observe:
                self.observe(request.verb, request.plural, status, time.perf_counter() - started)
        if status < 300:
            return answer
        async with answer:
            raise from_answer(request.trying, status, await answer.read(), answer.headers.get("Retry-After"))


def _pause(request: Request, error: TooManyRequests | Unavailable, tries: int) -> float | None:
    """Seconds until the next try; None: there is none."""
    if tries >= _TRIES:
        return None
    refused_for_now = error.status == 429 or (error.status == 503 and error.retry_after is not None)
    repeatable = request.method in ("GET", "DELETE")  # sending it again when it may have arrived does no harm
    broken = repeatable and error.reason != "Timeout"  # another wait as long would help nobody
    if not refused_for_now and not broken:
        return None
    return max(_BACKOFF.after(tries), min(error.retry_after or 0.0, _LONGEST_PAUSE))


@contextmanager
def _named_trouble(request: Request) -> Iterator[None]:
    """What goes wrong below HTTP, under the name of what was being tried."""
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        hint = Text("check certificate-authority and tls-server-name of the cluster in the kubeconfig")
        template = Text("{trying}: the server's certificate is not trusted: {why}")
        raise AccessError(Text(template, trying=request.trying, why=error), hint=hint) from error
    except TimeoutError as error:  # aiohttp's own are among them
        raise Unavailable(request.trying, str(error) or Text("no answer in time"), reason="Timeout") from error
    except aiohttp.ClientPayloadError as error:
        raise Unavailable(request.trying, Text("the connection broke in the middle of the answer")) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unavailable(request.trying, str(error) or type(error).__name__) from error


def _hang_up(answer: aiohttp.ClientResponse) -> None:
    """At once: a polite end would wait for the other side, which may go on talking."""
    transport = answer.connection.transport if answer.connection else None
    if transport:
        transport.abort()
    answer.close()


def _probe_when_quiet(answer: aiohttp.ClientResponse) -> None:
    """Lets the kernel find out within a minute that the other side is gone without a word."""
    transport = answer.connection.transport if answer.connection else None
    found = transport.get_extra_info("socket") if transport else None
    if found is None:
        return
    with contextlib.suppress(OSError, AttributeError):  # not every system has all three
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


async def _lines(request: Request, answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """Lines of any length, without their ends; at last what came after the last end."""
    begun: list[bytes] = []
    with _named_trouble(request):
        async for piece in answer.content.iter_any():
            *ends, tail = piece.split(b"\n")
            for end in ends:
                yield b"".join((*begun, end))
                begun = []
            if tail:
                begun.append(tail)
    if begun:
        yield b"".join(begun)
