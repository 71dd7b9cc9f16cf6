"""The launcher of one attempt and its ranks, as the job agent knows them: a command on its host, output, deadlines."""

from __future__ import annotations

import binascii
import contextlib
import os
import re
import resource
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from oarsman.engines.hosts.core import log_lines, messages
from oarsman.engines.hosts.core.job_spec import JobSpec
from oarsman.engines.hosts.core.log_lines import Recorder
from oarsman.engines.hosts.core.messages import COMMANDS, RESULTS, Exited, RankStarted, RunCommand
from oarsman.status.tags import Spoken, Tags

_READ_SIZE = 1 << 16
_NOTICE_SECONDS = 5.0  # how long it may take to notice that a rank has failed
_IDLE_SECONDS = 15.0  # how long mpirun may take to end after the last of its ranks
_DRAIN_SECONDS = 2.0  # how long output may still trickle in after the launcher ended
_SILENT_SECONDS = 5.0  # after which it is looked at what a rank elsewhere wrote last
_QUIET_SECONDS = 10.0  # how long a host may say nothing of the output that it has yet to hand on

HostOf = Callable[[int], str]  # where a rank runs


@dataclass(slots=True)
class Launcher:
    attempt: int
    channel: socket.socket
    streams: dict[int, Recorder | TaggedRecorder]  # read end of a pipe -> where it goes
    relayed: RankLogs | None = None  # where output goes that does not come through it
    lines: list[str] = field(default_factory=list)  # the last it wrote, for the cause
    exit: Exited | None = None
    drain_until: float = 0.0
    heard_at: float = 0.0  # when output was last relayed, or it ended
    end_by: float | None = None  # a rank has failed; the whole world ends with it
    idle_by: float | None = None  # every rank has ended, and mpirun is expected to follow
    kill_at: float | None = None  # it was told to end
    gave_up: bool = False  # it did not notice the failed rank, and we ended it
    overdue: bool = False  # it did not notice that all is done, and we ended it
    hosts: tuple[str, ...] = ()  # by rank, where they are elsewhere
    swept: bool = False  # what it left behind on the hosts was ended
    unrecorded: bool = False  # its log could not be written, which was said
    inputs: dict[str, int] = field(default_factory=dict)  # by world, for its rank 0
    feed: int | None = None  # likewise, of a launcher elsewhere
    feeding: socket.socket | None = None  # the command that does it
    looked_at: float = 0.0  # for exceptions

    @classmethod
    def start(
        cls, attempt: int, spec: JobSpec, *, socket_path: str, logs: str, host_of: HostOf, stdin: int | None
    ) -> Launcher:
        """socket_path: where its host takes commands; host_of: where a rank runs, if that is elsewhere."""
        os.makedirs(logs, exist_ok=True)
        host = spec.launcher_host
        relayed = RankLogs(logs, host_of) if spec.elsewhere else None
        launcher = cls(attempt, messages.connect(socket_path), {}, relayed)
        ends = []
        for stream in ("out", "err"):
            read, write = os.pipe()
            os.set_blocking(read, False)
            launcher.streams[read] = (
                TaggedRecorder(logs, host=host, stream=stream, host_of=host_of)
                if spec.elsewhere
                else Recorder(logs, rank="-", host=host, stream=stream, merge=True)
            )
            ends.append(write)
        pipes = ":".join(str(os.fstat(end).st_ino) for end in ends)  # how a shim knows where its output goes
        environment = {"OARSMAN_ATTEMPT": str(attempt), "OARSMAN_LAUNCHER_PIPES": pipes}
        if spec.elsewhere and spec.launcher_is_mpirun and stdin is not None:  # it is not for the launcher itself
            launcher.feed, stdin = stdin, None
            environment["OARSMAN_FEED"] = "1"
        stdin = os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin
        COMMANDS.send(launcher.channel, RunCommand(spec.launcher_argv, environment), [stdin, *ends])
        for fd in (stdin, *ends):
            os.close(fd)
        return launcher

    def feed_rank(self, socket_path: str) -> None:
        """Rank 0 has started elsewhere, and waits for its input there; see rank.sh."""
        assert self.feed is not None
        quiet, stdin, self.feed = os.open(os.devnull, os.O_RDWR), self.feed, None
        with contextlib.suppress(OSError):  # its host is gone
            self.feeding = messages.connect(socket_path)
            command = RunCommand(["/bin/sh", "-c", 'exec cat >"$OARSMAN_RUN/in"'])
            COMMANDS.send(self.feeding, command, [stdin, quiet, quiet])
        os.close(stdin)
        os.close(quiet)

    def listen(self) -> bool:
        """Take its host's next word; True when that was its end."""
        result, _ = RESULTS.receive(self.channel)
        if isinstance(result, messages.Unknown):
            return False
        # No answer: the launcher's host died, and the launcher with it.
        self.exit = result or Exited(128 + signal.SIGKILL, int(signal.SIGKILL))
        self.heard_at = time.monotonic()
        self.drain_until = self.heard_at + _DRAIN_SECONDS
        return True

    def stop(self, grace: float) -> None:
        if self.exit is None and self.kill_at is None:
            with contextlib.suppress(OSError):
                COMMANDS.send(self.channel, messages.SignalCommand(int(signal.SIGTERM)))
            self.kill_at = time.monotonic() + grace

    def result(self) -> tuple[int, int | None]:
        """Exit code and signal, unless what it ended with was our doing."""
        assert self.exit is not None
        if self.gave_up or self.overdue:
            return (255 if self.gave_up else 0), None
        return self.exit.exit, self.exit.signal

    def expect(self, hosts: Sequence[str], *, by_hydra: bool) -> None:
        """Elsewhere a launch line was composed; `hosts` says where each rank will be, as far as that is known. Of
        MPICH's and Intel's launchers the tags say nothing about the stream: they have one pattern for both."""
        self.hosts = tuple(hosts)
        for recorder in self.streams.values():
            if by_hydra and isinstance(recorder, TaggedRecorder):
                recorder.by_hydra = True

    def record(self, fd: int) -> bool:
        """Write down what is there; False at the end of the stream. OSError: the log cannot be written."""
        try:
            chunk = os.read(fd, _READ_SIZE)
        except BlockingIOError:
            return True
        if chunk:
            self.streams[fd].feed(chunk)
        return bool(chunk)

    def take_down(self, said: messages.Said) -> None:
        """What a rank wrote, which did not come through the launcher. OSError: the log cannot be written."""
        self.heard_at = time.monotonic()
        if self.relayed is not None:
            self.relayed.feed(said.world, said.rank, said.stream, binascii.a2b_base64(said.data))

    def exceptions(self, now: float) -> Iterator[tuple[str, int, str]]:
        """Of ranks elsewhere, now and then: what each wrote last is here."""
        if now < self.looked_at + _SILENT_SECONDS:
            return
        self.looked_at = now
        tagged = (found for found in self.streams.values() if isinstance(found, TaggedRecorder))
        for logs in (*tagged, *([self.relayed] if self.relayed is not None else ())):
            yield from logs.exceptions()

    def close(self) -> None:
        """No more will come."""
        for fd in (*self.inputs.values(), *([] if self.feed is None else [self.feed])):
            os.close(fd)
        self.inputs.clear()
        if self.feeding is not None:
            self.feeding.close()
        if self.relayed is not None:
            self.relayed.finish()

    def close_stream(self, fd: int) -> None:
        os.close(fd)
        recorder = self.streams.pop(fd)
        self.lines += recorder.last_lines(40)  # mpirun tells at length what it needs
        with contextlib.suppress(OSError):
            recorder.finish()

    def rank_failed(self) -> None:
        self.end_by = self.end_by or time.monotonic() + _NOTICE_SECONDS

    def all_ranks_ended(self, ended: bool) -> None:
        self.idle_by = time.monotonic() + _IDLE_SECONDS if ended else None

    def is_late(self, now: float) -> bool:
        """Whether it should have ended by itself, and has to be told to. Hydra, for one, waits for ever for the ranks
        on other hosts when one has failed."""
        self.gave_up = self.gave_up or (self.end_by is not None and now >= self.end_by)
        self.overdue = self.overdue or (self.idle_by is not None and now >= self.idle_by)
        return self.gave_up or self.overdue

    def must_be_killed(self, now: float) -> bool:
        """Whether it was told to end and has had its grace; once."""
        due = self.kill_at is not None and now >= self.kill_at
        self.kill_at = None if due else self.kill_at
        return due

    @property
    def sweep_due(self) -> float:
        """When its leftovers end at the latest; sooner if all ranks are recorded."""
        return self.drain_until - _DRAIN_SECONDS / 2

    def drained(self, now: float, awaited: bool) -> bool:
        """awaited: hosts have yet to hand on what their ranks wrote."""
        return self.swept and ((not self.streams and not awaited) or now >= self._drained_by(awaited))

    def patience(self, awaited: bool) -> float:
        """Seconds until something is due after its end."""
        return (self._drained_by(awaited) if self.swept else self.sweep_due) - time.monotonic()

    def _drained_by(self, awaited: bool) -> float:
        return max(self.drain_until, self.heard_at + _QUIET_SECONDS) if awaited else self.drain_until


