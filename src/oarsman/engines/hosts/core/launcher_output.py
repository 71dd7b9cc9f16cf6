"""Output of launchers and ranks on other hosts, by rank: relayed with rank and stream, or tagged by mpirun."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable

from oarsman.engines.hosts.core.log_lines import Recorder
from oarsman.status.tags import Spoken, Tags


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


_LONGEST_LINE = 1 << 16


class TaggedRecorder:
    """One stream of the launcher. `host_of` knows where a rank runs."""

    def __init__(self, folder: str, *, host: str, stream: str, host_of: Callable[[int], str]) -> None:
        self._folder = folder
        self._stream = stream
        self._host_of = host_of
        self._own = Recorder(folder, rank="-", host=host, stream=stream, merge=True)
        self._ranks: dict[tuple[int, str], Recorder] = {}
        self._tags = Tags()
        self._by_hydra = False
        self._partial = b""

    def expect_hydra(self) -> None:
        """From now on tags say nothing about the stream: MPICH's and Intel's launchers have one pattern for both."""
        self._by_hydra = True

    def feed(self, chunk: bytes) -> None:
        data = self._partial + chunk
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) > _LONGEST_LINE:
            data, cut = data + b"\n", len(data) + 1
        self._partial = data[cut:]
        for line in data[:cut].split(b"\n")[:-1]:  # progress bars have carriage returns in their lines
            self._hear(line)

    def finish(self) -> None:
        if self._partial:
            self._hear(self._partial)
        for spoken in self._tags.rest():
            self._record(spoken)
        for recorder in (*self._ranks.values(), self._own):
            recorder.finish()

    def last_lines(self) -> list[str]:
        """The launcher's own."""
        return self._own.last_lines()

    def _hear(self, line: bytes) -> None:
        spoken = self._tags.read(line.decode("utf-8", "surrogateescape"))
        if spoken is not None:
            self._record(spoken)

    def _record(self, spoken: Spoken) -> None:
        text = spoken.text.encode("utf-8", "surrogateescape") + b"\n"
        if spoken.rank is None:
            self._own.feed(text)
            return
        stream = self._stream if self._by_hydra else spoken.stream
        recorder = self._ranks.get((spoken.rank, stream))
        if recorder is None:
            recorder = self._ranks[spoken.rank, stream] = Recorder(
                self._folder,
                rank=str(spoken.rank),
                host=self._host_of(spoken.rank),
                stream=stream,
                merge=True,
                beside=self._own,
            )
        recorder.feed(text)
