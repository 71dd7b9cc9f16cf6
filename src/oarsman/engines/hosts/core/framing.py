"""How the supervisor, a job's agent, its hosts and the shims speak with each other: length, then JSON.

Unix sockets tell at once when the other side is gone, which is how a dead host is noticed. File
descriptors travel beside a message, so a command on another host has its caller's own terminal,
pipes and files.

Messages are named tuples: a shim is started for every rank, and `dataclasses` alone would be a fifth of its imports.
Where they are, annotations are not postponed: as texts, named tuples would have to compile them.
"""

import array
import contextlib
import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from oarsman.text.sentence import Text, dump, load

LENGTH = struct.Struct("!I")


M = TypeVar("M", bound=tuple[Any, ...])  # named, with the names that its fields have in JSON


class Unknown(NamedTuple):
    """What another version says and this one does not understand."""

    name: str


class Codec(Generic[M]):
    """The messages of one direction, by their names in JSON.

    The name stands under `tag`, unless one of the message's own fields is called so and tells it from the others:
    {"do":"sweep","number":1}, {"signal":15}. Fields that are not known are passed over.
    """

    def __init__(self, kinds: Mapping[str, type[M]], *, tag: str = "do") -> None:
        self._kinds = kinds
        self._tag = tag
        self._names = {kind: name for name, kind in kinds.items()}
        self._fields = [name for name, kind in kinds.items() if name in kind.__annotations__]

    def name(self, message: M) -> str:
        return self._names[type(message)]

    def to_json(self, message: M) -> dict[str, Any]:
        name = self.name(message)
        values = (dump(value) if isinstance(value, Text) else value for value in message)
        facts = dict(zip(type(message).__annotations__, values, strict=True))
        return facts if name in facts else {self._tag: name, **facts}

    def from_json(self, facts: Mapping[str, Any]) -> M | Unknown:
        name = facts.get(self._tag) or next((field for field in self._fields if field in facts), "")
        kind = self._kinds.get(name)
        if kind is None:
            return Unknown(str(name))
        try:
            return kind(**{field: _value(facts[field]) for field in kind.__annotations__ if field in facts})
        except TypeError:  # it lacks a field
            return Unknown(str(name))

    def encode(self, message: M) -> bytes:
        body = json.dumps(self.to_json(message), separators=(",", ":")).encode()
        return LENGTH.pack(len(body)) + body

    def decode(self, body: bytes) -> M | Unknown:
        return self.from_json(json.loads(body))

    def send(self, sock: socket.socket, message: M, fds: Sequence[int] = ()) -> None:
        data = self.encode(message)
        if fds:
            sent = sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
            data = data[sent:]
        sock.sendall(data)

    def receive(self, sock: socket.socket) -> tuple[M | Unknown | None, list[int]]:
        """The next message and its descriptors; None when the other side is gone."""
        fds = array.array("i")
        try:
            head, ancillary, _flags, _address = sock.recvmsg(LENGTH.size, socket.CMSG_SPACE(8 * fds.itemsize))
            for level, kind, payload in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
            body = _exactly(sock, LENGTH.unpack(head + _exactly(sock, LENGTH.size - len(head)))[0]) if head else b""
        except (ConnectionResetError, EOFError):
            body = b""
        return (self.decode(body) if body else None), list(fds)


def _value(written: Any) -> Any:
    """A sentence is read as one, with what it is made of."""
    return load(written) if isinstance(written, dict) and isinstance(written.get("arguments"), dict) else written


def _exactly(sock: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = sock.recv(min(size, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


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
