"""The journal of a job: what its job agent saw, one JSON line per fact, only ever added to.

It is the truth about a running job. The supervisor reads it, may die, and reads it again; nothing
the job agent noted is lost with either of them. Journals of earlier versions are read, too.
"""

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from oarsman.engines.hosts.core.messages import Codec, RankStarted, Unknown, WorldStarted

RESERVE_BYTES = 1 << 20
FILE = "journal.jsonl"


class AgentStarted(NamedTuple):
    pid: int
    started: str  # as in ProcessId


class AgentEnded(NamedTuple):
    pass


class HostMade(NamedTuple):
    host: str
    index: int  # type: ignore[assignment]  # hides a method of tuples that nobody needs
    launcher: bool
    pid: int
    started: str
    address: str
    unset: Sequence[str]  # limits that could not be set
    machine: str = ""  # where it is, if it is not a machine of its own


class HostUp(NamedTuple):
    host: str


class HostTrouble(NamedTuple):
    host: str
    reason: str


class HostEnding(NamedTuple):
    host: str  # it was asked to


class HostDown(NamedTuple):
    host: str
    reason: str  # empty: it was asked to end
    memory: bool  # its memory limit was hit


class HostGone(NamedTuple):
    host: str  # whose end the plan has dealt with


class LauncherStarted(NamedTuple):
    attempt: int


class LauncherEnded(NamedTuple):
    attempt: int
    code: int
    signal: int | None
    memory: bool
    lines: Sequence[str]


class LauncherGone(NamedTuple):
    attempt: int  # whose end the plan has dealt with


class RankEnd(NamedTuple):
    attempt: int
    world: str
    rank: int
    code: int
    signal: int | None
    memory: bool
    lines: Sequence[str]
    reason: str
    at: float | None = None  # when it ended, if the rank could tell


class RankLines(NamedTuple):
    """The last lines of a rank whose end was told before they were here."""

    attempt: int
    world: str
    rank: int
    lines: Sequence[str]


class RankException(NamedTuple):
    """The exception of a rank that runs, and whose traceback is the last it wrote; empty: it wrote more."""

    attempt: int
    world: str
    rank: int
    line: str


class RankSilence(NamedTuple):
    """As in `messages.RankSilent`."""

    attempt: int
    world: str
    rank: int
    cpu: int | None


class RankOtherMpi(NamedTuple):
    """As in `messages.RankLibrary`."""

    attempt: int
    world: str
    rank: int
    library: str
    of: str
    launcher: str
    by: str
    own: str


class Published(NamedTuple):
    hosts: Sequence[str]


class OutputBegan(NamedTuple):
    attempt: int


class LogTrouble(NamedTuple):
    reason: str


HostFact = HostMade | HostUp | HostTrouble | HostEnding | HostDown | HostGone
LauncherFact = LauncherStarted | LauncherEnded | LauncherGone
RankFact = WorldStarted | RankStarted | RankEnd | RankLines | RankException | RankSilence | RankOtherMpi
Fact = AgentStarted | AgentEnded | HostFact | LauncherFact | RankFact | Published | OutputBegan | LogTrouble
_FACTS = Codec[Fact](
    {
        "keeper": AgentStarted,  # what the agent of a job was called that may still run
        "agent": AgentStarted,
        "end": AgentEnded,
        "host-made": HostMade,
        "host-up": HostUp,
        "host-trouble": HostTrouble,
        "host-ending": HostEnding,
        "host-down": HostDown,
        "host-gone": HostGone,
        "launcher-start": LauncherStarted,
        "launcher-end": LauncherEnded,
        "launcher-gone": LauncherGone,
        "world-start": WorldStarted,
        "rank-start": RankStarted,
        "rank-end": RankEnd,
        "rank-lines": RankLines,
        "rank-exception": RankException,
        "rank-silence": RankSilence,
        "rank-other-mpi": RankOtherMpi,
        "published": Published,
        "first-output": OutputBegan,
        "log-trouble": LogTrouble,
    },
    tag="e",
)


class Noted(NamedTuple):
    at: float
    fact: Fact


class Journal:
    """The writing side. While it is open a reserve is kept on the disk, so that a full disk can still be reported."""

    def __init__(self, folder: str) -> None:
        self._reserve = os.path.join(folder, "reserve")
        self._fd = _open(folder)
        self._waiting: list[bytes] = []  # lines for which there was no room
        if not os.path.exists(self._reserve):
            with contextlib.suppress(OSError), open(self._reserve, "wb") as file:
                file.write(bytes(RESERVE_BYTES))

    def close(self) -> None:
        self.catch_up()
        os.close(self._fd)
        self._give_up_reserve()

    def note(self, fact: Fact) -> None:
        self._waiting.append(_line(fact))
        if not self.catch_up():
            self._give_up_reserve()
            self.catch_up()

    def catch_up(self) -> bool:
        """Write what a full disk has not taken so far; False if some of it still waits."""
        while self._waiting and _append(self._fd, self._waiting[0]):
            self._waiting.pop(0)
        return not self._waiting

    def _give_up_reserve(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._reserve)


def add_note(folder: str, fact: Fact) -> None:
    """One fact from somebody other than the job agent. OSError if it is not written."""
    fd = _open(folder)
    try:
        if not _append(fd, _line(fact)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(fd)


def _open(folder: str) -> int:
    return os.open(f"{folder}/{FILE}", os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _append(fd: int, line: bytes) -> bool:
    """False if the disk is full. What it took of the line all the same stays, torn, and the next one ends it."""
    data = b"\n" + line if _torn(fd) else line
    try:
        return os.write(fd, data) == len(data)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        return False


def _torn(fd: int) -> bool:
    """Whether the last line has no end. A superfluous one does no harm, should somebody be about to write it."""
    size = os.fstat(fd).st_size
    return size > 0 and os.pread(fd, 1, size - 1) != b"\n"


def _line(fact: Fact) -> bytes:
    return json.dumps({"t": time.time(), **_FACTS.to_json(fact)}, separators=(",", ":")).encode() + b"\n"


class JournalReader:
    """The reading side: what was added since the last look. A half-written line waits for its end."""

    def __init__(self, folder: str) -> None:
        self._path = f"{folder}/{FILE}"
        self._offset = 0

    def news(self) -> Iterator[Noted]:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            with contextlib.suppress(ValueError):  # a line torn by a full disk
                facts = json.loads(line)
                fact = _FACTS.from_json(facts)
                if not isinstance(fact, Unknown):
                    yield Noted(facts["t"], fact)
