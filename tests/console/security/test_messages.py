"""What is sent through the connections of pages and means nothing: the real server, and bytes that no browser sends."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz.sockets import framed
from fuzz.wire import Answer, Request, ask

from console.api.running import Served, served

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
