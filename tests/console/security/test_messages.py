"""What is sent through the connections of pages and means nothing: the real server, and bytes that no browser sends."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from html import unescape
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
import socketio
from fuzz.sockets import framed
from fuzz.wire import Answer, Request, ask

from console.api.running import Served, served, stopped
from console.security.test_live_pages import asked_by, connected, is_refused
from oarsman.console.pages.messages import Seldom

SOCKET = "/_nicegui_ws/socket.io/"
MEANINGLESS = (
    *([b""], [b"9"], [b"x"], [b"40", b"42"], [b"40", b"42["], [b"40", b"42{}"], [b"40", b"42[]"], [b'40{"a":']),
    *([b"44"], [b"40", b"45"], [b"40", b"451-["], [b"40", b'451-["event",{"_placeholder":true,"num":0}]', b"2"]),
    [b"40", b"\xff"],
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served") / "state") as found:
        yield found


def opened(server: Served, path: str, *messages: bytes) -> Answer:
    key = base64.b64encode(b"sixteen letters.")
    asked = ((b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"), (b"Sec-WebSocket-Key", key))
    headers = (*asked, (b"Sec-WebSocket-Version", b"13"), (b"Origin", server.address.encode()))
    frames = tuple(framed(message) for message in messages)
    return ask(server.address, Request(b"GET", f"{path}?EIO=4&transport=websocket".encode(), headers, b"", frames))


def test_messages_that_mean_nothing_leave_no_traceback_in_the_log(tmp_path: Path) -> None:
    with served(tmp_path / "state") as server:
        for messages in MEANINGLESS:
            assert opened(server, SOCKET, *messages).status == 101
        said = server.end()
    assert "Traceback" not in said, said


@pytest.mark.parametrize("path", ["/_nicegui_ws/", "/_nicegui_ws/x", "/", "/api/v1/jobs/stream", "/healthz"])
def test_elsewhere_there_is_no_web_socket(server: Served, path: str) -> None:
    assert opened(server, path).status == 403


def login_page(server: Served) -> str:
    return unescape(httpx.get(f"{server.address}/login", trust_env=False, timeout=60).text)


def test_a_browser_writes_nothing_into_the_log(tmp_path: Path) -> None:
    """Of the login page: nobody has to be in for this."""
    with served(tmp_path / "state") as server:
        page = login_page(server)
        query, theme = asked_by(page), re.search(r'"listener_id":"([^"]+)","type":"oarsmanTheme"', page)
        assert theme is not None
        about = {"client_id": query["client_id"], "id": 0, "listener_id": theme[1]}

        async def run() -> None:
            async with connected(server, query, {}, "websocket") as connection:
                for level in ("info", "warning", "error"):
                    said = {**about, "level": level, "message": "an admin\x1b[31m\nlogged in"}
                    await connection.client.call("log", said, timeout=60)
                for args in (["{"], ["[1]"], ['{"a":1}'], [7], 7, [[]]):
                    await connection.client.call("event", {**about, "args": args}, timeout=60)

        asyncio.run(run())
        for body in (b"0", b"b!!", b"4\x1e" * 40, b"d=4&d=5", b"\xff"):
            sid = begun(server)
            httpx.post(f"{server.address}{SOCKET}", params=_POLLED | {"sid": sid}, content=body, headers=own(server))
        httpx.get(f"{server.address}{SOCKET}", params=_POLLED | {"sid": "an admin"}, headers=own(server))
        said = server.end()
    assert "an admin" not in said, said
    assert "Traceback" not in said, said


_POLLED = {"EIO": "4", "transport": "polling"}


def own(server: Served) -> Mapping[str, str]:
    return {"Origin": server.address}


def begun(server: Served) -> str:
    answer = httpx.get(f"{server.address}{SOCKET}", params=_POLLED, headers=own(server), trust_env=False)
    return str(json.loads(answer.text[1:])["sid"])


def test_a_connection_that_is_ended_is_not_waited_for(server: Served) -> None:
    """Nobody may ever take what was left to be said there, and the request would stay for ever."""
    for body in (b"0", b"40\x1e42["):
        asked = _POLLED | {"sid": begun(server)}
        answer = httpx.post(f"{server.address}{SOCKET}", params=asked, content=body, headers=own(server), timeout=20)
        assert answer.status_code in (200, 400)


def test_what_fails_at_the_same_place_is_told_once_a_minute() -> None:
    now = 0.0
    seldom = Seldom(lambda: now)

    def told(fail: Any) -> bool:
        try:
            fail()
        except Exception:
            return seldom.filter(logging.LogRecord("nicegui", logging.ERROR, "", 0, "x", None, sys.exc_info()))
        raise AssertionError

    def one() -> None:
        raise ValueError

    def other() -> None:
        raise ValueError

    assert [told(one), told(one), told(other), told(one)] == [True, False, True, False]
    now = 61.0
    assert told(one)
    assert seldom.filter(logging.LogRecord("nicegui", logging.WARNING, "", 0, "x", None, None))


@asynccontextmanager
async def socket(server: Served) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    query = "?EIO=4&transport=websocket"
    async with (
        asyncio.timeout(60),
        aiohttp.ClientSession(headers=own(server)) as http,
        http.ws_connect(f"{server.address}{SOCKET}{query}", compress=15) as found,
    ):
        await found.receive()
        yield found


def test_nothing_is_kept_of_messages_in_many_parts(server: Served) -> None:
    async def run() -> None:
        async with socket(server) as found:
            await found.send_str("40")
            await found.receive()
            await found.send_str('459999999999-["x",{"_placeholder":true,"num":0}]')
            assert (await found.receive()).data == "1"  # it ends

    asyncio.run(run())


def test_a_message_is_as_large_as_what_was_sent(server: Served) -> None:
    async def run() -> None:
        async with socket(server) as found:
            assert not found.compress
            await found.send_bytes(bytes((1 << 20) + 1))
            assert (await found.receive()).data == 1009

    asyncio.run(run())


def test_a_page_that_says_more_than_anybody_does_ends(server: Served) -> None:
    page = login_page(server)
    query = asked_by(page)

    async def run() -> None:
        async with connected(server, query, {}, "websocket") as connection:
            for _ in range(600):
                with suppress(socketio.exceptions.SocketIOError):  # it has ended already
                    await connection.client.emit("event", {"client_id": query["client_id"], "id": -1})
            async with asyncio.timeout(60):
                await connection.ended.wait()

    asyncio.run(run())


def test_what_a_page_calls_its_tab_is_short(server: Served) -> None:
    """The framework keeps it for long, of everybody who sees the login page."""
    for name in ("tab_id", "document_id", "old_tab_id"):
        query = {**asked_by(login_page(server)), name: "x" * 101}
        assert asyncio.run(is_refused(server, query, {}, "websocket")), name


def test_pages_that_nobody_comes_to_make_room_for_others(server: Served) -> None:
    first = asked_by(login_page(server))
    with httpx.Client(base_url=server.address, trust_env=False, timeout=60) as client:
        for _ in range(201):
            assert client.get("/login").status_code == 200
    assert asyncio.run(is_refused(server, first, {}, "websocket"))
    assert not asyncio.run(is_refused(server, asked_by(login_page(server)), {}, "websocket"))


FEW = """
import runpy, sys
from oarsman.console.pages import live
assert live._MOST_CONNECTIONS == 1000
live._MOST_CONNECTIONS = 50
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_one_address_begins_a_thousand_connections_and_no_more(tmp_path: Path) -> None:
    """A thousand can take a busy machine longer than one is kept that says nothing, so fifty stand for them."""
    few = tmp_path / "few.py"
    few.write_text(FEW)
    with stopped(Served(tmp_path / "state", before=(sys.executable, str(few)))) as server:
        with httpx.Client(base_url=server.address, trust_env=False, timeout=60) as client:
            answers = [client.get(SOCKET, params=_POLLED, headers=own(server)).status_code for _ in range(51)]
        server.end()
    assert answers == [200] * 50 + [503]
