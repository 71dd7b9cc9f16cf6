"""The shim that starts one rank: it says who and where the rank is, keeps its output, reports its end.

    rank.py ATTEMPT:WORLD:THROUGH:MASTER:PORT:SURVIVES:LAUNCHER program arguments...

The launcher and the MPI library see an ordinary process: same standard input, same signals, same exit. THROUGH names
the streams ("o", "e", "oe" or "") that must also flow through mpirun, because the user sends mpirun's output somewhere;
all others go straight to the log files, which is faster. With "n" in it mpirun has no standard input, with "i" it hands
it on itself. SURVIVES is 1 if the others may go on when this rank fails. LAUNCHER is the program that starts it.

Three processes share the work. The first, which the launcher started, waits for the second, the user's program. The
third keeps the output, in a session of its own: a launcher that kills the first two (Hydra does so the moment a rank
calls MPI_Abort) takes not a byte of what they wrote.
"""

from __future__ import annotations

import _socket
import errno
import os
import resource
import select
import sys
import time

from oarsman.engines.hosts.core import log_lines
from oarsman.engines.hosts.core.shims import exit_of

# One per rank: whatever is imported here is paid for a thousand times, and each of `typing`, `json`, `socket`, `signal`
# (for its enumerations) and `contextlib` takes longer than all that is left.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Sequence
    from json.encoder import encode_basestring_ascii as quoted
    from typing import NoReturn

    from oarsman.engines.hosts.core.shims.silence import Silence
else:
    import _signal as signal
    from _json import encode_basestring_ascii as quoted

# rank, size, local rank, local size; the first launcher that set its rank variable started us
_VARIABLES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_FORWARD_AFTER = 0.2
_TRICKLE_SECONDS = 0.2  # how long a program's own children may still write after it ended
_SILENT_SECONDS = 5.0  # after which it is looked at what it wrote last, and what it has loaded
_SILENT_LOOKS = 4  # at the libraries of a program that writes nothing; many never load MPI
_LOOKS_AT_CPU = 4  # of a program that is silent, while that is measured
_READ_SIZE = 1 << 16
_LONGEST_EXCEPTION = 300
_LOGS = "OARSMAN_LOGS"  # the folder of its logs; unset in a job that is confined, which does not see it
_LOG_TROUBLE = 74  # the usual number for a failure of input or output
_PYTHON = __file__[: __file__.rindex("/hosts/")] + "/python"  # what every Python of a rank reads first


class Who:
    def __init__(self, rank: int, size: int, local_rank: int, local_size: int, host: str) -> None:
        self.rank, self.size, self.local_rank, self.local_size = rank, size, local_rank, local_size
        self.host = host


class OutputStream:
    def __init__(self, source: int, recorder: log_lines.Recorder, through: int | None) -> None:
        self.source, self.recorder = source, recorder
        self.through = through  # also copied here