@dataclass(slots=True)
class Rank:
    facts: RankStarted
    ended: bool = False
    failed: bool = False
    exceptions: int = 0  # that were told of while it ran
    silences: int = 0  # likewise, their ends among them
    library_told: bool = False  # that it has loaded another MPI than its launcher's
    told: int | None = None  # the code of its end, unless that was told by its silence alone

    @property
    def key(self) -> tuple[int, str, int]:
        """What tells it from all others of its job."""
        return self.facts.attempt, self.facts.world, self.facts.rank


class Ranks(dict[socket.socket, Rank]):
    """Of one attempt, by the connections over which they report."""

    def started(self, caller: socket.socket, facts: RankStarted) -> RankStarted:
        """With its true process number, which the kernel tells; inside its host the rank knows only its own."""
        if not facts.pid and hasattr(socket, "SO_PEERCRED"):
            peer = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            facts = facts._replace(pid=struct.unpack("3i", peer)[0])
        self[caller] = Rank(facts)
        return facts

    def ended(self, caller: socket.socket, code: int) -> Rank | None:
        """The rank that ended just now; None if nobody did."""
        rank = self.get(caller)
        if rank is None or rank.ended:
            return None
        rank.ended, rank.failed = True, code != 0
        return rank

    def newest(self, world: str, number: int) -> Rank | None:
        """That has not ended; without a world, of whichever was launched last."""
        found = (rank for rank in self.values() if rank.facts.rank == number and world in ("", rank.facts.world))
        return next((rank for rank in reversed(list(found)) if not rank.ended), None)

    def world_ended(self, last: Rank) -> bool:
        world = [rank for rank in self.values() if rank.facts.world == last.facts.world]
        return len(world) == last.facts.size and all(rank.ended for rank in world)


