"""The job agent of one job: the process that owns its hosts, its launcher and its journal.

It stands between the supervisor and the job so that neither needs the other to stay alive. The supervisor tells it
what to do over a socket and reads what happened in the journal; if the supervisor is killed the job agent goes on, if
the job agent is killed the kernel takes the hosts with it. It needs nothing but the standard library, because it is on
the path of every job start.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from oarsman.engines.hosts.core import journal, log_lines, messages, process
from oarsman.engines.hosts.core.host import HostNetwork, Hosts, RunningHost, serve, unwatch
from oarsman.engines.hosts.core.job_spec import JobSpec, read_spec
from oarsman.engines.hosts.core.journal import Fact, Journal
from oarsman.engines.hosts.core.launcher import Launcher, Rank, Ranks
from oarsman.engines.hosts.core.messages import (
    FirstOutput,
    RankEnded,
    RankLibrary,
    RankRaised,
    RankSilent,
    RankStarted,
    WorldStarted,
)
from oarsman.text.sentence import Text

CONTROL = "k"  # name of the control socket in the run folder
ORDERS = "o"  # the folder there of the one that takes orders, where the job may give none: it does not see it
_PULSE = 1.0
_GATHERED = 0.1  # seconds
_OF_CROWDS = (
    RankStarted,
    journal.RankEnd,
    journal.RankLines,
    journal.RankException,
    journal.RankSilence,
    journal.RankOtherMpi,
)
_LONGEST_EXCEPTION, _MOST_EXCEPTIONS = 300, 20  # letters of one that is told, and how many of one rank
_MOST_SILENCES = 40  # of one rank, which waits twice as long before each: two years
# Of a job that is confined:
_SAYS_WITHIN = 2.0  # seconds in which one of its processes has to say all of a message
_LOOKS_AGAIN = 0.01  # seconds until the rest is looked for
_SETTLES_WITHIN = 5.0  # seconds for all that ranks have said when their launcher ends
_HEARS_WITHIN = 0.2  # seconds in which it has to take an answer
_MOST_SAID = 64 << 20  # bytes in one attempt: it is in the journal, which others have to read
_AROUND = 300  # of these for each message, however short
_ALONE_SECONDS = 60.0  # how long hosts are kept for a supervisor to come back, when nothing runs on them


@dataclass(slots=True)
class JobAgent:
    folder: str
    spec: JobSpec
    network: HostNetwork
    journal: Journal
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    hosts: Hosts = field(default_factory=Hosts)
    launcher: Launcher | None = None
    waiting_attempt: int | None = None  # of a launcher that was ordered before its host was up, or its input there
    giver: socket.socket | None = None  # from which the input will come
    stdin: int | None = None  # of the next launcher
    listeners: set[socket.socket] = field(default_factory=set)  # supervisors
    tell_at: float | None = None  # when they are told of what was gathered
    output_seen: int = 0  # newest attempt that has written something
    ending: bool = False
    last_pulse: float = 0.0
    needed_at: float = 0.0  # when a launcher ran, or a supervisor listened
    ranks: Ranks = field(default_factory=Ranks)  # of the present attempt
    said: int = 0  # by a job that is confined, in this attempt
    unsaid: dict[socket.socket, float] = field(default_factory=dict)  # since when one of its messages has only begun
    deadline: float | None = None  # of the job, by the clock that its status is told by

    def run(self, ready: int) -> None:
        """Keep the job until told to end. `ready` is told when orders can be taken."""
        woken = process.wake_pipe()
        signal.signal(signal.SIGTERM, lambda *_: self.end())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        server = messages.listen(f"{self.network.run_folder}/{CONTROL}", mode=self.network.mode)
        self._watch(server, self._accept)
        if self.spec.confinement is not None:
            os.makedirs(f"{self.network.run_folder}/{ORDERS}", mode=0o700, exist_ok=True)
            orders = messages.listen(f"{self.network.run_folder}/{ORDERS}/{CONTROL}")
            self._watch(orders, lambda server: self._watch(server.accept()[0], self._serve))
        self._watch(woken, process.drain)
        if self.network.heartbeat is not None:
            self._watch(self.network.heartbeat, self.hosts.take_heartbeats)
        me = process.identify(os.getpid())
        self.journal.note(journal.AgentStarted(os.getpid(), me.started if me else ""))
        os.write(ready, b"ok")
        os.close(ready)
        self.last_pulse = self.needed_at = time.monotonic()
        while not (self.ending and not self.hosts):
            serve(self.selector, self._patience())
            self._reap()
            self._tick()
        self._note(journal.AgentEnded())
        self.journal.close()

    def _watch(self, thing: Any, callback: Callable[[Any], None]) -> None:
        self.selector.register(thing, selectors.EVENT_READ, callback)

    def _accept(self, server: socket.socket) -> None:
        try:
            caller = server.accept()[0]
            if self.spec.confinement is not None:
                caller.settimeout(_HEARS_WITHIN)
            self._watch(caller, self._serve if self.spec.confinement is None else self._serve_job)
        except OSError as error:  # too many open files: more ranks than were planned
            self._give_up(Text("the job agent cannot take more ranks: {why}", why=error.strerror))

    def _patience(self) -> float:
        due = self.last_pulse + _PULSE
        pulse = (min(due, self.tell_at) if self.tell_at else due) - time.monotonic()
        if self.launcher is not None and self.launcher.exit is not None:
            pulse = min(pulse, self.launcher.patience(self.hosts.output_awaited()))
        if self.deadline is not None:
            pulse = min(pulse, self.deadline - time.time())
        return max(0.0, pulse)

    def _note(self, fact: Fact) -> None:
        """Write it down, and say that there is news. Ranks come and go in crowds: what becomes of them is told a moment
        later, all together, so that a thousand of them are not a thousand turns."""
        self.journal.note(fact)
        if isinstance(fact, _OF_CROWDS):
            self.tell_at = self.tell_at or time.monotonic() + _GATHERED
        else:
            self._tell()

    def _tell(self) -> None:
        self.tell_at = None
        for listener in list(self.listeners):
            try:
                listener.send(messages.ANSWERS.encode(messages.Changed()), socket.MSG_DONTWAIT)
            except BlockingIOError:
                pass  # a halted supervisor must not halt the job; it has unread news, which say the same
            except OSError:
                self.listeners.discard(listener)

    def _serve_job(self, caller: socket.socket) -> None:
        """Whatever a job that is confined says is at most about its own ranks."""
        try:
            if (size := messages.RANK_CALLS.whole(caller)) is not None:
                self.said += _AROUND + size
                self.unsaid.pop(caller, None)
                if self.said > _MOST_SAID:
                    raise EOFError
                self._serve(caller, messages.RANK_CALLS)
            elif time.monotonic() > self.unsaid.setdefault(caller, time.monotonic()) + _SAYS_WITHIN:
                raise EOFError
            else:
                time.sleep(_LOOKS_AGAIN)
        except Exception:  # no message at all, or one that cannot be meant; it must not be the end of the agent
            self.unsaid.pop(caller, None)
            if caller.fileno() >= 0:
                self._hang_up(caller)

    def _serve(self, caller: socket.socket, calls: messages.Codec[Any] = messages.CALLS) -> None:
        message, fds = calls.receive(caller)
        if isinstance(message, messages.GiveInput) and fds and self.launcher is not None:
            self.launcher.inputs[message.world] = fds.pop()
        for fd in fds:
            os.close(fd)
        match message:
            case None:
                self._hang_up(caller)
            case WorldStarted():
                self.journal.note(message)
            case RankStarted() if caller not in self.ranks:
                self._note(self.ranks.started(caller, message))
                if message.rank == 0 and self.launcher is not None and self.launcher.feed is not None:
                    self.launcher.feed_rank(self.network.socket_path(message.host))
            case messages.TakeInput(world):
                self._give_input(caller, world)
            case messages.GiveInput():
                pass
            case messages.TakeLogs():
                self._give_logs(caller)
            case FirstOutput():
                self._saw_output(message.attempt)
            case RankRaised(line):
                if caller in self.ranks:
                    self._raised(self.ranks[caller], line)
            case RankSilent(cpu):
                if caller in self.ranks:
                    self._wrote_nothing(self.ranks[caller], cpu)
            case RankLibrary():
                if caller in self.ranks and not self.ranks[caller].library_told:
                    self.ranks[caller].library_told = True
                    self._note(journal.RankOtherMpi(*self.ranks[caller].key, *message))
            case RankEnded(code):
                if caller in self.ranks:
                    self.ranks[caller].told = code
                self._rank_ended(caller, message)
            case _:
                with contextlib.suppress(OSError):
                    messages.ANSWERS.send(caller, self._obey(caller, message))

    def _give_input(self, caller: socket.socket, world: str) -> None:
        fd = self.launcher.inputs.pop(world, None) if self.launcher is not None else None
        with contextlib.suppress(OSError):
            messages.ANSWERS.send(caller, messages.Done("take-input"), [] if fd is None else [fd])
        if fd is not None:
            os.close(fd)

    def _give_logs(self, caller: socket.socket) -> None:
        """To a rank that does not see the folder that they are in."""
        files: list[int] = []
        try:
            if caller in self.ranks and self.launcher is not None:
                rank, logs = self.ranks[caller].facts.rank, self._logs(self.launcher.attempt)
                names = (f"rank-{rank}.out", f"rank-{rank}.err", log_lines.MERGED)
                files.extend(log_lines.open_for_appending(f"{logs}/{name}") for name in names)
            messages.ANSWERS.send(caller, messages.Done("take-logs"), files)
        finally:
            for fd in files:
                os.close(fd)

    def _hang_up(self, caller: socket.socket) -> None:
        # A rank whose shim was killed says nothing more; that silence is its end.
        lines = self._last_lines(self.ranks[caller]) if caller in self.ranks else []
        self._rank_ended(caller, RankEnded(128 + signal.SIGKILL, int(signal.SIGKILL), lines))
        self.selector.unregister(caller)
        self.listeners.discard(caller)
        caller.close()

    def _obey(self, caller: socket.socket, order: messages.Order | messages.Unknown) -> messages.Answer:
        if isinstance(order, messages.Unknown):
            return messages.Failed(order.name, repr(KeyError(order.name)))
        name = messages.CALLS.name(order)
        try:
            match order:
                case messages.Listen():
                    self.listeners.add(caller)
                case messages.StartHost(host):
                    self._start_host(host)
                case messages.StopHost(host):
                    if host in self.hosts:
                        self._note(journal.HostEnding(host))
                    self.hosts.stop(host, self.spec.grace)
                case messages.StartLauncher(attempt):
                    self._start_launcher(attempt)
                case messages.StopLauncher():
                    self._stop_launcher()
                case messages.Publish(hosts, files):
                    self.network.publish(files, self.hosts.values())
                    self._note(journal.Published(hosts))
                case messages.KeepDeadline(at):
                    self.deadline = at
                case messages.EndJob():
                    self.end()
        except Exception as error:
            return messages.Failed(name, f"{type(error).__name__}: {error}")
        return messages.Done(name)

    def _start_host(self, name: str) -> None:
        if name in self.hosts or self.ending:
            return
        self.spec = read_spec(self.folder)
        spec = self.spec.hosts[name]
        # It inherits nothing that is watched here, above all not the other hosts' lifelines.
        close = [key.fd for key in self.selector.get_map().values()]
        host = self.hosts[name] = self.network.add(name, spec, close)
        self._watch(host.channel, lambda _: self._hear(host))
        made = (name, spec.index, spec.launcher, *host.process, self.network.address(spec), host.unset, spec.machine)
        self.journal.note(journal.HostMade(*made))

    def _hear(self, host: RunningHost) -> None:
        said, _ = messages.HOST_REPORTS.receive(host.channel)
        match said:
            case None:
                self.selector.unregister(host.channel)
                host.channel.close()
                host.dying = not host.ending
            case messages.Up():
                host.up, host.last_seen = True, time.monotonic()
                self._note(journal.HostUp(host.name))
                if host.spec.launcher and self.waiting_attempt is not None:
                    self._start_launcher(self.waiting_attempt)
            case messages.InTrouble(reason):
                self._note(journal.HostTrouble(host.name, reason))
            case messages.Launching(hosts, by_hydra) if self.launcher is not None:
                self.launcher.expect(hosts, by_hydra=by_hydra)
            case messages.Said():
                # Over a slow connection its answer to a ping comes behind much output.
                host.last_seen = time.monotonic()
                self._take_down(said)
            case messages.Emptied(sweep):
                host.emptied = sweep
            case messages.Alive():
                host.last_seen = time.monotonic()

    def _reap(self) -> None:
        for host in list(self.hosts.values()):
            if host.process.pid == 0 and host.channel.fileno() < 0:
                self._lost(host, Text("it could not be started"))
        for pid, _status in process.ended_children():
            for host in list(self.hosts.values()):
                if host.process.pid == pid:
                    self._lost(host, Text("all its processes were killed") if host.dying or not host.ending else "")

    def _lost(self, host: RunningHost, reason: str) -> None:
        while host.has_news():
            self._hear(host)
        del self.hosts[host.name]
        self._settle()
        unwatch(self.selector, host.channel)
        memory = host.group.out_of_memory_kills() > host.kills_seen
        if left := self.network.end_orphans(self.hosts.values()):
            pids = ", ".join(map(str, left))
            reason = Text("its first process is gone, and these could not be ended: {pids}", pids=pids)
        self.network.remove(host)
        self._note(journal.HostDown(host.name, reason, memory))

    def _tick(self) -> None:
        now = time.monotonic()
        if self.deadline is not None and time.time() >= self.deadline:
            self._out_of_time()
        if self.launcher is not None and self.launcher.exit is not None:
            # Leftovers of the attempt end, but not before every rank's output is on disk.
            recorded = all(rank.ended for rank in self.ranks.values())
            if not self.launcher.swept and (recorded or now >= self.launcher.sweep_due):
                self.launcher.swept = True
                self.hosts.sweep()
            if self.launcher.drained(now, self.hosts.output_awaited()):
                self._launcher_done(self.launcher)
        if self.tell_at is not None and now >= self.tell_at:
            self._tell()
        if now < self.last_pulse + _PULSE:
            return
        slept = now - self.last_pulse > 3 * _PULSE  # we were halted ourselves: nobody else is to blame
        self.last_pulse = now
        self.journal.catch_up()
        if slept or self.launcher is not None or self.listeners:
            self.needed_at = now
        elif now - self.needed_at > _ALONE_SECONDS:
            self.end()  # the journal has it all; whoever takes the job up has hosts made anew, if it goes on
        for host in list(self.hosts.values()):
            if slept:
                host.last_seen = now
            elif host.up and not host.ending and self._unheard(host) and not self._was_heard_now(host):
                self._silent(host)
            self.network.ping(host)
        if self.launcher is not None and self.launcher.exit is None:  # one that ended by itself has its own word
            for world, number, line in self.launcher.exceptions(now):
                if (rank := self.ranks.newest(world, number)) is not None:
                    self._raised(rank, line)
            if self.launcher.is_late(now):
                self._stop_launcher()
            if self.launcher.must_be_killed(now):
                self.hosts.sweep()

    def _unheard(self, host: RunningHost) -> bool:
        return time.monotonic() - host.last_seen > self.spec.silence

    def _was_heard_now(self, host: RunningHost) -> bool:
        """On a starved machine it may not have come to its answer; or that lies here, and it is us who come late."""
        if process.wants_to_run(host.process.pid):  # asked first: once it rests, all that it had to say lies here
            return True
        if self.network.heartbeat is not None:
            self.hosts.take_heartbeats(self.network.heartbeat)
        while host.has_news():
            self._hear(host)
        return host.dying or not self._unheard(host)  # one that is dying is heard of once its process is gone

    def _silent(self, host: RunningHost) -> None:
        who, seconds = host.spec.machine or Text("it"), self.spec.silence
        reason = Text("{who} gave no sign of life for {seconds} seconds", who=who, seconds=seconds)
        self.journal.note(journal.HostTrouble(host.name, reason))
        host.ending = True
        host.kills_seen = host.group.out_of_memory_kills()  # whatever they were, it lived on
        process.send_signal(host.process, signal.SIGKILL)

    def _start_launcher(self, attempt: int) -> None:
        if self.launcher is not None:
            return
        self.spec = read_spec(self.folder)
        name = self.spec.launcher_host
        self.waiting_attempt = attempt  # until it has started
        if name not in self.hosts or not self.hosts[name].up or self._waits_for_input():
            return
        try:
            self.launcher = Launcher.start(
                attempt,
                self.spec,
                socket_path=self.network.socket_path(name),
                logs=self._logs(attempt),
                host_of=self._host_of,
                stdin=self.stdin,
            )
        except (ConnectionError, FileNotFoundError):  # its host is gone, which is noticed next
            return
        self.waiting_attempt = self.stdin = None
        self.ranks.clear()
        self.said = 0
        self._watch(self.launcher.channel, self._launcher_says)
        for fd in self.launcher.streams:
            self._watch(fd, self._pump)
        self._note(journal.LauncherStarted(attempt))

    def _waits_for_input(self) -> bool:
        """Whoever gives it may be halted. It is given once: for a later attempt nobody is there, and it has none."""
        if self.giver is None and self.stdin is None and self.spec.stdin:
            with contextlib.suppress(OSError):
                self.giver = messages.connect(self.spec.stdin)
                self._watch(self.giver, self._take_input)
        return self.giver is not None

    def _take_input(self, giver: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self.stdin = next(iter(socket.recv_fds(giver, 1, 1)[1]), None)
        self.selector.unregister(giver)
        giver.close()
        self.giver = None
        if self.waiting_attempt is not None:
            self._start_launcher(self.waiting_attempt)

    def _pump(self, fd: int) -> None:
        assert self.launcher is not None
        try:
            if not self.launcher.record(fd):
                self._close_stream(fd)
                return
        except OSError as error:
            self._log_trouble(error)
        self._saw_output(self.launcher.attempt)

    def _take_down(self, said: messages.Said) -> None:
        """What a rank elsewhere wrote, if it did not come through the launcher."""
        if self.launcher is None or self.launcher.attempt != said.attempt:
            return
        try:
            self.launcher.take_down(said)
        except OSError as error:
            self._log_trouble(error)
        self._saw_output(self.launcher.attempt)

    def _log_trouble(self, error: OSError) -> None:
        self._give_up(Text("the log could not be written: {why}", why=error.strerror))

    def _give_up(self, reason: str) -> None:
        if self.launcher is not None and not self.launcher.unrecorded:  # once, however much comes
            self.launcher.unrecorded = True
            self.journal.note(journal.LogTrouble(reason))
            self.hosts.sweep()

    def _close_stream(self, fd: int) -> None:
        assert self.launcher is not None
        self.selector.unregister(fd)
        self.launcher.close_stream(fd)

    def _launcher_says(self, channel: socket.socket) -> None:
        if self.launcher is not None and self.launcher.listen():
            self.selector.unregister(channel)
            channel.close()

    def _settle(self) -> None:
        """Read what ranks have already said, so that the order of facts in the journal is that of the world: also those
        that nobody has let in yet. Whoever goes on and on is not heard out.

        Never while a list of what is ready is worked through: whoever comes later in it would be waited for in vain.
        """
        from_job, until = (self._accept, self._serve, self._serve_job), time.monotonic() + _SETTLES_WITHIN
        while time.monotonic() < until and (
            ready := [key for key, _ in self.selector.select(0) if key.data in from_job]
        ):
            for key in ready:
                key.data(key.fileobj)

    def _launcher_done(self, launcher: Launcher) -> None:
        for fd in list(launcher.streams):
            self._close_stream(fd)
        for host in list(self.hosts.values()):
            while host.has_news():
                self._hear(host)
        # A host that died took the launcher with it: its end comes first in the journal, although it takes longer.
        for host in [each for each in self.hosts.values() if each.dying and each.process.pid]:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(host.process.pid, 0)
            self._lost(host, Text("all its processes were killed"))
        self._settle()
        launcher.close()
        if self.spec.elsewhere:  # the ends of ranks are told at once, what they wrote before comes later
            for rank in [each for each in self.ranks.values() if each.failed or not each.ended]:
                self._last_words(rank, self._last_lines(rank)[-40:])
        self.launcher = None
        code, number = launcher.result()
        # A shell elsewhere tells codes and signals alike. A launcher that is killed takes its ranks along, with whoever
        # would tell their ends; Hydra ends by itself, with the code of a rank.
        if self.spec.elsewhere and code in [rank.told for rank in self.ranks.values()]:
            number = None
        memory = self.hosts.memory_killed(self.spec.launcher_host)
        self._note(journal.LauncherEnded(launcher.attempt, code, number, memory, launcher.lines[-60:]))

    def _last_words(self, rank: Rank, lines: list[str]) -> None:
        """Hydra kills a rank that calls MPI_Abort, and at times whoever would have told its end with it."""
        from oarsman.status import mpirun_words  # most jobs end well

        if rank.failed and lines:
            self.journal.note(journal.RankLines(*rank.key, lines))
        elif not rank.ended and mpirun_words.abort_code(lines, rank.facts.rank) is not None:
            killed = (128 + signal.SIGKILL, int(signal.SIGKILL))
            self.journal.note(journal.RankEnd(*rank.key, *killed, False, lines, "", None))
        elif lines:  # that it wrote anything tells that its program was there
            self.journal.note(journal.RankLines(*rank.key, lines[-1:]))

    def _stop_launcher(self) -> None:
        self.waiting_attempt = None
        if self.launcher is not None:
            self.launcher.stop(self.spec.grace)

    def _out_of_time(self) -> None:
        """The supervisor has the verdict. On a starved machine it may come long after."""
        self.deadline = None
        if self.launcher is not None and self.launcher.exit is None:
            self.launcher.gave_up = True  # whatever it says when it is told to end
        self._end_all()

    def _end_all(self) -> None:
        self._stop_launcher()
        for name in list(self.hosts):
            self.hosts.stop(name, self.spec.grace)

    def _rank_ended(self, caller: socket.socket, end: RankEnded) -> None:
        rank = self.ranks.ended(caller, end.exit)
        if rank is None:
            return
        if self.launcher is not None:
            if rank.failed and not rank.facts.survives:
                self.launcher.rank_failed()
            if self.spec.launcher_is_mpirun:
                self.launcher.all_ranks_ended(self.ranks.world_ended(rank))
        memory = end.signal == signal.SIGKILL and self.hosts.memory_killed(rank.facts.host)
        self._note(journal.RankEnd(*rank.key, end.exit, end.signal, memory, end.lines, end.reason, end.at))

    def _raised(self, rank: Rank, line: str) -> None:
        rank.exceptions += 1
        if rank.exceptions <= _MOST_EXCEPTIONS:
            self._note(journal.RankException(*rank.key, line[:_LONGEST_EXCEPTION]))

    def _wrote_nothing(self, rank: Rank, cpu: int | None) -> None:
        rank.silences += 1
        if rank.silences <= _MOST_SILENCES:
            self._note(journal.RankSilence(*rank.key, cpu))

    def _last_lines(self, rank: Rank) -> list[str]:
        base = f"{self._logs(rank.facts.attempt)}/rank-{rank.facts.rank}"
        return log_lines.tail(f"{base}.out") + log_lines.tail(f"{base}.err")

    def _logs(self, attempt: int) -> str:
        return log_lines.attempt_folder(f"{self.folder}/logs", attempt)

    def _host_of(self, number: int) -> str:
        """Of a rank elsewhere; its lines may be here before its own word is. A script may launch more than once: the
        newest rank of that number counts."""
        planned = self.launcher.hosts[number : number + 1] if self.launcher is not None else ()
        known = [rank.facts.host for rank in self.ranks.values() if rank.facts.rank == number]
        return [self.spec.launcher_host, *planned, *known][-1]

    def _saw_output(self, attempt: int) -> None:
        if attempt > self.output_seen:
            self.output_seen = attempt
            self._note(journal.OutputBegan(attempt))

    def end(self) -> None:
        """Everything ends: the launcher gets its grace, then the hosts theirs."""
        if self.ending:
            return
        self.ending = True
        self._end_all()
