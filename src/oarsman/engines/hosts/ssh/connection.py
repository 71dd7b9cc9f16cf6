"""What goes to a host's machine and comes from it: orders and words, commands for other hosts, and what ranks do."""

from __future__ import annotations

import binascii
import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import IO

from oarsman.engines.hosts.core import messages, process
from oarsman.engines.hosts.core.host import unwatch
from oarsman.engines.hosts.core.messages import CALLS, Exited
from oarsman.engines.hosts.core.shims import other_mpi
from oarsman.engines.hosts.ssh import scripts

_KEPT_WORDS = 4096
_LONGEST_LINE = 1 << 16  # many times what a host agent ever says; what goes on and on is not its word


def start_ssh(argv: Sequence[str], out: int, err: int) -> subprocess.Popen[bytes]:
    """It ends with us, and the command at its other end learns of it by the end of its input."""
    return subprocess.Popen(
        [*argv, scripts.RECEIVER],
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=err,
        start_new_session=True,
        preexec_fn=_in_child,
    )


def start_feeder(source: int, ssh: IO[bytes]) -> subprocess.Popen[bytes]:
    """Hands on, behind the script, what the command is to read. A process: what is read may be anything, also a file,
    which no selector takes."""
    return subprocess.Popen(["cat"], stdin=source, stdout=ssh, stderr=subprocess.DEVNULL, preexec_fn=_in_child)


def _in_child() -> None:
    process.restore_signals()
    signal.set_wakeup_fd(-1)
    if sys.platform == "linux":
        from oarsman.engines.hosts.core import linux

        linux.end_with_parent(signal.SIGTERM)


class Connection:
    """`heard` is called with the first word of each line, and the rest."""

    def __init__(
        self, argv: Sequence[str], script: str, selector: selectors.BaseSelector, heard: Callable[[str, str], None]
    ) -> None:
        self._selector = selector
        self._heard = heard
        self._orders = bytearray(scripts.line(script))  # not yet taken by ssh
        self._line = b""  # not complete yet
        self._words = b""  # what ssh itself said last
        self._ssh = start_ssh(argv, subprocess.PIPE, subprocess.PIPE)
        assert self._ssh.stdin is not None
        assert self._ssh.stdout is not None
        assert self._ssh.stderr is not None
        self._in, self._out, self._err = self._ssh.stdin, self._ssh.stdout, self._ssh.stderr
        for stream in (self._in, self._out, self._err):
            os.set_blocking(stream.fileno(), False)
        selector.register(self._out, selectors.EVENT_READ, self._listen)
        selector.register(self._err, selectors.EVENT_READ, self._note_words)
        self._flush(self._in)

    def order(self, *words: str) -> None:
        self._orders += " ".join(words).encode("utf-8", "surrogateescape") + b"\n"
        self._flush(self._in)

    def ended(self) -> int | None:
        """Its exit code, once all it said has been read and its pipes are closed; None while it lives."""
        code = self._ssh.poll()
        if code is None:
            return None
        for stream, read in ((self._out, self._listen), (self._err, self._note_words)):
            while stream in self._selector.get_map():
                read(stream)
        for stream in (self._in, self._out, self._err):
            unwatch(self._selector, stream)
            with contextlib.suppress(OSError):
                stream.close()
        return code

    @property
    def words(self) -> str:
        return self._words.decode(errors="replace")

    def kill(self) -> None:
        self._ssh.kill()

    def _flush(self, pipe: IO[bytes]) -> None:
        """Hand on what ssh takes; the rest when it takes more."""
        try:
            while self._orders:
                del self._orders[: os.write(pipe.fileno(), self._orders)]
        except BlockingIOError:
            if pipe not in self._selector.get_map():
                self._selector.register(pipe, selectors.EVENT_WRITE, self._flush)
            return
        except (OSError, ValueError):
            self._orders.clear()  # it has ended, which is noticed elsewhere
        unwatch(self._selector, pipe)

    def _listen(self, stream: IO[bytes]) -> None:
        *lines, begun = (self._line + self._read(stream)).split(b"\n")
        self._line = begun[-_LONGEST_LINE:]
        for line in lines:
            kind, _, rest = line.decode("utf-8", "surrogateescape").partition(" ")
            self._heard(kind, rest)

    def _note_words(self, stream: IO[bytes]) -> None:
        self._words = (self._words + self._read(stream))[-_KEPT_WORDS:]

    def _read(self, stream: IO[bytes]) -> bytes:
        try:
            chunk = os.read(stream.fileno(), 1 << 16)
        except BlockingIOError:
            if self._ssh.poll() is None:
                return b""
            chunk = b""  # another process holds the other end, and will say nothing that counts
        if not chunk:
            unwatch(self._selector, stream)
        return chunk


_PIECE = 4096  # bytes; packed they are five times as many at most, which a pipe takes at once


@dataclass(slots=True)
class RemoteCommand:
    asker: str
    host: socket.socket
    outputs: dict[int, str]  # read end of a pipe -> what the asker is told its bytes are
    exit: int | None = None


