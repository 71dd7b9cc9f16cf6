"""The live connection of pages: socket.io, over web sockets and over requests."""

from __future__ import annotations

import base64
import json
from random import Random
from urllib.parse import quote

from . import odd
from .routes import header
from .wire import Request

_PATHS = ["/_nicegui_ws/socket.io/"] * 12 + odd.words(
    "/_nicegui_ws/socket.io /_nicegui_ws/ /_nicegui_ws/x /socket.io/ / /jobs"
)
_PATHS += odd.words("/api/v1/jobs/stream /_nicegui/3.18.0/static/x /_nicegui/auto/static/x /healthz")
_ORIGINS = [odd.ADDRESS.encode()] * 19 + [
    b"http://evil.example",
    b"null",
    b"",
    b"https://127.0.0.1",
    b"http://127.0.0.1:1@b",
]
_EVENTS = odd.words(
    "handshake event javascript_response log ack too_long_message connect disconnect run_javascript notify"
)
_PREFIXES = odd.words("40 42 42 42 420 43 44 45 451- 459999999999- 2 3 5 6 40/x, 4 9")


def asked(rng: Random, caller: str, seed: int) -> Request:
    client = quote(rng.choice(odd.WORDS)[:200], errors="replace")
    query = (
        f"?EIO={rng.choice((*'4' * 9, '3', 'x'))}&client_id={client}&document_id={rng.choice(('a', ''))}&old_tab_id="
    )
    query += f"&implicit_handshake={rng.choice(('true', 'false', '', 'x'))}&tab_id={rng.choice(('a', '..'))}"
    query += f"&next_message_id={rng.choice(('0', '-1', 'x', '9' * 5000))}"
    query = query if rng.random() < 0.5 else "?EIO=4"
    path, sid = rng.choice(_PATHS), rng.choice((*[""] * 9, "&sid=a", "&sid=%00", f"&sid={'a' * 3000}"))
    origin = ((b"Origin", rng.choice(_ORIGINS)),) if rng.random() < 0.9 else ()
    if rng.random() < 0.35:
        method = rng.choice((b"GET", b"POST", b"POST", b"OPTIONS", b"DELETE"))
        body = _packet(rng).encode("utf-8", "surrogatepass") if method == b"POST" else b""
        target = f"{path}{query}{sid}&transport={rng.choice(('polling', 'x', 'websocket'))}"
        return Request(method, target.encode(), origin, body)
    key = rng.choice((*[base64.b64encode(b"a" * 16)] * 12, b"", b"short", b"\xff"))
    upgrade = [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"), (b"Sec-WebSocket-Key", key)]
    upgrade.append((b"Sec-WebSocket-Version", rng.choice((*[b"13"] * 12, b"8", b"x"))))
    if rng.random() < 0.2:
        upgrade.append((b"Sec-WebSocket-Protocol", header(odd.text(rng))[:500]))
    frames = _message(b"40", rng) + tuple(_frame(rng) for _ in range(rng.choice((1, 3, 10))))
    return Request(
        b"GET", f"{path}{query}{sid}&transport=websocket".encode(), (*upgrade, *origin), b"", frames, whole=False
    )


def _packet(rng: Random) -> str:
    """Of engine.io and socket.io: well-formed, or nearly."""
    said = [rng.choice((*_EVENTS, odd.text(rng)[:100])), odd.value(rng)]
    if rng.random() < 0.5:
        said[1] = {
            "client_id": odd.text(rng)[:100],
            "id": 4,
            "listener_id": "a",
            "args": odd.value(rng),
            "document_id": "a",
        }
    return rng.choice((*_PREFIXES, "")) + json.dumps(said)[: rng.choice((10, 100_000))]


def _message(payload: bytes, rng: Random) -> tuple[bytes, ...]:
    """That somebody is there, without which nothing else is looked at; now and then it is missing."""
    return (framed(payload),) if rng.random() < 0.9 else ()


def framed(payload: bytes) -> bytes:
    """A short text, masked with nothing."""
    return bytes([0x81, 0x80 | len(payload), 0, 0, 0, 0]) + payload


def _frame(rng: Random) -> bytes:
    payload = rng.randbytes(rng.choice((0, 1, 200)))
    if rng.random() < 0.8:
        payload = _packet(rng).encode("utf-8", "surrogatepass")
    first = rng.choice((0x81, 0x81, 0x81, 0x82, 0x88, 0x89, 0x8A, 0x01, 0x80, 0xF1, 0x83))
    mask = rng.randbytes(4) if rng.random() < 0.9 else b""
    bit, size = (0x80 if mask else 0), len(payload)
    if rng.random() < 0.05:
        size = rng.choice((2**63 - 1, 2**64 - 1, 70_000))  # more than comes
    if size < 126:
        length = bytes([bit | size])
    elif size < 65536:
        length = bytes([bit | 126]) + size.to_bytes(2, "big")
    else:
        length = bytes([bit | 127]) + size.to_bytes(8, "big")
    if mask:
        payload = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
    return bytes([first]) + length + mask + payload
