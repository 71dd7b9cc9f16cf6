"""The stand-in that starts one rank: it says who and where the rank is, keeps its output, reports its end.

    rank.py ATTEMPT:WORLD:THROUGH:MASTER:PORT:SURVIVES program arguments...

The launcher and the MPI library see an ordinary process: same standard input, same signals, same
exit. THROUGH names the streams ("o", "e", "oe" or "") that must also flow through mpirun, because
the user sends mpirun's output somewhere; all others go straight to the log files, which is faster.
SURVIVES is 1 if the others may go on when this rank fails.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from oarsman.engines.bare import loglines, process, wire

# rank, size, local rank, local size; the first launcher that set its rank variable started us
_VARIABLES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
_READ_SIZE = 1 << 16


@dataclass(slots=True)
class Who:
    rank: int
    size: int
    local_rank: int
    local_size: int
    host: str


@dataclass(slots=True)
class Stream:
    source: int
    recorder: loglines.Recorder
    through: int | None  # also copied here


@dataclass(slots=True)
class Runner:
    keeper: socket.socket | None
    attempt: int
    streams: dict[int, Stream] = field(default_factory=dict)
    recorders: list[loglines.Recorder] = field(default_factory=list)
    spoken: bool = False
    trouble: str = ""
    pending: list[tuple[float, int]] = field(default_factory=list)  # signals to pass on

    def say(self, message: wire.Message) -> None:
        if self.keeper is not None:
            with contextlib.suppress(OSError):
                wire.send(self.keeper, message)

    def pump(self, stream: Stream) -> bool:
        """Move what is there; False at the end of the stream."""
        try:
            chunk = os.read(stream.source, _READ_SIZE)
        except BlockingIOError:
            return True
        except OSError as error:
            if error.errno != errno.EIO:  # how a terminal says end of file
                raise
            chunk = b""
        if not chunk:
            return False
        if not self.spoken:
            self.spoken = True
            self.say({"output": True, "attempt": self.attempt})
        try:
            stream.recorder.feed(chunk)
        except OSError as error:
            self.trouble = self.trouble or f"its log could not be written: {error.strerror}"
        if stream.through is not None:
            with contextlib.suppress(OSError):
                loglines.write_all(stream.through, chunk)
        return True


def who_am_i() -> Who:
    host = socket.gethostname()
    for names in _VARIABLES:
        if names[0] in os.environ:
            rank, size, local_rank, local_size = (int(os.environ.get(name, "0") or 0) for name in names)
            return _as_planned(Who(rank, size, local_rank, local_size or 1, host))
    return Who(0, 1, 0, 1, host)


def _as_planned(who: Who) -> Who:
    """Where no host can have a name of its own, a rank belongs to the host the plan has for it."""
    if os.environ.get("OARSMAN_PLAIN") != "1":
        return who
    hosts, slots = os.environ["OARSMAN_HOSTS"].split(), int(os.environ["OARSMAN_SLOTS"])
    host = hosts[who.rank // slots % len(hosts)]
    return Who(who.rank, who.size, who.rank % slots, min(slots, who.size), host)


def environment_of(who: Who, master: str, port: str) -> dict[str, str]:
    environment = dict(os.environ)
    # Hydra sends the launcher's variables along; what belongs to this host is put right again.
    with contextlib.suppress(OSError, ValueError), open(f"{environment['OARSMAN_RUN']}/e/{who.host}") as file:
        own = json.load(file)
        own["PATH"] = path_of_rank(environment.get("PATH", ""), own["PATH"], own["OARSMAN_MPI"])
        environment.update(own)
    environment.update(
        RANK=str(who.rank), WORLD_SIZE=str(who.size), LOCAL_RANK=str(who.local_rank), LOCAL_WORLD_SIZE=str(who.local_size)
    )
    environment.setdefault("MASTER_ADDR", master)
    environment.setdefault("MASTER_PORT", port)
    return environment


def path_of_rank(given: str, host: str, mpi: str) -> str:
    """The host's own PATH, unless the user exported another one.

    Open MPI puts its folder in front; with an MPI in /usr/bin that would hide the user's own python.
    """
    added = {mpi, f"{os.environ['OARSMAN_RUN']}/bin"}

    def rest(path: str) -> list[str]:
        return list(itertools.dropwhile(added.__contains__, path.split(os.pathsep)))

    return host if rest(given) == rest(host) else given


def _open_streams(runner: Runner, who: Who, through: str, logs: str) -> tuple[int, int]:
    """A terminal for stdout, so that programs write line by line, and a pipe for stderr."""
    out_read, out_write = os.openpty()
    with contextlib.suppress(ImportError):
        import tty

        tty.setraw(out_write)
    err_read, err_write = os.pipe()
    for name, source, target in (("out", out_read, 1), ("err", err_read, 2)):
        os.set_blocking(source, False)
        passes = name[0] in through
        recorder = loglines.Recorder(logs, rank=str(who.rank), host=who.host, stream=name, merge=not passes)
        runner.recorders.append(recorder)
        runner.streams[source] = Stream(source, recorder, target if passes else None)
    return out_write, err_write


def _spawn(argv: Sequence[str], environment: dict[str, str], out: int, err: int) -> int:
    pid = os.fork()
    if pid:
        os.close(out)
        os.close(err)
        return pid
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.execvpe(argv[0], list(argv), environment)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    os._exit(126)


def _follow(runner: Runner, child: int) -> int:
    """Move output and pass signals on until the program ends; returns its wait status."""
    wake_read, wake_write = os.pipe()
    for fd in (wake_read, wake_write):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)

    def later(number: int, _frame: object) -> None:
        # The launcher signals the whole group; only if the program has missed it do we pass it on.
        runner.pending.append((time.monotonic() + 0.2, number))

    for number in _FORWARDED:
        signal.signal(number, later)
    selector = selectors.DefaultSelector()
    selector.register(wake_read, selectors.EVENT_READ)
    for source in runner.streams:
        selector.register(source, selectors.EVENT_READ)
    while True:
        patience = min((when for when, _ in runner.pending), default=None)
        for key, _ in selector.select(None if patience is None else max(0.0, patience - time.monotonic())):
            if key.fd == wake_read:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake_read, 4096)
            elif not runner.pump(runner.streams[key.fd]):
                selector.unregister(key.fd)
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        due = [number for when, number in runner.pending if when <= time.monotonic()]
        runner.pending = [(when, number) for when, number in runner.pending if when > time.monotonic()]
        for missed in due:
            os.kill(child, missed)
        if runner.trouble:
            os.kill(child, signal.SIGKILL)


def _finish(runner: Runner, status: int) -> NoReturn:
    for stream in runner.streams.values():
        with contextlib.suppress(OSError):
            while select_ready(stream.source) and runner.pump(stream):
                pass
    for recorder in runner.recorders:
        try:
            recorder.finish()
        except OSError as error:
            runner.trouble = runner.trouble or f"its log could not be written: {error.strerror}"
    code, number = process.exit_of(status)
    lines = [line for recorder in runner.recorders for line in recorder.last_lines()]
    if runner.trouble:
        code, number = 74, None
    runner.say({"exit": code, "signal": number, "lines": lines[-40:], "reason": runner.trouble})
    if number is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has left its own core already
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        time.sleep(1)
    os._exit(code)


def select_ready(fd: int) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        return bool(selector.select(0))


def main() -> NoReturn:
    attempt, world, through, master, port, survives = sys.argv[1].split(":")
    argv = sys.argv[2:]
    who = who_am_i()
    keeper: socket.socket | None = None
    with contextlib.suppress(OSError):
        keeper = wire.connect(f"{os.environ['OARSMAN_RUN']}/k")
    runner = Runner(keeper, int(attempt))
    runner.say({"rank": who.rank, "size": who.size, "local": who.local_rank, "host": who.host,
                "attempt": int(attempt), "world": world, "survives": survives == "1"})  # fmt: skip
    logs = loglines.attempt_folder(os.environ["OARSMAN_LOGS"], int(attempt))
    try:
        out, err = _open_streams(runner, who, through, logs)
    except OSError as error:
        reason = f"its log could not be opened: {error.strerror}"
        runner.say({"exit": 74, "signal": None, "lines": [], "reason": reason})
        os._exit(74)
    child = _spawn(argv, environment_of(who, master, port), out, err)
    _finish(runner, _follow(runner, child))
