"""One host of a job, whose machine is elsewhere: the process here that speaks for it.

To the job agent, and to whoever wants a command run on it, it is what `local/host.py` is on one machine. It holds one
connection of the system's ssh, with host_agent.sh at its other end, and starts commands over that same connection. What
ranks and shims on the machine have to say comes back through the host agent.
"""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from oarsman.engines.hosts.core import messages
from oarsman.engines.hosts.core.cgroups import Group
from oarsman.engines.hosts.core.host import Command, Host, HostNetwork, RunningHost, report_failure
from oarsman.engines.hosts.core.job_spec import HostSpec, JobSpec, SshHostSpec, read_spec, replace_file
from oarsman.engines.hosts.core.messages import RunCommand
from oarsman.engines.hosts.ssh import connection, scripts
from oarsman.engines.hosts.ssh.connection import Connection, RemoteCommands, RemoteRanks, exit_told
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.trouble import trouble
from oarsman.text.sentence import Text, visible

_END_SLACK = 5.0  # a machine that does not confirm its end is left to its own watchdog
_FOLLOW_SECONDS, _FOLLOW_STEP = 5.0, 0.03
_RETRY_SECONDS = (1.0, 2.0, 4.0, 8.0)
_MOST_ASKED = 64 << 20  # digits; a command line has a few million at most
_UP_SECONDS = 60.0  # from the first word of ssh to that of the host agent


@dataclass(slots=True)
class SshCommand(Command):
    ssh: subprocess.Popen[bytes] = field(kw_only=True)
    feeder: subprocess.Popen[bytes] | None = None  # hands its input on


