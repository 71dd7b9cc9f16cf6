"""Messages between the supervisor, a job's job agent, its hosts and the shims: length, then JSON.

Unix sockets tell at once when the other side is gone, which is how a dead host is noticed. File
descriptors travel beside a message, so a command on another host has its caller's own terminal,
pipes and files.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]
_LENGTH = struct.Struct("!I")


def listen(path: str) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    server.bind(path)
    server.listen(512)
    return server


def connect(path: str) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.connect(path)
    except BaseException:
        client.close()
        raise
    return client


def encode(message: Message) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)) + body


def send(sock: socket.socket, message: Message, fds: Sequence[int] = ()) -> None:
    data = encode(message)
    if fds:
        sent = sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
        data = data[sent:]
    sock.sendall(data)


def receive(sock: socket.socket) -> tuple[Message | None, list[int]]:
    """The next message and its descriptors; None when the other side is gone."""
    fds = array.array("i")
    try:
        head, ancillary, _flags, _address = sock.recvmsg(_LENGTH.size, socket.CMSG_SPACE(8 * fds.itemsize))
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
        body = _exactly(sock, _LENGTH.unpack(head + _exactly(sock, _LENGTH.size - len(head)))[0]) if head else b""
    except (ConnectionResetError, EOFError):
        body = b""
    return (json.loads(body) if body else None), list(fds)


def _exactly(sock: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = sock.recv(min(size, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
