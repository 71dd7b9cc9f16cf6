"""One host of a job: the process that is `<job>-worker-0`, seen from inside.

It is the first process of its host. It accepts commands from the shim for ssh, starts them
with the caller's own input and output, reaps every orphan, and ends with everything that runs on
it when told so or when its job agent is gone. Seen by mpirun it is a machine.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from oarsman.engines.hosts.core import process
from oarsman.engines.hosts.core.host import Command, Host
from oarsman.engines.hosts.core.job_spec import LocalHostSpec
from oarsman.engines.hosts.core.messages import Exited, RunCommand
from oarsman.engines.hosts.core.orders import Alive, Up


@dataclass(kw_only=True)
class LocalHost(Host[Command]):
    spec: LocalHostSpec
    owns_pids: bool  # True: we are process 1, and nothing outlives us
    heartbeat: socket.socket | None = None  # answers pings on the host's own address

    def _begin(self) -> None:
        if self.heartbeat is not None:
            self._watch(self.heartbeat, self._answer_ping)
        self._tell(Up())

    # -- commands ----------------------------------------------------------------------------------
    def _take(self, caller: socket.socket, command: RunCommand, fds: list[int]) -> None:
        pid = os.fork()
        if pid == 0:
            os.umask(self.spec.umask)
            _become(command.argv, {**self.spec.environment, **command.env}, self.spec.folder, fds)
        for fd in fds:
            os.close(fd)
        self.commands[pid] = Command(pid, caller)

    def _signal(self, command: Command, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(command.number, number)

    def _reap(self) -> None:
        for pid, status in process.ended_children():
            if pid in self.commands:
                self._ended(self.commands[pid], Exited(*process.exit_of(status)))

    # -- pings -------------------------------------------------------------------------------------
    @property
    def _halted(self) -> bool:
        """A halted daemon makes the whole host silent, as it would be on a network."""
        return any(process.stopped(pid) for pid in self.commands)

    def _answer_ping(self, heartbeat: socket.socket) -> None:
        _data, address = heartbeat.recvfrom(64)
        if not self._halted:
            heartbeat.sendto(self.name.encode(), address)

    def _pong(self) -> None:
        if not self._halted:
            self._tell(Alive())

    # -- the end -----------------------------------------------------------------------------------
    def _sweep(self, _number: int) -> None:
        self._signal_everything(signal.SIGKILL)

    def _end(self, grace: float) -> None:
        self.ending_by = time.monotonic() + grace
        self._signal_everything(signal.SIGTERM)

    def _keep_deadlines(self) -> None:
        super()._keep_deadlines()
        if self.ending_by is not None and not self._others():
            self._end_now()

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
