"""A command in a pod, without kubectl: what is said to the kubelet over a WebSocket, and what comes back.

Only as much of the protocol as that takes (RFC 6455, and v4.channel.k8s.io on top): the first byte of a message says
what the rest is, of the command's output, its errors, or how it ended.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import struct
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

STDOUT, STDERR, ENDED = 1, 2, 3
CONTINUED, TEXT, BINARY, CLOSE, PING = 0, 1, 2, 8, 9


class Refused(RuntimeError):
    """The server answered, but not what was asked for."""

    def __init__(self, path: str, status: int, body: str) -> None:
        super().__init__(f"{path}: {status} {body}")
        self.status = status


def run(
    where: tuple[str, int], tls: ssl.SSLContext, path: str, headers: Mapping[str, str], patience: float
) -> subprocess.CompletedProcess[str]:
    """Raises what Client.ask raises if there is no such pod, or nobody to run anything in it."""
    said = {STDOUT: b"", STDERR: b"", ENDED: b""}
    with (
        socket.create_connection(where, timeout=patience) as plain,
        tls.wrap_socket(plain, server_hostname=where[0]) as line,
        line.makefile("rb") as answers,
    ):
        asked = {
            "Host": f"{where[0]}:{where[1]}",
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
            **headers,
        }
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in asked.items()), "", ""]
        line.sendall("\r\n".join(lines).encode())
        status = int(answers.readline().split()[1])
        size = 0
        while (header := answers.readline().strip()) != b"":
            name, _, value = header.partition(b":")
            size = int(value) if name.lower() == b"content-length" else size
        if status != 101:
            raise Refused(path, status, answers.read(size).decode(errors="replace"))
        for message in _messages(answers, line):
            if message[:1] and message[0] in said:
                said[message[0]] += message[1:]
    return subprocess.CompletedProcess(path, _code(said[ENDED]), said[STDOUT].decode(), said[STDERR].decode())


def _messages(answers: Any, line: ssl.SSLSocket) -> Iterator[bytes]:
    """Until the server has no more to say."""
    whole = b""
    while len(head := answers.read(2)) == 2:
        kind, size = head[0] & 15, head[1] & 127
        if size > 125:
            size = int.from_bytes(answers.read(2 if size == 126 else 8), "big")
        part = answers.read(size)
        if kind == CLOSE:
            line.sendall(b"\x88\x80" + bytes(4))
            return
        if kind == PING:
            line.sendall(struct.pack("!BB4x", 0x8A, 0x80 | len(part)) + part)  # a mask of zeros changes nothing
        if kind in (CONTINUED, TEXT, BINARY):
            whole += part
            if head[0] & 128:
                yield whole
                whole = b""


def _code(ended: bytes) -> int:
    """As kubectl exec would end."""
    status = json.loads(ended or b"{}")
    if status.get("status") == "Success":
        return 0
    causes = status.get("details", {}).get("causes", ())
    return next((int(cause["message"]) for cause in causes if cause.get("reason") == "ExitCode"), 1)
