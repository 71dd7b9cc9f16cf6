"""The one connection to a host's machine: orders go out, the host agent's words come in."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import IO

from oarsman.engines.hosts.core import process
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
            self._forget(stream)
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
        self._forget(pipe)

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
            self._forget(stream)
        return chunk

    def _forget(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(stream)
