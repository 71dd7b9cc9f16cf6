"""What shims, hosts, the job agent and the supervisor say to each other, and how: length, then JSON.

Unix sockets tell at once when the other side is gone, which is how a dead host is noticed. File descriptors travel
beside a message, so a command on another host has its caller's own terminal, pipes and files.

Shims, the job agent and the supervisor may be of different versions: the form of their messages in JSON stays. Hosts
are made by their job agent and are always of its version.

Messages are named tuples: a shim is started for every rank, and `dataclasses` alone would be a fifth of its imports.
Where they are, annotations are not postponed: as texts, named tuples would have to compile them.
"""

import array
import contextlib
import json
import os
import re
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from oarsman.text.sentence import Text, dump, load, marked

LENGTH = struct.Struct("!I")
_LONGEST = 100_000  # bytes, of somebody who is not trusted: the kernel holds as many
_LARGEST = 1 << 36  # number, likewise: as seconds it is a time that calendars have
_HALF_A_LETTER = re.compile("[\ud800-\udfff]")
_NOT_TO_BE_INHERITED = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # as what Python itself opens
M = TypeVar("M", bound=tuple[Any, ...])  # named, with the names that its fields have in JSON


class Unknown(NamedTuple):
    """What another version says and this one does not understand."""

    name: str


