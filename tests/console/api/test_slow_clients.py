"""Clients that are slow on purpose, through the real server on 127.0.0.1: they are let go, and others are served."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

from oarsman.console.security.connections import ConnectionLimits
from oarsman.console.server import Server, listen
from oarsman.console.settings import ConsoleSettings, tls_context

from ..security.test_listening import make_certificate
from .asking import API, Asking, asking
from .memory import SUCCEEDED
from .running import events

QUICK = ConnectionLimits(most=40, head_seconds=0.5, body_seconds=0.5, taking_seconds=0.5)
OTHER = "127.0.0.2"  # the address of whoever is slow


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Asking]:
    with asking(tmp_path) as found:
        yield found


@contextmanager
def served(ask: Asking, limits: ConnectionLimits = QUICK, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a real server in a thread of its own."""
    ready = threading.Event()
    with listen(ConsoleSettings(port=0)) as sock:
        config = uvicorn.Config(
            ask.app, log_config=None, lifespan="on", ssl_context_factory=(lambda *_: tls) if tls else None
        )
        server = Server(config, ask.console, ready.set, limits)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        ready.wait()
        try:
            yield sock.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def slow(port: int, said: bytes = b"", *, address: str = OTHER) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
    connection.settimeout(120)  # only ends what hangs
    connection.sendall(said)
    return connection


def let_go(connection: socket.socket) -> bytes:
    """What it hears until it is let go; without that the test ends by its own time limit."""
    heard = b""
    try:
        while part := connection.recv(1 << 16):
            heard += part
    except ConnectionResetError:
        pass
    return heard


def others_are_served(ask: Asking, port: int, scheme: str = "http") -> bool:
    with httpx.Client(trust_env=False, verify=False) as client:
        return client.get(f"{scheme}://127.0.0.1:{port}{API}/jobs", headers=ask.headers("ada")).status_code == 200


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HT",
        b"POST /api/v1/preview HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        b"POST /api/v1/preview HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
        b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
    ids=["nothing", "half a header", "half a second request", "half a body", "half a body in chunks", "no web socket"],
)
def test_who_does_not_end_a_request_is_let_go(ask: Asking, said: bytes) -> None:
    with served(ask) as port, ExitStack() as stack:
        many = [stack.enter_context(slow(port, said)) for _ in range(10)]
        assert others_are_served(ask, port)
        for connection in many:
            let_go(connection)


def test_who_begins_a_header_again_and_again_is_let_go_all_the_same(ask: Asking) -> None:
    with served(ask) as port, slow(port, b"GET /healthz HTTP/1.1\r\n") as connection:
        gone = threading.Event()

        def drip() -> None:
            while not gone.wait(0.05):
                try:
                    connection.sendall(b"X: y\r\n")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            let_go(connection)
        finally:
            gone.set()
            dripping.join()


def test_a_header_without_an_end_is_not_kept(ask: Asking) -> None:
    """One of the parsers that uvicorn knows has no limit for it."""
    limits = ConnectionLimits(most=40, head_seconds=600)
    with served(ask, limits) as port, slow(port, b"GET /healthz HTTP/1.1\r\nX: ") as connection:
        with pytest.raises(OSError, match=r"reset|Broken pipe"):  # noqa: PT012
            for _ in range(1000):
                connection.sendall(b"x" * (1 << 16))
        assert others_are_served(ask, port)


def test_a_large_body_that_comes_with_its_header_is_no_large_header(ask: Asking) -> None:
    manifest = "# " + "x" * (300 << 10)
    with served(ask) as port, httpx.Client(trust_env=False) as client:
        url = f"http://127.0.0.1:{port}{API}/preview"
        assert client.post(url, headers=ask.headers("ada"), json={"manifest": manifest}).status_code < 500


def test_who_does_not_take_the_answer_is_let_go(ask: Asking) -> None:
    ask.jobs.add()
    ask.jobs.say("default/pi", *("x" * 50_000 for _ in range(500)))
    ask.jobs.become("default/pi", SUCCEEDED)
    token = ask.tokens["ada"]
    said = f"GET {API}/jobs/default/pi/log/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
    with served(ask) as port:
        connection = socket.socket()
        with connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(120)
            connection.connect(("127.0.0.1", port))
            connection.sendall(said.replace("127.0.0.1", f"127.0.0.1:{port}").encode())
            while not len(ask.console.streams):
                threading.Event().wait(0.01)
            while len(ask.console.streams):  # nothing is read meanwhile
                threading.Event().wait(0.01)
            assert not let_go(connection).endswith(b"0\r\n\r\n")
        assert others_are_served(ask, port)


