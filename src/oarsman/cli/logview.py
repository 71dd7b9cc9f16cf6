"""Log lines on their way out: tagged, coloured per rank on a terminal, never held back for long.

A million lines must not cost a million system calls, and a line must not wait for the next one. Writes are
therefore buffered when they do not go to a terminal, and a thread empties the buffers five times a second.

On a terminal the last row may be a line that has not ended yet: a prompt, a progress bar. Of several the first is
shown. It is cleared before anything else is written, and written again behind it.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
from typing import IO, TYPE_CHECKING

import click

from oarsman.cli.render import coloured
from oarsman.cli.text import rfc3339, safe, width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oarsman.backends.base import LogLine

_COLOURS = ("cyan", "green", "yellow", "magenta", "blue")
_PALETTE = (*_COLOURS, *(f"bright_{colour}" for colour in _COLOURS))
_FLUSH_SECONDS = 0.2
_CLEARED = "\r\x1b[K"


class _Sink:
    """One of our two streams, and what is known of it."""

    def __init__(self, stream: IO[str]) -> None:
        self.write, self.flush = stream.write, stream.flush
        self.terminal, self._colour = stream.isatty(), coloured(stream)
        self.tags: dict[tuple[int | None, str], str] = {}
        self.machines: Mapping[str, str] = {}

    def tag(self, rank: int | None, host: str) -> str:
        machine = self.machines.get(host, host)
        where = host if machine == host else f"{host} {machine}"
        words = f"[{where}]" if rank is None else f"[rank {rank} {where}]"
        words = safe(words) if self.terminal else words
        if self._colour:
            words = click.style(words, fg=_PALETTE[(rank or 0) % len(_PALETTE)], bold=rank is None or None)
        tag = self.tags[rank, host] = words + " "
        return tag


class Printer:
    """Writes log lines. `split` sends what ranks wrote to stderr to ours; otherwise all goes to stdout."""

    def __init__(
        self, *, tags: bool = True, split: bool = False, timestamps: bool = False, as_json: bool = False
    ) -> None:
        self._tags, self._split, self._timestamps, self._json = tags, split, timestamps, as_json
        self._out, self._err = _Sink(sys.stdout), _Sink(sys.stderr)
        self._last = self._out
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._open = True
        self._broken: Exception | None = None
        self._flusher: threading.Thread | None = None
        self._live: LogLine | None = None  # in the last row
        self._drawn = False

    def place(self, machines: Mapping[str, str]) -> None:
        """On which machine each host is, where that is not one of its own; a later attempt may be on others."""
        with self._lock:
            for sink in (self._out, self._err):
                if sink.machines != machines:
                    sink.machines, sink.tags = machines, {}

    def __enter__(self) -> Printer:
        if not self._out.terminal:  # a terminal is line-buffered
            self._flusher = threading.Thread(target=self._flush_often, name="log-flush", daemon=True)
            self._flusher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, line: LogLine) -> None:
        """One line; after `close` nothing is written any more, whichever thread asks."""
        sink = self._err if self._split and line.stream == "err" else self._out
        text = self._format(line, sink)
        with self._lock:
            if not self._open:
                return
            if self._broken is not None:  # a flush met it, in a thread that could not say so
                raise self._broken
            if self._live is not None:
                if self._drawn:
                    self._clear()
                if line[1:4] == self._live[1:4]:  # it has ended
                    self._live = None
            if sink is not self._last:  # both may be one file: keep the order
                self._last.flush()
                self._last = sink
            sink.write(text)

    @property
    def shows_live(self) -> bool:
        return not self._json and (self._out.terminal or (self._split and self._err.terminal))

    def show_live(self, lines: Sequence[LogLine]) -> None:
        """These have not ended yet, and no others."""
        with self._lock:
            before, self._live = self._live, next((line for line in lines if self._sink(line).terminal), None)
            same = before is not None and self._live is not None and before[1:] == self._live[1:]
            if self._open and not (same and self._drawn):
                self._draw()

    def pause(self) -> None:
        """Something else is written next."""
        with self._lock:
            if self._drawn:
                self._clear()

    def go_on(self) -> None:
        """That was all for now."""
        with self._lock:
            if self._open and self._live is not None and not self._drawn:
                self._draw()

    def _clear(self) -> None:
        self._drawn = False
        self._last.write(_CLEARED)
        self._last.flush()

    def _draw(self) -> None:
        if self._drawn:
            self._clear()
        if self._live is not None:
            sink = self._sink(self._live)
            self._last.flush()
            self._last, self._drawn = sink, True
            sink.write(_fitting(self._format(self._live, sink)))
            sink.flush()

    def _sink(self, line: LogLine) -> _Sink:
        return self._err if self._split and line.stream == "err" else self._out

    def close(self) -> None:
        with self._lock:
            if not self._open:
                return
            self._open = False
            self._closed.set()
            if self._drawn:
                self._clear()
            self._out.flush()
            self._err.flush()
        if self._flusher is not None:
            self._flusher.join()

    def _flush_often(self) -> None:
        while not self._closed.wait(_FLUSH_SECONDS):
            with self._lock:
                try:
                    self._last.flush()
                except (OSError, ValueError) as error:
                    self._broken = error
                    return

    def _format(self, line: LogLine, sink: _Sink) -> str:
        if self._json:
            fields = {"time": rfc3339(line.time), "rank": line.rank, "host": line.host, "stream": line.stream}
            return json.dumps({**fields, "text": line.text}, ensure_ascii=False) + "\n"
        text = (safe(line.text) if sink.terminal else line.text) + "\n"
        if self._tags:
            text = (sink.tags.get((line.rank, line.host)) or sink.tag(line.rank, line.host)) + text
        if self._timestamps:
            return f"{line.time.astimezone().isoformat(timespec='milliseconds')} {text}"
        return text


def _fitting(text: str) -> str:
    """In one row, with one place left for the cursor; colours take none."""
    text = text.removesuffix("\n")
    room = shutil.get_terminal_size().columns - 1
    if (seen := width(click.unstyle(text))) > room:
        text = text[: len(text) - (seen - room)]
    return text
