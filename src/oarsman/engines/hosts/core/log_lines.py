"""The form of a merged log line: time, rank (or -), host, stream, text.

    2026-11-15T04:05:06.123456Z 0 pi-worker-0 out hello

Ranks add to the same file at the same time. Each addition is one write of whole lines to a file
opened for appending, so lines never mix.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MERGED = "merged.log"
_LONGEST_LINE = 1 << 16
_QUARREL = b"h: Warning: setpgid("  # "plm:rsh", "plm:ssh": Open MPI was slower than its own child, and nothing is wrong


def stamp(now: float) -> str:
    whole = int(now)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{int((now - whole) * 1e6):06d}Z"


def attempt_folder(logs: str, attempt: int) -> str:
    return os.path.join(logs, f"attempt-{attempt}")


def open_for_appending(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def split_off(data: bytes) -> tuple[bytes | None, bytes]:
    """The whole lines, if there are any, without the end of the last; and the rest. A line can be too long to wait."""
    cut = data.rfind(b"\n")
    if cut < 0:
        return (data, b"") if len(data) > _LONGEST_LINE else (None, data)
    return data[:cut], data[cut + 1 :]


def last_state(line: bytes) -> bytes:
    """What is seen of a line in the end: a carriage return begins it anew, as progress bars do."""
    line = line.rstrip(b"\r")
    return line[line.rfind(b"\r") + 1 :]


class Recorder:
    """Writes one stream of one rank: its bytes as they are, and its lines, as they were last, into the merged log. One
    that has not ended yet is read from the bytes, see `store/live_lines.py`."""

    def __init__(
        self,
        folder: str,
        *,
        rank: str,
        host: str,
        stream: str,
        merge: bool,
        beside: Recorder | None = None,
        opened: Sequence[int] = (),
    ) -> None:
        """beside: one that has the merged log open already, and is finished after this one. opened: the file of the
        stream and the merged log, for somebody who does not see the folder."""
        writer = "launcher" if rank == "-" else f"rank-{rank}"
        self._raw = opened[0] if opened else open_for_appending(os.path.join(folder, f"{writer}.{stream}"))
        self._shares = beside is not None
        self._merged = -1
        if merge:
            merged = opened[1] if opened else None
            self._merged = beside._merged if beside else merged or open_for_appending(os.path.join(folder, MERGED))
        self._label = f" {rank} {host} {stream} ".encode()
        self._by_launcher = rank == "-" and stream == "err"
        self._partial = b""
        self._tail = b""
        self.fed = False  # since somebody set it to False
        self.raised = ""  # the exception that was told of it last

    def feed(self, chunk: bytes) -> None:
        self.fed = True
        write_all(self._raw, chunk)
        self._tail = (self._tail + chunk[-8192:])[-8192:]  # however small the pieces that it comes in
        if self._merged < 0:
            return
        lines, self._partial = split_off(self._partial + chunk)
        if lines is not None:
            self._merge(lines)
        if b"\r" in self._partial:  # hours of a progress bar are one line
            self._partial = last_state(self._partial) + (b"\r" if self._partial.endswith(b"\r") else b"")

    def finish(self) -> None:
        try:
            if self._partial and self._merged >= 0:
                self._merge(self._partial)
        finally:
            self._partial = b""
            for fd in (self._raw, -1 if self._shares else self._merged):
                if fd >= 0:
                    os.close(fd)

    def last_lines(self, count: int = 20) -> list[str]:
        return _last_lines(self._tail, count)

    def exception(self) -> str:
        """The last line of a Python traceback, if that is the last it wrote."""
        _, begun, traceback = self._tail.rpartition(b"Traceback (most recent call last):")
        *frames, last = traceback.replace(b"\r", b"").rstrip().split(b"\n")
        whole = begun and frames and all(line[:1] in (b" ", b"") for line in frames) and last[:1] not in (b" ", b"")
        return last.decode(errors="replace") if whole else ""

    def _merge(self, lines: bytes) -> None:
        head = stamp(time.time()).encode() + self._label
        if b"\r" in lines:
            lines = b"\n".join(map(last_state, lines.split(b"\n")))
        if self._by_launcher:
            lines = lines.replace(b"\0", b"")  # Open MPI 5 writes one in the middle of a message
            if _QUARREL in lines:
                kept = [line for line in lines.split(b"\n") if _QUARREL not in line]
                if not kept:
                    return
                lines = b"\n".join(kept)
        write_all(self._merged, head + lines.replace(b"\n", b"\n" + head) + b"\n")


def tail(path: str) -> list[str]:
    """The last lines of a stream whose writer is gone."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 8192))
            return _last_lines(file.read())
    except OSError:
        return []


def _last_lines(data: bytes, count: int = 20) -> list[str]:
    text = data.decode(errors="replace").replace("\r\n", "\n").replace("\0", "")
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) <= count or not any("0x" in line for line in lines):
        return lines[-count:]
    from oarsman.status.stacks import shortened  # for those who crash

    return list(shortened(lines, count))