class Recording:
    """The third process: all that the program writes, until the end of it."""

    def __init__(self, agent: _socket.socket, attempt: int, launcher: str) -> None:
        self.agent = agent
        self.attempt = attempt
        self.launcher = launcher
        self.program = 0  # its process number
        self.status = -1  # read end of a pipe: the first process tells here how the program ended
        self.streams: list[OutputStream] = []
        self.began = False  # to write
        self.looks_left = 50  # at the libraries of the program, until it is known whose MPI it has
        self.spoke: OutputStream | None = None  # wrote last, and was not looked at since
        self.raised = ""  # the exception that it told of last
        self.silence: Silence  # of the program
        self.other_mpi = ""  # words about a library that is not the launcher's, still to be told
        self.trouble = ""

    def run(self) -> NoReturn:
        from oarsman.engines.hosts.core.shims.silence import Silence  # hours later another version may be there

        self.silence = Silence(self.program)
        os.setsid()
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))  # of the program's files, not of its log
        for number in _FORWARDED:
            signal.signal(number, signal.SIG_IGN)
        status, _, ended_at = self._until_end().decode().partition(" ")
        # The first process was killed, and the program with it, if there is no word.
        code, killed_by = exit_of(int(status) if status else signal.SIGKILL)
        lines = [line for stream in self.streams for line in stream.recorder.last_lines()]
        for stream in self.streams:
            self._guard(stream.recorder.finish)
        if self.trouble:
            code, killed_by = _LOG_TROUBLE, None
        if self.looks_left and "/" in sys.argv[2]:  # one that ended at once was not seen while it wrote
            self._look_at_library(sys.argv[2])
        if code:
            self._tell_other_mpi()
        self.say(rank_ended(code, killed_by, lines[-40:], self.trouble, float(ended_at or 0) or None))
        os._exit(_LOG_TROUBLE if self.trouble else 0)

    def say(self, message: str) -> None:
        """As `messages` writes it, whose own words would be most of the time this shim takes."""
        body = message.encode()
        quietly(self.agent.sendall, len(body).to_bytes(4, "big") + body)

    def _until_end(self) -> bytes:
        """Record until the program has ended and all it wrote was read."""
        open_streams = {stream.source: stream for stream in self.streams}
        poll = select.poll()
        for fd in (*open_streams, self.status):
            poll.register(fd, select.POLLIN)
        told, deadline = b"", None
        while open_streams or deadline is None:
            patience = deadline - time.monotonic() if deadline is not None else self._patience()
            ready = poll.poll(max(0.0, patience) * 1000)
            if not ready and deadline is not None:
                break
            if not ready:
                self._look_at_exception()
                self.looks_left = min(self.looks_left, _SILENT_LOOKS)
                self._look_at_program()
                self._tell_other_mpi()  # it may be waiting for ever
                self._look_at_silence()
            for fd, _ in ready:
                if fd == self.status:
                    told, deadline = os.read(self.status, 64), time.monotonic() + _TRICKLE_SECONDS
                    poll.unregister(fd)
                elif not self._pump(open_streams[fd]):
                    poll.unregister(fd)
                    del open_streams[fd]
        return told

    def _patience(self) -> float:
        """Seconds until it is looked at, unless it writes."""
        awaits = self.spoke is not None or self.looks_left or self.other_mpi
        return _SILENT_SECONDS if awaits else self.silence.seconds / _LOOKS_AT_CPU

    def _pump(self, stream: OutputStream) -> bool:
        """Move what is there; False at the end of the stream."""
        try:
            chunk = os.read(stream.source, _READ_SIZE)
        except OSError as error:
            if error.errno != errno.EIO:  # how a terminal says end of file
                raise
            chunk = b""
        if not chunk:
            return False
        self.spoke = stream
        if self.raised:
            self._tell_exception("")
        if self.silence.over():
            self._tell_silence()
        if not self.began:
            self.began = True
            self.say(f'{{"output":true,"attempt":{self.attempt}}}')
        self._look_at_program()
        self._guard(lambda: stream.recorder.feed(chunk))
        if stream.through is not None:
            quietly(log_lines.write_all, stream.through, chunk)
        return True

    def _look_at_program(self) -> None:
        if self.looks_left:
            self.looks_left -= 1
            self._look_at_library(f"/proc/{self.program}/maps")

    def _look_at_library(self, file: str) -> None:
        """file: what a process has loaded, or a program. Of a library whose ranks surely do not find each other it is
        told at once; of others when it matters."""
        from oarsman.engines.hosts.core.shims import other_mpi

        found = other_mpi.contents(file)
        if b"libmpi" not in found:
            return
        library = other_mpi.library_in(found) if file.startswith("/proc/") else ""
        names = other_mpi.families_in(found, library)
        if other_mpi.conclusive(names):
            self.looks_left = 0
        by = other_mpi.launched_by(os.environ)
        if family := other_mpi.other(names, by):
            self.looks_left = 0
            family = other_mpi.exactly(family, other_mpi.contents(library))
            own = other_mpi.own_launcher(library, family, self.launcher)
            facts = {"library": library, "of": family, "launcher": self.launcher, "by": by, "own": own}
            self.other_mpi = "{" + ",".join(f"{quoted(name)}:{quoted(fact)}" for name, fact in facts.items()) + "}"
            if not (family.startswith("Open MPI") and by.startswith("Open MPI")):
                self._tell_other_mpi()

    def _tell_other_mpi(self) -> None:
        """`messages.RankLibrary`"""
        if self.other_mpi:
            self.say(self.other_mpi)
            self.other_mpi = ""

    def _look_at_exception(self) -> None:
        """One that raises an exception may wait for the others in MPI_Finalize, and they for it."""
        if self.spoke is not None and (line := self.spoke.recorder.exception()):
            self._tell_exception(line[:_LONGEST_EXCEPTION])
        self.spoke = None

    def _tell_exception(self, line: str) -> None:
        self.raised = line
        self.say(f'{{"raised":{quoted(line)}}}')

    def _look_at_silence(self) -> None:
        """One that sleeps, while all others wait for it in MPI, says nothing, and neither do they."""
        if self.silence.look(time.monotonic()):
            self._tell_silence()

    def _tell_silence(self) -> None:
        """`messages.RankSilent`"""
        self.say('{"cpu":null}' if self.silence.told is None else f'{{"cpu":{self.silence.told}}}')

    def _guard(self, write: Callable[[], None]) -> None:
        """A log that cannot be written ends the rank: work whose record is lost is not worth doing."""
        try:
            write()
        except OSError as error:
            if not self.trouble:
                from oarsman.text.sentence import Text

                self.trouble = Text("its log could not be written: {why}", why=error.strerror)
                quietly(os.kill, self.program, signal.SIGKILL)