def test_one_address_does_not_use_up_the_connections_of_others(ask: Asking) -> None:
    limits = ConnectionLimits(most=40, head_seconds=600)
    with served(ask, limits) as port, ExitStack() as stack:
        many = [stack.enter_context(slow(port)) for _ in range(50)]
        turned_away = sum(let_go(each).startswith(b"HTTP/1.1 503") for each in many[10:])
        assert turned_away == 40
        assert others_are_served(ask, port)


def test_more_connections_than_the_server_takes_are_turned_away_and_it_goes_on(ask: Asking) -> None:
    limits = ConnectionLimits(most=20, share=1.0, head_seconds=600)
    with served(ask, limits) as port:
        with ExitStack() as stack:
            many = [stack.enter_context(slow(port, address=f"127.0.0.{n}")) for n in range(2, 27)]
            assert [let_go(each)[9:12] for each in many[20:]] == [b"503"] * 5
        while not_yet(ask, port):
            threading.Event().wait(0.01)


def not_yet(ask: Asking, port: int) -> bool:
    try:
        return not others_are_served(ask, port)
    except httpx.HTTPError:
        return True


def test_a_handshake_that_does_not_go_on_is_ended(ask: Asking, tmp_path: Path) -> None:
    tls = tls_context(*make_certificate(tmp_path, "server"))
    with served(ask, tls=tls) as port, slow(port, b"\x16\x03") as connection:
        assert others_are_served(ask, port, "https")
        assert let_go(connection) == b""


def test_streams_and_connections_that_only_wait_are_not_slow(ask: Asking) -> None:
    ask.jobs.add()
    with served(ask) as port, httpx.Client(trust_env=False, headers=ask.headers("ada")) as client:
        base = f"http://127.0.0.1:{port}{API}/jobs/default/pi/log/stream?after=0"
        with client.stream("GET", base, timeout=None) as response, slow(port) as connection:
            heard = events(response)
            let_go(connection)  # longer than any time limit of this server
            ask.jobs.say("default/pi", "still here")
            assert "still here" in next(heard)[2]


def test_the_logs_that_one_person_follows_are_not_taken_from_the_others(ask: Asking) -> None:
    ask.jobs.add()
    with served(ask, ConnectionLimits(most=400)) as port, ExitStack() as stack:
        url = f"http://127.0.0.1:{port}{API}/jobs/default/pi/log/stream?after=0"

        def client(address: str) -> httpx.Client:
            transport = httpx.HTTPTransport(local_address=address, limits=httpx.Limits(max_connections=100))
            return stack.enter_context(httpx.Client(transport=transport, timeout=None))

        def follow(name: str, by: httpx.Client) -> httpx.Response:
            return stack.enter_context(by.stream("GET", url, headers=ask.headers(name)))

        here, elsewhere = client("127.0.0.1"), client(OTHER)
        mine = [follow("ada", here) for _ in range(64)]
        for name, by in (("ada", elsewhere), ("root", here)):  # the same person elsewhere, another one's token here
            kind, _, data = next(events(follow(name, by)))
            assert (kind, "you follow 64 logs already" in data) == ("problem", True)
        ask.jobs.say("default/pi", "line")
        assert "line" in next(events(follow("root", elsewhere)))[2]
        mine[0].close()
        while "line" not in next(events(follow("ada", here)))[2]:
            pass


def test_a_trailer_is_no_header(ask: Asking) -> None:
    """It comes when all that decides about a request was looked at, and there may be any number."""
    body = b"2\r\n{}\r\n0\r\nAuthorization: Bearer " + ask.tokens["vera"].encode() + b"\r\n\r\n"
    head = (
        b"POST /api/v1/preview HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    )
    with served(ask) as port, slow(port, head + b"Transfer-Encoding: chunked\r\n\r\n" + body) as connection:
        assert let_go(connection).startswith(b"HTTP/1.1 401 ")