class RankLogs:
    """Of ranks elsewhere; `host_of` knows where one runs. A script may launch more than once: each launch makes a
    world. `beside` is as for Recorder."""

    def __init__(self, folder: str, host_of: HostOf, *, beside: Recorder | None = None) -> None:
        self._folder, self._host_of, self._beside = folder, host_of, beside
        self._most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
        self._recorders: dict[tuple[str, int, str], Recorder] = {}

    def feed(self, world: str, rank: int, stream: str, data: bytes) -> None:
        recorder = self._recorders.get((world, rank, stream))
        if recorder is None:
            if len(self._recorders) > self._most:  # of a thousand worlds most are over; others go on in the same files
                oldest = list(self._recorders)[1]  # the first has open what the others share
                self._recorders.pop(oldest).finish()
            beside = self._beside or next(iter(self._recorders.values()), None)
            recorder = self._recorders[world, rank, stream] = Recorder(
                self._folder, rank=str(rank), host=self._host_of(rank), stream=stream, merge=True, beside=beside
            )
        recorder.feed(data)

    def exceptions(self) -> Iterator[tuple[str, int, str]]:
        """World, rank and exception of each that has told of one and written nothing since this was asked last; without
        one, if it goes on after all."""
        busy = {(world, rank) for (world, rank, _), recorder in self._recorders.items() if recorder.fed}
        for (world, rank, _), recorder in self._recorders.items():
            line = "" if (world, rank) in busy else recorder.exception()
            recorder.fed = False
            if line != recorder.raised:
                recorder.raised = line
                yield world, rank, line

    def finish(self) -> None:
        for recorder in reversed(self._recorders.values()):
            with contextlib.suppress(OSError):  # what one could not write, others may
                recorder.finish()
        self._recorders.clear()