def quietly(do: Callable[..., object], *words: object) -> None:
    """Somebody who is gone, or does not listen, is no trouble of ours."""
    try:  # noqa: SIM105 - see above
        do(*words)
    except OSError:
        pass


def rank_started(who: Who, attempt: int, world: str, survives: bool) -> str:
    """`messages.RankStarted`"""
    place = f'"rank":{who.rank},"size":{who.size},"local":{who.local_rank},"host":{quoted(who.host)}'
    return f'{{{place},"attempt":{attempt},"world":{quoted(world)},"survives":{"true" if survives else "false"}}}'


def rank_ended(
    code: int, killed_by: int | None, lines: Sequence[str], reason: str = "", at: float | None = None
) -> str:
    """`messages.RankEnded`"""
    if reason:  # seldom, and a sentence that can be translated
        import json

        from oarsman.engines.hosts.core.messages import CALLS, RankEnded
        from oarsman.text.sentence import plain

        if _LOGS not in os.environ:  # an agent takes no templates from a job that is confined
            reason = plain(reason)
        return json.dumps(CALLS.to_json(RankEnded(code, killed_by, lines, reason, at)))
    last = ",".join(map(quoted, lines))
    return f'{{"exit":{code},"signal":{killed_by or "null"},"lines":[{last}],"at":{at or "null"}}}'


