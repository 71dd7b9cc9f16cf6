"""One host of a job: the process that is `<job>-worker-0`, seen from inside.

It is the first process of its host. It accepts commands from the shim for ssh, starts them
with the caller's own input and output, reaps every orphan, and ends with everything that runs on
it when told so or when its job agent is gone. Seen by mpirun it is a machine.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from oarsman.engines.hosts.core import framing, process

_HANG_UP_GRACE = 2.0  # between TERM and KILL for a command whose caller went away


@dataclass(slots=True)
class Command:
    pid: int
    caller: socket.socket


@dataclass(slots=True)
class Host:
    name: str
    socket_path: str
    environment: Mapping[str, str]
    folder: str
    umask: int  # the user's own; ours lets nobody else read
    agent: socket.socket  # end of file here means the job agent is dead
    owns_pids: bool  # True: we are process 1, and nothing outlives us
    heartbeat: socket.socket | None = None  # answers pings on the host's own address
    commands: dict[int, Command] = field(default_factory=dict)
    deadlines: list[tuple[float, int]] = field(default_factory=list)  # (when, pid) to kill for good
    ending_by: float | None = None
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def run(self) -> NoReturn:
        woken = process.wake_pipe()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        server = framing.listen(self.socket_path)
        self.selector.register(server, selectors.EVENT_READ, self._accept)
        self.selector.register(self.agent, selectors.EVENT_READ, self._obey)
        self.selector.register(woken, selectors.EVENT_READ, process.drain)
        if self.heartbeat is not None:
            self.selector.register(self.heartbeat, selectors.EVENT_READ, self._answer)
        framing.send(self.agent, {"up": self.name})
        while True:
            for key, _ in self.selector.select(self._patience()):
                key.data(key.fileobj)
            self._reap()
            self._keep_deadlines()

    # -- what arrives ----------------------------------------------------------------------------
    def _accept(self, server: socket.socket) -> None:
        caller, _ = server.accept()
        self.selector.register(caller, selectors.EVENT_READ, self._serve)

    def _serve(self, caller: socket.socket) -> None:
        message, fds = framing.receive(caller)
        try:
            if message is None:
                self._hang_up(caller)
            elif "argv" in message:
                self._start(caller, message, fds)
            elif "signal" in message:
                for command in self.commands.values():
                    if command.caller is caller:
                        _signal_group(command.pid, message["signal"])
        finally:
            for fd in fds:
                os.close(fd)

    def _start(self, caller: socket.socket, message: framing.Message, fds: Sequence[int]) -> None:
        environment = {**self.environment, **message.get("env", {})}
        pid = os.fork()
        if pid == 0:
            os.umask(self.umask)
            _become(message["argv"], environment, message.get("folder") or self.folder, fds)
        self.commands[pid] = Command(pid, caller)
        with contextlib.suppress(OSError):
            framing.send(caller, {"started": pid})

    def _hang_up(self, caller: socket.socket) -> None:
        """The caller is gone: like a closed ssh connection, its command ends too."""
        self.selector.unregister(caller)
        caller.close()
        for command in self.commands.values():
            if command.caller is caller:
                _signal_group(command.pid, signal.SIGTERM)
                self.deadlines.append((time.monotonic() + _HANG_UP_GRACE, command.pid))

    def _obey(self, agent: socket.socket) -> None:
        message, _ = framing.receive(agent)
        if message is None:
            self._end_now()
        elif message["do"] == "sweep":
            self._signal_everything(signal.SIGKILL)
        elif message["do"] == "end":
            self.ending_by = time.monotonic() + message["grace"]
            self._signal_everything(signal.SIGTERM)
        elif message["do"] == "ping":
            self._pong()

    def _answer(self, heartbeat: socket.socket) -> None:
        _data, address = heartbeat.recvfrom(64)
        if not any(process.stopped(pid) for pid in self.commands):
            heartbeat.sendto(self.name.encode(), address)

    def _pong(self) -> None:
        # A halted daemon makes the whole host silent, as it would be on a network.
        if not any(process.stopped(pid) for pid in self.commands):
            framing.send(self.agent, {"pong": self.name})

    # -- what ends -------------------------------------------------------------------------------
    def _reap(self) -> None:
        for pid, status in process.ended_children():
            command = self.commands.pop(pid, None)
            if command is not None and command.caller.fileno() >= 0:
                code, number = process.exit_of(status)
                with contextlib.suppress(OSError):
                    framing.send(command.caller, {"exit": code, "signal": number})

    def _keep_deadlines(self) -> None:
        now = time.monotonic()
        due = [pid for when, pid in self.deadlines if when <= now]
        self.deadlines = [(when, pid) for when, pid in self.deadlines if when > now]
        for pid in due:
            if pid in self.commands:
                _signal_group(pid, signal.SIGKILL)
        if self.ending_by is not None and (now >= self.ending_by or not self._others()):
            self._end_now()

    def _patience(self) -> float | None:
        # The end of any process wakes us, so only the deadlines need a clock.
        times = [when for when, _ in self.deadlines] + ([self.ending_by] if self.ending_by is not None else [])
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _others(self) -> list[int]:
        if self.owns_pids:
            return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != 1]
        return process.descendants([os.getpid()])

    def _signal_everything(self, number: int) -> None:
        if self.owns_pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, number)
        else:
            process.kill_all(process.descendants([os.getpid()]), number)

    def _end_now(self) -> NoReturn:
        for _ in range(3):  # a process may fork while we look
            self._signal_everything(signal.SIGKILL)
            if self.owns_pids or not self._others():
                break
        os._exit(0)


def _become(argv: Sequence[str], environment: Mapping[str, str], folder: str, fds: Sequence[int]) -> NoReturn:
    """In the child: take the caller's files, a clean state of signals, and turn into the command."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        process.restore_signals()
        for target in range(3):
            os.dup2(fds[target] if target < len(fds) else os.open(os.devnull, os.O_RDWR), target)
        os.closerange(3, max(fds, default=3) + 64)
        try:
            os.chdir(folder)
        except OSError as error:
            os.write(2, f"oarsman: cannot enter {folder}: {error.strerror}\n".encode())
            os._exit(126)
        os.execvpe(argv[0], list(argv), dict(environment))
    except OSError as error:
        os.write(2, f"oarsman: {argv[0]}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    except BaseException as error:
        os.write(2, f"oarsman: cannot start {argv[0]}: {error!r}\n".encode())
        os._exit(126)
    sys.exit(0)


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
