"""Log lines on their way out: tagged, coloured per rank on a terminal, never held back for long.

A million lines must not cost a million system calls, and a line must not wait for the next one. Writes are
therefore buffered when they do not go to a terminal, and a thread empties the buffers five times a second.
"""

from __future__ import annotations

import json
import sys
import threading
from types import TracebackType
from typing import IO, TYPE_CHECKING

import click

from oarsman.cli.render import coloured
from oarsman.cli.text import safe
from oarsman.cli.times import rfc3339

if TYPE_CHECKING:
    from oarsman.runtime.jobs import LogLine

_PALETTE = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_yellow",
            "bright_magenta", "bright_blue")  # fmt: skip
_FLUSH_SECONDS = 0.2


class Printer:
    """Writes log lines. `split` sends what ranks wrote to stderr to ours; otherwise all goes to stdout."""

    def __init__(
        self, *, tags: bool = True, split: bool = False, timestamps: bool = False, as_json: bool = False
    ) -> None:
        self._tags, self._split, self._timestamps, self._json = tags, split, timestamps, as_json
        self._out, self._err = sys.stdout, sys.stderr
        self._colour = {self._out: coloured(self._out), self._err: coloured(self._err)}
        self._terminal = {self._out: self._out.isatty(), self._err: self._err.isatty()}
        self._known: dict[tuple[int | None, str, IO[str]], str] = {}
        self._last: IO[str] = self._out
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._flusher: threading.Thread | None = None

    def __enter__(self) -> Printer:
        if not self._terminal[self._out]:  # a terminal is line-buffered
            self._flusher = threading.Thread(target=self._flush_often, name="log-flush", daemon=True)
            self._flusher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, line: LogLine) -> None:
        """One line; after `close` nothing is written any more, whichever thread asks."""
        stream = self._err if self._split and line.stream == "err" else self._out
        text = self._format(line, stream)
        with self._lock:
            if self._closed.is_set():
                return
            if stream is not self._last:  # both may be one file: keep the order
                self._last.flush()
                self._last = stream
            stream.write(text)

    def close(self) -> None:
        with self._lock:
            if self._closed.is_set():
                return
            self._closed.set()
            self._out.flush()
            self._err.flush()
        if self._flusher is not None:
            self._flusher.join()

    def _flush_often(self) -> None:
        while not self._closed.wait(_FLUSH_SECONDS):
            with self._lock:
                try:
                    self._last.flush()
                except (OSError, ValueError):  # the next write meets it, in a thread that can say so
                    return

    def _format(self, line: LogLine, stream: IO[str]) -> str:
        if self._json:
            fields = {"time": rfc3339(line.time), "rank": line.rank, "host": line.host, "stream": line.stream}
            return json.dumps({**fields, "text": line.text}, ensure_ascii=False) + "\n"
        text = safe(line.text) if self._terminal[stream] else line.text
        moment = f"{line.time.astimezone().isoformat(timespec='milliseconds')} " if self._timestamps else ""
        return f"{moment}{self._tag(line, stream) if self._tags else ''}{text}\n"

    def _tag(self, line: LogLine, stream: IO[str]) -> str:
        key = (line.rank, line.host, stream)
        tag = self._known.get(key)
        if tag is None:
            words = f"[{line.host}]" if line.rank is None else f"[rank {line.rank} {line.host}]"
            words = safe(words) if self._terminal[stream] else words
            if self._colour[stream]:
                colour = _PALETTE[(line.rank or 0) % len(_PALETTE)]
                words = click.style(words, fg=colour, bold=line.rank is None or None)
            tag = self._known[key] = words + " "
        return tag