def who_am_i() -> Who:
    host = _socket.gethostname()
    names = next((names for names in _VARIABLES if names[0] in os.environ), None)
    if names is None:
        return Who(0, 1, 0, 1, host)
    rank, size, local_rank, local_size = (int(os.environ.get(name, "0") or 0) for name in names)
    if os.environ.get("OARSMAN_PLAIN") != "1":
        return Who(rank, size, local_rank, local_size or 1, host)
    # Where no host can have a name of its own, a rank belongs to the host the plan has for it.
    hosts, slots = os.environ["OARSMAN_HOSTS"].split(), int(os.environ["OARSMAN_SLOTS"])
    return Who(rank, size, rank % slots, min(slots, size), hosts[rank // slots % len(hosts)])


def environment_of(who: Who, master: str, port: str, survives: bool) -> dict[str, str]:
    environment = dict(os.environ)
    # Hydra sends the launcher's variables along; what belongs to this host is put right again.
    try:
        with open(f"{environment['OARSMAN_RUN']}/e/{who.host}") as file:
            own = dict(pair.split("=", 1) for pair in file.read().split("\0"))
    except OSError:
        own = {}
    if own:
        own["PATH"] = path_of_rank(environment.get("PATH", ""), own["PATH"], own["OARSMAN_MPI"])
        environment.update(own)
    numbered = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    numbers = (who.rank, who.size, who.local_rank, who.local_size)
    environment.update(zip(numbered, map(str, numbers), strict=True))
    if not survives:
        theirs = environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = f"{_PYTHON}{os.pathsep}{theirs}" if theirs else _PYTHON
    return {"MASTER_ADDR": master, "MASTER_PORT": port, **environment}


def path_of_rank(given: str, host: str, mpi: str) -> str:
    """The host's own PATH, unless the user exported another one.

    Open MPI puts its folder in front; with an MPI in /usr/bin that would hide the user's own python.
    """
    added = {mpi, f"{os.environ['OARSMAN_RUN']}/bin"}

    def rest(path: str) -> list[str]:
        parts = path.split(os.pathsep)
        while parts and parts[0] in added:
            del parts[0]
        return parts

    return host if rest(given) == rest(host) else given


def _streams(who: Who, through: str, logs: str, opened: Sequence[int]) -> tuple[list[OutputStream], int, int]:
    """A terminal for stdout, so that programs write line by line, and a pipe for stderr. opened: see `_logs`"""
    out_read, out_write = os.openpty()
    try:
        import tty

        tty.setraw(out_write)
    except ImportError:
        pass
    err_read, err_write = os.pipe()
    streams = []
    for name, source, target in (("out", out_read, 1), ("err", err_read, 2)):
        passes = name[0] in through
        files = (opened[name == "err"], os.dup(opened[2])) if opened else ()
        recorder = log_lines.Recorder(
            logs, rank=str(who.rank), host=who.host, stream=name, merge=not passes, opened=files
        )
        streams.append(OutputStream(source, recorder, target if passes else None))
    return streams, out_write, err_write


def _logs(agent: _socket.socket) -> Sequence[int]:
    """Its files, from the job agent, where the job does not see their folder. OSError: they cannot be had."""
    import socket

    from oarsman.engines.hosts.core.messages import ANSWERS, CALLS, TakeLogs

    with socket.socket(fileno=os.dup(agent.fileno())) as asking:
        CALLS.send(asking, TakeLogs())
        files = ANSWERS.receive(asking)[1]
    if len(files) != 3:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return files


def _input(agent: _socket.socket, world: str, rank: int, through: str) -> int:
    """What mpirun itself was given, for rank 0, and nothing for the others. Launchers are not asked to hand it on: of
    Open MPI 5's the end never comes, and of Hydra's the other ranks wait for ever."""
    if "i" in through:
        return os.dup(0)
    if rank == 0 and "n" not in through:
        import socket

        from oarsman.engines.hosts.core.messages import ANSWERS, CALLS, TakeInput

        try:
            with socket.socket(fileno=os.dup(agent.fileno())) as asking:
                CALLS.send(asking, TakeInput(world))
                for fd in ANSWERS.receive(asking)[1]:
                    return fd
        except OSError:
            pass
    return os.open(os.devnull, os.O_RDONLY)


def _become(argv: Sequence[str], environment: dict[str, str], given: int, out: int, err: int) -> NoReturn:
    """The second process: the program."""
    try:
        os.dup2(given, 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)  # what is ignored would stay so
        os.execvpe(argv[0], list(argv), environment)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        why = "bad interpreter" if os.path.exists(argv[0]) and "/" in argv[0] else "command not found"
        where = f" in {os.getcwd()}" if missing and "/" in argv[0][1:] and argv[0][0] != "/" else ""
        os.write(2, f"{argv[0]}: {why if missing else error.strerror}{where}\n".encode())
        os._exit(127 if missing else 126)


def _wait_for(program: int) -> int:
    """The first process: wait, and pass on signals that were meant for the program. Returns its wait status."""
    missed: list[int] = []

    def later(number: int, _frame: object) -> None:
        # The launcher signals the whole group; only if the program has not ended by then do we pass it on.
        missed.append(number)
        signal.setitimer(signal.ITIMER_REAL, _FORWARD_AFTER)

    def forward(_number: int, _frame: object) -> None:
        while missed:
            quietly(os.kill, program, missed.pop())

    for number in _FORWARDED:
        signal.signal(number, later)
    signal.signal(signal.SIGALRM, forward)
    return os.waitpid(program, 0)[1]


def _end_like(status: int) -> NoReturn:
    """Leave as the program left, so that the launcher sees what it would have seen without us."""
    code, number = exit_of(status)
    if number is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has left its own core already
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.pause()
    os._exit(code)


def main() -> None:
    attempt, world, through, master, port, survives, launcher = sys.argv[1].split(":", 6)
    who = who_am_i()
    agent = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    quietly(agent.connect, f"{os.environ['OARSMAN_RUN']}/k")
    recording = Recording(agent, int(attempt), launcher)
    recording.say(rank_started(who, int(attempt), world, survives == "1"))
    logs = log_lines.attempt_folder(os.environ.get(_LOGS, ""), int(attempt))
    try:
        opened = () if _LOGS in os.environ else _logs(agent)
        recording.streams, out, err = _streams(who, through, logs, opened)
    except OSError as error:
        from oarsman.text.sentence import Text

        reason = Text("its log could not be opened: {why}", why=error.strerror)
        recording.say(rank_ended(_LOG_TROUBLE, None, (), reason))
        os._exit(_LOG_TROUBLE)
    given = _input(agent, world, who.rank, through)
    recording.program = os.fork()
    if recording.program == 0:
        _become(sys.argv[2:], environment_of(who, master, port, survives == "1"), given, out, err)
    os.close(given)
    recording.status, tell = os.pipe()
    recorder = os.fork()
    if recorder == 0:
        for fd in (out, err, tell):
            os.close(fd)
        recording.run()
    for fd in (out, err, recording.status, *(stream.source for stream in recording.streams)):
        os.close(fd)
    agent.close()
    status = _wait_for(recording.program)
    os.write(tell, f"{status} {time.time()}".encode())
    os.close(tell)
    trouble = os.waitpid(recorder, 0)[1]  # every byte is on disk before the launcher hears of the end
    _end_like(trouble or status)