class Codec(Generic[M]):
    """The messages of one direction, by their names in JSON.

    The name stands under `tag`, unless one of the message's own fields is called so and tells it from the others:
    {"do":"sweep","number":1}, {"signal":15}. Fields that are not known are passed over. Of somebody who is not trusted
    a message has a bounded length, and every field is what it should be: they become names of files, and what is shown
    to everybody.
    """

    def __init__(self, kinds: Mapping[str, type[M]], *, tag: str = "do", trusted: bool = True) -> None:
        self._kinds = kinds
        self._longest = 1 << 32 if trusted else _LONGEST
        self._trusted = trusted
        self._tag = tag
        self._names = {kind: name for name, kind in kinds.items()}
        self._fields = [name for name, kind in kinds.items() if name in kind.__annotations__]

    def name(self, message: M) -> str:
        return self._names[type(message)]

    def to_json(self, message: M) -> dict[str, Any]:
        name = self.name(message)
        write = marked if self._trusted else dump  # a sentence may become part of another one, and stays one there
        values = (write(value) if isinstance(value, Text) else value for value in message)
        facts = dict(zip(type(message).__annotations__, values, strict=True))
        return facts if name in facts else {self._tag: name, **facts}

    def from_json(self, facts: Mapping[str, Any]) -> M | Unknown:
        name = facts.get(self._tag) or next((field for field in self._fields if field in facts), "")
        kind = self._kinds.get(name) if isinstance(name, str) else None
        if kind is None:
            return Unknown(str(name))
        if not (self._trusted or all(_fits(facts[f], of) for f, of in kind.__annotations__.items() if f in facts)):
            return Unknown(name)
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

    def whole(self, sock: socket.socket) -> int | None:
        """The size of the next message, once it can be received without waiting for anybody or never will be."""
        head = sock.recv(LENGTH.size, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        if len(head) < LENGTH.size:
            return None if head else 0
        size: int = LENGTH.unpack(head)[0]
        there = sock.recv(LENGTH.size + min(size, self._longest), socket.MSG_PEEK | socket.MSG_DONTWAIT)
        return size if size > self._longest or len(there) == LENGTH.size + size else None

    def receive(self, sock: socket.socket) -> tuple[M | Unknown | None, list[int]]:
        """The next message and its descriptors; None when the other side is gone."""
        fds = array.array("i")
        try:
            room = socket.CMSG_SPACE(8 * fds.itemsize)
            head, ancillary, _flags, _address = sock.recvmsg(LENGTH.size, room, _NOT_TO_BE_INHERITED)
            for level, kind, payload in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
            size = LENGTH.unpack(head + _exactly(sock, LENGTH.size - len(head)))[0] if head else 0
            body = _exactly(sock, size) if size <= self._longest else b""
        except (ConnectionResetError, EOFError):
            body = b""
        return (self.decode(body) if body else None), list(fds)


def _fits(value: Any, of: Any) -> bool:
    """Numbers are counted from 0, times are of a calendar, and texts can be written in every encoding of Unicode."""
    if of == Sequence[str]:
        return isinstance(value, list) and all(_fits(each, str) for each in value)
    if isinstance(value, str):
        return of is str and _HALF_A_LETTER.search(value) is None
    if isinstance(value, bool):
        return of is bool
    return isinstance(value, of) and (value is None or 0 <= value < _LARGEST)


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


def listen(path: str, *, mode: int = 0o600) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    server.bind(path)
    os.chmod(path, mode)
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


# -- who wants a command run on a host, and the host ------------------------------------------------------------
class RunCommand(NamedTuple):
    """With its input, output and errors beside it. Its end is told; if the connection ends first, it ends, too."""

    argv: Sequence[str]
    env: Mapping[str, str] = {}  # beyond those of the host


class SignalCommand(NamedTuple):
    signal: int


class Exited(NamedTuple):
    exit: int  # as a shell has it
    signal: int | None = None


COMMANDS = Codec[RunCommand | SignalCommand]({"argv": RunCommand, "signal": SignalCommand})
RESULTS = Codec[Exited]({"exit": Exited})


# -- a launch and its ranks to the job agent ----------------------------------------------------------------------
class WorldStarted(NamedTuple):
    """A launcher is about to start its ranks."""

    words: Sequence[str]  # the launcher and its options as it is called; none: nobody can tell from them where ranks go
    attempt: int
    world: str  # one per launch of an attempt


class RankStarted(NamedTuple):
    rank: int
    size: int  # of its world
    local: int  # its number on its host
    host: str
    attempt: int
    world: str
    survives: bool = False  # the others go on if it fails
    pid: int = 0  # 0: the kernel tells


class FirstOutput(NamedTuple):
    output: bool
    attempt: int


class RankRaised(NamedTuple):
    """It wrote the traceback of an exception, then nothing for a while, and runs; empty: it wrote more."""

    raised: str


class RankSilent(NamedTuple):
    """It has written nothing for a minute or longer, and used this much CPU in the last one."""

    cpu: int | None  # percent of one, 0 or much; None: that is over


class RankLibrary(NamedTuple):
    """It has loaded the MPI library of another MPI than its launcher's."""

    library: str  # a file; empty: only the program itself was seen
    of: str
    launcher: str  # likewise
    by: str
    own: str  # the launcher beside that library; empty: there is none


class RankEnded(NamedTuple):
    exit: int
    signal: int | None = None
    lines: Sequence[str] = ()  # the last it wrote
    reason: str = ""  # what was amiss with it, besides
    at: float | None = None


class GiveInput(NamedTuple):
    """With the standard input of a launcher beside it, for its rank 0."""

    world: str


class TakeInput(NamedTuple):
    """It is beside the answer."""

    world: str


class TakeLogs(NamedTuple):
    """What a rank writes down goes into the files beside the answer: one per stream, and the merged one."""

    logs: bool = True


RankWord = RankStarted | FirstOutput | RankRaised | RankSilent | RankLibrary | RankEnded
RankMessage = TakeLogs | WorldStarted | RankWord | GiveInput | TakeInput


# -- supervisor to job agent --------------------------------------------------------------------------------------
class StartHost(NamedTuple):
    host: str


class StopHost(NamedTuple):
    host: str


class StartLauncher(NamedTuple):
    attempt: int


class StopLauncher(NamedTuple):
    pass


class Publish(NamedTuple):
    hosts: Sequence[str]
    files: Mapping[str, str]  # hostfile and its kin


class EndJob(NamedTuple):
    pass


class KeepDeadline(NamedTuple):
    at: float | None  # seconds since the epoch: what runs then is ended, whoever else is asleep; None: there is none


class Listen(NamedTuple):
    """From now on be told of every change."""


Order = StartHost | StopHost | StartLauncher | StopLauncher | Publish | KeepDeadline | EndJob | Listen
_RANK_KINDS: Mapping[str, type[RankMessage]] = {
    "words": WorldStarted,
    "rank": RankStarted,
    "output": FirstOutput,
    "raised": RankRaised,
    "cpu": RankSilent,
    "library": RankLibrary,
    "exit": RankEnded,
    "give-input": GiveInput,
    "take-input": TakeInput,
    "take-logs": TakeLogs,
}
_CALL_KINDS: Mapping[str, type[Order | RankMessage]] = {
    **_RANK_KINDS,
    "start-host": StartHost,
    "stop-host": StopHost,
    "start-launcher": StartLauncher,
    "stop-launcher": StopLauncher,
    "publish": Publish,
    "deadline": KeepDeadline,
    "end": EndJob,
    "listen": Listen,
}
CALLS = Codec[Order | RankMessage](_CALL_KINDS)  # all that arrives at the job agent's socket
RANK_CALLS = Codec[RankMessage](_RANK_KINDS, trusted=False)  # and from a job that is confined


# -- job agent to supervisor --------------------------------------------------------------------------------------
class Done(NamedTuple):
    answer: str  # to which order


class Failed(NamedTuple):
    answer: str
    error: str


class Changed(NamedTuple):
    changed: bool = True  # there is news in the journal


Answer = Done | Failed | Changed
ANSWERS = Codec[Answer]({"error": Failed, "answer": Done, "changed": Changed})


# -- job agent to host --------------------------------------------------------------------------------------------
class Ping(NamedTuple):
    pass


class EndCommands(NamedTuple):
    number: int  # of this sweep


class PublishFiles(NamedTuple):
    """Take the files that are published now."""


class EndHost(NamedTuple):
    grace: float


HostOrder = Ping | EndCommands | PublishFiles | EndHost
HOST_ORDERS = Codec[HostOrder]({"ping": Ping, "sweep": EndCommands, "publish": PublishFiles, "end": EndHost})


# -- host to job agent --------------------------------------------------------------------------------------------
class Up(NamedTuple):
    pass


class InTrouble(NamedTuple):
    reason: str


class Alive(NamedTuple):
    """The answer to a ping."""


class Launching(NamedTuple):
    """A launch line was composed."""

    hosts: Sequence[str]  # by rank, as far as that is known
    by_hydra: bool  # its lines will say which rank wrote them, but not to which stream


class Said(NamedTuple):
    """What a rank wrote, if it does not come through the launcher."""

    data: str  # Base64
    attempt: int
    world: str
    rank: int
    stream: str


class Emptied(NamedTuple):
    sweep: int  # all that ranks wrote before it was said


HostReport = Up | InTrouble | Alive | Launching | Said | Emptied
HOST_REPORTS = Codec[HostReport](
    {"up": Up, "trouble": InTrouble, "alive": Alive, "launching": Launching, "said": Said, "emptied": Emptied}, tag="is"
)