@dataclass(kw_only=True)
class RemoteHost(Host[SshCommand]):
    spec: SshHostSpec
    run_folder: str
    job_folder: str
    up: bool = False
    connection: Connection | None = None
    unfit: str = ""  # why the machine itself says it cannot serve
    connect_at: float | None = None
    up_by: float | None = None
    began: float = 0.0
    tries: int = 0
    port: str = ""
    written: int = 0
    unwritten: set[str] = field(default_factory=set)  # files on their way
    waiting: list[tuple[socket.socket, RunCommand, list[int]]] = field(default_factory=list)
    started: int = 0
    attempt: str = "0"
    parts: dict[str, str] = field(default_factory=dict)
    beat: int = 0
    remote_commands: RemoteCommands = field(init=False)
    ranks: RemoteRanks = field(init=False)

    def __post_init__(self) -> None:
        self.ranks = RemoteRanks(self.spec.members, self.run_folder, self._tell)
        self.remote_commands = RemoteCommands(
            self.spec.aliases, self.run_folder, self.selector, lambda *words: self._order("answer", *words)
        )

    def _begin(self) -> None:
        self.connect_at = self.began = time.monotonic()
        self._keep_deadlines()

    # -- the connection --------------------------------------------------------------------------------
    def _connect(self) -> None:
        """Whoever does not lead on its machine waits a moment for the way that whoever does will have opened."""
        control = self.spec.ssh.control
        if self.spec.ssh.follows:
            now = time.monotonic()
            if not os.path.exists(control) and now < self.began + _FOLLOW_SECONDS:
                self.connect_at = now + _FOLLOW_STEP
                return
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(control)  # of a connection that failed
        self.connect_at, self.unfit = None, ""
        self.up_by = time.monotonic() + _UP_SECONDS
        self.connection = Connection(self.spec.ssh.host_agent, self.spec.host_agent, self.selector, self._hear)

    def _order(self, *words: str) -> None:
        if self.connection is not None:
            self.connection.order(*words)

    def _hear(self, kind: str, rest: str) -> None:
        """Login shells like to talk, too: before the host agent has said its own name nothing else counts."""
        if not self.up:
            known, _, rest = rest.partition(" ")
            if known != self.spec.run or kind not in ("up", "failed"):
                return
        if handler := _WORDS.get(kind):
            handler(self, rest)

    def _connection_ended(self, code: int, words: str) -> None:
        self.connection = self.up_by = None
        if self.ending_by is not None:
            self._end_now()
        host, ssh = SshHost(**self.spec.way._asdict()), self.spec.ssh
        self._tell(
            messages.InTrouble(str(trouble(host, code, self.unfit or words, typed=ssh.typed, config=ssh.config)))
        )
        if self.up:
            self._end_now()
        pause = _RETRY_SECONDS[min(self.tries, len(_RETRY_SECONDS) - 1)]
        self.connect_at = time.monotonic() + pause * random.uniform(0.5, 1.5)  # who was turned away with others
        self.tries += 1

    # -- what the job agent says ----------------------------------------------------------------------------
    def _pong(self) -> None:
        self.beat += 1
        if self.up:
            self._order("heard", str(self.beat))
            leads = self.spec.members[0][0] == self.name  # what the others there would tell is the same
            if leads and self.beat % self.spec.usage_every == 0:
                self._order("usage")

    def _sweep(self, number: int) -> None:
        self.remote_commands.drop_all()
        for command in self.commands.values():
            self._signal(command, signal.SIGKILL)  # one that is only starting carries no mark yet
        self._order("sweep", str(number))
        self.ranks.end_all()

    def _end(self, grace: float) -> None:
        self.ending_by = time.monotonic() + grace + _END_SLACK
        if self.up:
            self._order("end", str(int(grace)))
        else:
            self._end_now()

    def _take_files(self) -> None:
        """hostfile and its kin, as they are now, to where the launcher looks for them."""
        self._know_hosts()
        folder = f"{self.run_folder}/etc/mpi"
        for name in sorted(os.listdir(folder)) if self.up else ():
            with contextlib.suppress(OSError), open(f"{folder}/{name}") as file:
                self.written += 1
                self.unwritten.add(str(self.written))
                mode = "755" if name.endswith(".sh") else "644"
                self._order("write", str(self.written), f"etc/mpi/{name}", mode, scripts.packed(file.read()))

    def _know_hosts(self) -> None:
        """A launcher's: the job may have been scaled since."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            now = read_spec(self.job_folder).hosts[self.name] if self.spec.launch is not None else None
            if isinstance(now, SshHostSpec):
                self.spec = self.spec._replace(launch=now.launch, aliases=now.aliases)
                self.remote_commands.aliases = now.aliases

    # -- what the machine says -----------------------------------------------------------------------------
    def _is_up(self, port: str) -> None:
        if not port.isdecimal():
            return
        self.up, self.port, self.up_by = True, port, None
        self._tell(messages.Up())
        self._take_files()
        self._start_waiting()

    def _is_unfit(self, words: str) -> None:
        """Its ssh would stay for the sake of others that go over it."""
        self.unfit = words
        if self.connection is not None:
            self.connection.kill()

    def _wrote(self, number: str) -> None:
        self.unwritten.discard(number)
        self._start_waiting()

    def _has_trouble(self, words: str) -> None:
        """Without its files a launcher would wait for ever."""
        self._tell(messages.InTrouble(Text("{host}: {why}", host=self.spec.machine, why=visible(words))))
        self._end_now()

    def _used(self, figures: str) -> None:
        """For whoever draws charts; replaced whole."""
        path = f"{self.run_folder}/u/{self.name}"
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            replace_file(path, f"{time.time():.3f} {figures}\n")

    def _has_emptied(self, sweep: str) -> None:
        """All that ranks wrote before that sweep is here."""
        if sweep.isdecimal():
            self._tell(messages.Emptied(int(sweep)))

    # -- what shims on the machine ask -------------------------------------------------------------------
    def _hear_part(self, text: str) -> None:
        asker, _, part = text.partition(" ")
        if sum(map(len, self.parts.values())) < _MOST_ASKED:
            self.parts[asker] = self.parts.get(asker, "") + part

    def _asked(self, asker: str) -> list[str]:
        """Nothing, if it was no shim: programs of the job and login shells can write there, too."""
        try:
            data = bytes.fromhex(self.parts.pop(asker, ""))
        except ValueError:
            return []
        return [word.decode("utf-8", "surrogateescape") for word in data.split(b"\0")[:-1]]

    def _begin_remote_command(self, asker: str) -> None:
        if len(asked := self._asked(asker)) == 2:
            self.remote_commands.start(asker, *asked)

    def _compose(self, asker: str) -> None:
        launch = self.spec.launch
        if len(asked := self._asked(asker)) < 2 or launch is None:
            return
        own, name, *words = asked
        world = f"{self.attempt}-{asker}"
        done = scripts.compose(name, words, launch, attempt=self.attempt, world=world, port=self.port, own=own)
        ranks: Counter[str] = Counter()  # so far, by machine
        planned = []  # by rank, the host it belongs to
        for machine in done.machines:
            planned.append(connection.member_of(launch.members[machine], ranks[machine]))
            ranks[machine] += 1
        self._tell(messages.Launching(planned, done.by_hydra))
        self.ranks.announce(messages.WorldStarted(done.asked, int(self.attempt), world))
        self._order("answer", asker, "words", scripts.packed(shlex.join(done.words)))

    # -- commands --------------------------------------------------------------------------------------------
    def _take(self, caller: socket.socket, command: RunCommand, fds: list[int]) -> None:
        self.waiting.append((caller, command, fds))
        self._start_waiting()

    def _start_waiting(self) -> None:
        """Not before the machine has all files: a launcher would not find its hosts."""
        while self.up and not self.unwritten and self.waiting:
            self._start(*self.waiting.pop(0))

    def _start(self, caller: socket.socket, command: RunCommand, fds: Sequence[int]) -> None:
        self.started += 1
        self.attempt = command.env.get("OARSMAN_ATTEMPT", self.attempt)
        reads = not os.path.samestat(os.fstat(fds[0]), os.stat(os.devnull))
        script = scripts.command(
            command.argv,
            run=self.spec.run,
            number=self.started,
            folder=self.spec.folder,
            variables=command.env,
            reads=reads,
        )
        ssh = connection.start_ssh(self.spec.ssh.command, fds[1], fds[2])
        new = self.commands[self.started] = SshCommand(self.started, caller, ssh=ssh)
        assert ssh.stdin is not None
        with contextlib.suppress(OSError):
            ssh.stdin.write(scripts.line(script))
            ssh.stdin.flush()
            new.feeder = connection.start_feeder(fds[0], ssh.stdin) if reads else None
            ssh.stdin.close()
        for fd in fds:
            os.close(fd)

    def _signal(self, command: Command, number: signal.Signals) -> None:
        self._order("kill", number.name[3:], str(command.number))

    def _signal_of(self, caller: socket.socket, number: signal.Signals) -> None:
        self._refuse(caller, 128 + number)
        super()._signal_of(caller, number)

    def _hang_up(self, caller: socket.socket) -> None:
        self._refuse(caller, 128 + signal.SIGHUP)
        super()._hang_up(caller)

    def _refuse(self, caller: socket.socket, code: int) -> None:
        """What it wants has not begun, and never will."""
        for waiting in [each for each in self.waiting if each[0] is caller]:
            self.waiting.remove(waiting)
            for fd in waiting[2]:
                os.close(fd)
            self._answer(caller, exit_told(code))

    def _reap(self) -> None:
        if self.connection is not None and (code := self.connection.ended()) is not None:
            self._connection_ended(code, self.connection.words)
        for command in [each for each in self.commands.values() if each.ssh.poll() is not None]:
            if command.feeder is not None:
                command.feeder.kill()
                command.feeder.wait()
            self._ended(command, exit_told(command.ssh.returncode))

    # -- time and the end ----------------------------------------------------------------------------------
    def _deadlines(self) -> list[float | None]:
        return [*super()._deadlines(), self.connect_at, self.up_by]

    def _keep_deadlines(self) -> None:
        now = time.monotonic()
        if self.connect_at is not None and now >= self.connect_at:
            self._connect()
        if self.up_by is not None and now >= self.up_by and self.connection is not None:
            self.up_by = None
            self.unfit = Text("no process started there within {seconds} seconds", seconds=f"{_UP_SECONDS:.0f}")
            self.connection.kill()  # it is let in, perhaps, but the login shell waits for something
        super()._keep_deadlines()

    def _end_now(self) -> NoReturn:
        """The connection closes with us, and the host agent at its other end leaves nothing behind."""
        for command in self.commands.values():
            command.ssh.kill()
        if self.connection is not None and not self.up:
            self.connection.kill()
        os._exit(0)


_WORDS: Mapping[str, Callable[[RemoteHost, str], None]] = {
    "up": RemoteHost._is_up,
    "failed": RemoteHost._is_unfit,
    "alive": lambda host, _beat: host._tell(messages.Alive()),
    "wrote": RemoteHost._wrote,
    "trouble": RemoteHost._has_trouble,
    "usage": RemoteHost._used,
    "rank": lambda host, facts: host.ranks.started(facts),
    "mapped": lambda host, facts: host.ranks.mapped(facts, host.spec.mpirun),
    "said": lambda host, words: host.ranks.said(words),
    "done": lambda host, facts: host.ranks.ended(facts),
    "emptied": RemoteHost._has_emptied,
    "part": RemoteHost._hear_part,
    "launch": RemoteHost._compose,
    "start": RemoteHost._begin_remote_command,
    "more": lambda host, asker: host.remote_commands.go_on(asker),
    "drop": lambda host, asker: host.remote_commands.drop(asker),
}


class SshHostNetwork(HostNetwork):
    def __init__(self, spec: JobSpec, job_folder: str) -> None:
        super().__init__(spec)
        self._job_folder = job_folder

    def publish(self, files: Mapping[str, str], hosts: Iterable[RunningHost]) -> None:
        super().publish(files, hosts)
        for host in hosts:
            host.tell(messages.PublishFiles())

    def _start(self, name: str, spec: HostSpec, channel: socket.socket, _group: Group, close: Sequence[int]) -> int:
        assert isinstance(spec, SshHostSpec)
        if pid := os.fork():
            return pid
        try:
            for fd in close:
                os.close(fd)
            os.setsid()
            RemoteHost(
                name=name,
                spec=spec,
                socket_path=self.socket_path(name),
                run_folder=self.run_folder,
                job_folder=self._job_folder,
                agent=channel,
            ).run()
        except BaseException as error:
            report_failure(channel, error)
        os._exit(1)