# Hydra puts it before every piece that a rank writes, as soon as it comes; of the last one the rest may be on its way.
_PIECE_TAG = re.compile(rb"\[1,([0-9]{1,9})\]<stdout>: ")
_PIECE_TAG_BEGUN = re.compile(rb"\[(?:1(?:,(?:[0-9]+(?:\](?:<(?:s(?:t(?:d(?:o(?:u(?:t(?:>:?)?)?)?)?)?)?)?)?)?)?)?)?\Z")
_LONGEST_TAG = 32


class TaggedRecorder:
    """One stream of a launcher elsewhere, with lines of its ranks among its own."""

    def __init__(self, folder: str, *, host: str, stream: str, host_of: HostOf) -> None:
        self._stream = stream
        self._own = Recorder(folder, rank="-", host=host, stream=stream, merge=True)
        self._ranks = RankLogs(folder, host_of, beside=self._own)
        self._tags = Tags()
        self.by_hydra = False  # tags say nothing about the stream
        self._partial = b""
        self._speaker: int | None = None  # Hydra's: whose line has not ended yet

    def feed(self, chunk: bytes) -> None:
        if self.by_hydra:
            self._partial = self._hear_pieces(self._partial + chunk)
            return
        lines, self._partial = log_lines.split_off(self._partial + chunk)
        for line in lines.split(b"\n") if lines is not None else ():  # progress bars have carriage returns in theirs
            self._hear(line)

    def finish(self) -> None:
        if self._partial and self.by_hydra:
            self._hear_piece(self._speaker, self._partial)
        elif self._partial:
            self._hear(self._partial)
        for spoken in self._tags.rest():
            self._record(spoken)
        self._ranks.finish()
        self._own.finish()

    def exceptions(self) -> Iterator[tuple[str, int, str]]:
        return self._ranks.exceptions()

    def last_lines(self, count: int) -> list[str]:
        """The launcher's own."""
        return self._own.last_lines(count)

    def _hear_pieces(self, data: bytes) -> bytes:
        """Each goes to its rank at once, so that what has not ended is seen; what may begin a tag is given back."""
        begun = _PIECE_TAG_BEGUN.search(data, max(0, len(data) - _LONGEST_TAG))
        end = begun.start() if begun is not None else len(data)
        head, *tagged = _PIECE_TAG.split(data[:end])
        self._hear_piece(self._speaker, head)
        for rank, text in zip(tagged[::2], tagged[1::2], strict=True):
            self._hear_piece(int(rank), text)
        return data[end:]

    def _hear_piece(self, rank: int | None, text: bytes) -> None:
        """A piece of a rank ends with its line at the latest; what comes then without a tag is the launcher's own."""
        said, newline, own = text.partition(b"\n") if rank is not None else (b"", b"", text)
        if rank is not None and (said or newline):
            self._ranks.feed("", rank, self._stream, said + newline)
        if own:
            self._own.feed(own)
        self._speaker = None if newline else rank

    def _hear(self, line: bytes) -> None:
        spoken = self._tags.read(line.decode("utf-8", "surrogateescape"))
        if spoken is not None:
            self._record(spoken)

    def _record(self, spoken: Spoken) -> None:
        text = spoken.text.encode("utf-8", "surrogateescape") + b"\n"
        if spoken.rank is None:
            self._own.feed(text)
        else:
            self._ranks.feed("", spoken.rank, spoken.stream, text)
