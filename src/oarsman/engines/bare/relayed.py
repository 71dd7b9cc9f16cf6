"""The output of ranks elsewhere, as their hosts hand it on: byte for byte, with its rank and stream known."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable

from oarsman.engines.bare.loglines import Recorder


class Relayed:
    """`host_of` knows where a rank runs. A script may launch more than once: each launch makes a world."""

    def __init__(self, folder: str, host_of: Callable[[int], str]) -> None:
        self._folder = folder
        self._host_of = host_of
        self._most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
        self._recorders: dict[tuple[str, int, str], Recorder] = {}

    def feed(self, world: str, rank: int, stream: str, data: bytes) -> None:
        recorder = self._recorders.get((world, rank, stream))
        if recorder is None:
            self._make_room()
            first = next(iter(self._recorders.values()), None)
            recorder = self._recorders[world, rank, stream] = Recorder(
                self._folder, rank=str(rank), host=self._host_of(rank), stream=stream, merge=True, beside=first
            )
        recorder.feed(data)

    def _make_room(self) -> None:
        """Of a thousand worlds in one script most are over. One that is not goes on in the same files."""
        if len(self._recorders) > self._most:
            oldest = list(self._recorders)[1]  # the first has open what the others share
            self._recorders.pop(oldest).finish()

    def finish(self) -> None:
        for recorder in reversed(self._recorders.values()):
            with contextlib.suppress(OSError):  # what one could not write, others may
                recorder.finish()
        self._recorders.clear()