@dataclass(slots=True)
class RemoteCommands:
    aliases: Mapping[str, str]
    run_folder: str
    selector: selectors.BaseSelector
    answer: Callable[[str, str, str], None]  # tells an asker something: who, what kind of word, the word
    under_way: dict[str, RemoteCommand] = field(default_factory=dict)

    def start(self, asker: str, host: str, command: str) -> None:
        self.drop(asker)  # one that was killed, and whose number another has now
        host = host.rpartition("@")[2]
        member = self.aliases.get(host) or self.aliases.get(host.partition(".")[0])
        try:
            if member is None:
                raise OSError(f"{host} is not a host of this job")
            channel = messages.connect(f"{self.run_folder}/h/{member}")
        except OSError as error:
            self.answer(asker, "err", scripts.packed(f"ssh: {host}: {error.strerror or error}\n"))
            self.answer(asker, "ended", "255")
            return
        quiet = os.open(os.devnull, os.O_RDONLY)
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        messages.COMMANDS.send(channel, messages.RunCommand(["/bin/sh", "-c", command]), [quiet, out_end, err_end])
        for fd in (quiet, out_end, err_end):
            os.close(fd)
        remote_command = self.under_way[asker] = RemoteCommand(asker, channel, {out: "out", err: "err"})
        self.selector.register(channel, selectors.EVENT_READ, lambda _: self._hear(remote_command))
        self.go_on(asker)

    def go_on(self, asker: str) -> None:
        """It has taken what it was told, and is told more."""
        if (remote_command := self.under_way.get(asker)) is not None:
            relay = partial(self._relay, remote_command)
            for fd in remote_command.outputs:
                if fd not in self.selector.get_map():  # anybody on the machine's side can say so twice
                    self.selector.register(fd, selectors.EVENT_READ, relay)

    def drop(self, asker: str) -> None:
        """Like a closed connection: its command ends."""
        if (remote_command := self.under_way.pop(asker, None)) is not None:
            for fd in remote_command.outputs:
                unwatch(self.selector, fd)
                os.close(fd)
            unwatch(self.selector, remote_command.host)
            remote_command.host.close()

    def drop_all(self) -> None:
        for asker in list(self.under_way):
            self.drop(asker)

    def _relay(self, remote_command: RemoteCommand, fd: int) -> None:
        """One piece at a time: an asker that does not take it must not hold up what others are told."""
        chunk = os.read(fd, _PIECE)
        if chunk:
            for output in remote_command.outputs:
                unwatch(self.selector, output)
            said = scripts.packed(chunk.decode("utf-8", "surrogateescape"))
            self.answer(remote_command.asker, remote_command.outputs[fd], said)
            return
        unwatch(self.selector, fd)
        os.close(fd)
        del remote_command.outputs[fd]
        self._end_if_done(remote_command)

    def _hear(self, remote_command: RemoteCommand) -> None:
        result, _ = messages.RESULTS.receive(remote_command.host)
        if isinstance(result, messages.Unknown):
            return
        remote_command.exit = result.exit if result is not None else 255
        unwatch(self.selector, remote_command.host)
        remote_command.host.close()
        self._end_if_done(remote_command)

    def _end_if_done(self, remote_command: RemoteCommand) -> None:
        """Not before all it said was handed on."""
        if remote_command.exit is not None and not remote_command.outputs:
            self.answer(remote_command.asker, "ended", str(remote_command.exit))
            del self.under_way[remote_command.asker]


_STREAMS = {"stdout": "out", "stderr": "err"}


@dataclass(slots=True)
class RemoteRanks:
    """Each has a connection of its own to the job agent. Programs of the job can write into the host agent's pipe as
    well, so what makes no sense is ignored."""

    members: Sequence[tuple[str, int]]
    run_folder: str
    tell: Callable[[messages.HostReport], None]
    tellers: dict[tuple[str, str], socket.socket] = field(default_factory=dict)

    def announce(self, world: messages.WorldStarted) -> None:
        with contextlib.suppress(OSError), messages.connect(f"{self.run_folder}/k") as teller:
            CALLS.send(teller, world)

    def started(self, facts: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            label, rank, size, local, pid = facts.split()
            attempt, world, survives = label.split(":")
            teller = self.tellers[label, rank] = messages.connect(f"{self.run_folder}/k")
            host = member_of(self.members, int(local))
            numbers = int(rank), int(size), int(local)
            CALLS.send(teller, messages.RankStarted(*numbers, host, int(attempt), world, survives == "1", pid=int(pid)))

    def said(self, words: str) -> None:
        """What a rank wrote, out of the file that Open MPI keeps: WORLD/JOB/rank.NUMBER/STREAM BASE64."""
        with contextlib.suppress(KeyError, ValueError):
            path, data = words.split(" ")
            world, _job, rank, stream = path.split("/")
            attempt, number = int(world.partition("-")[0]), int(rank.removeprefix("rank."))
            binascii.a2b_base64(data)
            self.tell(messages.Said(data, attempt, world, number, _STREAMS[stream]))

    def mapped(self, facts: str, launcher: str) -> None:
        """What of an MPI a rank has loaded, see rank.sh, and by which of its variables it knows who started it."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            label, rank, variables, library, *files = facts.split()
            by = other_mpi.launched_by(dict.fromkeys(variables.split(","), ""))
            said = " ".join(files).encode()
            if family := other_mpi.exactly(other_mpi.other(other_mpi.families_in(said, ""), by), said):
                CALLS.send(self.tellers[label, rank], messages.RankLibrary(library, family, launcher, by, ""))

    def ended(self, facts: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            label, rank, code = facts.split()
            if (teller := self.tellers.pop((label, rank), None)) is not None:
                with teller:
                    CALLS.send(teller, messages.RankEnded(*exit_told(int(code))))

    def end_all(self) -> None:
        for teller in self.tellers.values():
            teller.close()  # a rank that can say nothing more was killed
        self.tellers.clear()


def member_of(members: Sequence[tuple[str, int]], local: int) -> str:
    """Hosts of the job that share a machine are one to MPI; a rank belongs to the one whose slot it has."""
    for name, slots in members:
        if local < slots:
            return name
        local -= slots
    return members[-1][0]


def exit_told(code: int) -> Exited:
    """As a shell tells it: above 128 a signal ended the command."""
    if code < 0:  # our own ssh was killed
        code = 128 - code
    number = code - 128 if 128 < code < 128 + signal.NSIG and code != 255 else None
    return Exited(code, number)
