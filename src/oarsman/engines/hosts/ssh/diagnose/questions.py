"""Questions to hosts: about themselves, and about their ways to each other, many at a time.

What listens is a real mpirun on each host, as it does for its daemons: ports and firewalls are those of a job.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from oarsman.engines.hosts.ssh import probe, scripts
from oarsman.engines.hosts.ssh.client import Ssh, end, quietly
from oarsman.engines.hosts.ssh.diagnose.judge import HostSeen, WaySeen, first_mpi
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.errors import RetryableError
from oarsman.text.sentence import Text

ANSWER_SECONDS = 25.0
CONNECT_SECONDS = 10  # a host that is switched off is not waited for as long as a busy one
PATIENCE = 5  # seconds for what may hang on a host

Clock = Callable[[], float]


async def ask(ssh: Ssh, host: SshHost, *, clock: Clock = time.time) -> HostSeen:
    connect = f"ConnectTimeout={CONNECT_SECONDS}"
    asked = clock()
    answer = await ssh.run(host, probe.script(host, patience=PATIENCE), timeout=ANSWER_SECONDS, options=(connect,))
    if answer.trouble is not None:
        return HostSeen(host=host, trouble=answer.trouble)
    try:
        facts = probe.parse(answer.out)
    except RetryableError as error:
        return HostSeen(
            host=host,
            trouble=Trouble("odd", Text("{host}: {why}", host=host.name, why=error.message), error.hint or ""),
        )
    return timed(HostSeen(host=host, facts=facts), facts.clock, asked, clock())


def timed(seen: HostSeen, its_clock: float, asked: float, answered: float) -> HostSeen:
    """Its clock was read at some moment between our question and its answer: most likely in the middle."""
    return replace(seen, skew=its_clock - (asked + answered) / 2, within=(answered - asked) / 2)


_PATIENCE = 10  # seconds that a script may take to put away what it started


class Conversation:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def say(self, *words: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ConnectionResetError):  # what is asked next finds the end
            self._process.stdin.write((" ".join(words) + "\n").encode())
            await self._process.stdin.drain()

    async def hear(self) -> list[str] | None:
        """The words of the next line; None: it ended."""
        assert self._process.stdout is not None
        try:
            line = await self._process.stdout.readline()
        except ValueError:  # far longer than any that the script says
            return [""]
        return line.decode(errors="replace").rstrip("\n").split("\t") if line else None

    async def wait_for(self, *words: str) -> list[str] | None:
        """The first line that begins with one of them."""
        while (line := await self.hear()) is not None:
            if line[0] in words:
                return line
        return None


@asynccontextmanager
async def conversation(ssh: Ssh, host: SshHost, script: str) -> AsyncIterator[Conversation]:
    """The script's last line must be what begins it: then the shell has read all of it, and input is the script's."""
    process = await asyncio.create_subprocess_exec(
        *ssh.argv(host, "/bin/sh"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # whoever speaks with a host has reached it before
        start_new_session=True,
        env=quietly(os.environ),
    )
    talk = Conversation(process)
    try:
        await talk.say(script.rstrip("\n"))
        yield talk
    finally:
        await _leave(process)


async def _leave(process: asyncio.subprocess.Process) -> None:
    """The end of the input lets the script put things away; a host that does not answer is not waited for long."""
    assert process.stdin is not None
    try:
        process.stdin.close()
        await asyncio.wait_for(process.communicate(), _PATIENCE)
    except (TimeoutError, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        await end(process)


BEGIN_AT_ONCE = 8  # all hosts may be behind one jump host, which refuses some of more than ten
LOGINS_AT_ONCE = 4  # of one host: an sshd refuses some of those that come when ten are not logged in yet
CALLS_AT_ONCE = 16
_BEGIN_SECONDS = 30.0
_ONE_LOGIN, _ONE_CALL = 10.0, 5.0  # seconds, somewhat more than the script allows
_NUMBER, _PORT = re.compile(r"[0-9]+(\.[0-9]+)?"), re.compile(r"[0-9]{1,5}")


@dataclass
class _Meeting:
    """Nobody begins to connect before everybody listens."""

    missing: set[str]
    backend: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(BEGIN_AT_ONCE))
    ports: dict[str, str] = field(default_factory=dict)
    complete: asyncio.Event = field(default_factory=asyncio.Event)
    finished: set[str] = field(default_factory=set)
    all_finished: asyncio.Event = field(default_factory=asyncio.Event)
    deaf: set[str] = field(default_factory=set)  # whose mpirun was gone at the end

    def arrived(self, name: str, port: str = "") -> None:
        if port:
            self.ports[name] = port
        self.missing.discard(name)
        if not self.missing:
            self.complete.set()

    def leaves(self, name: str, hosts: int) -> None:
        self.finished.add(name)
        if len(self.finished) == hosts:
            self.all_finished.set()


async def try_ways(
    ssh: Ssh, seen: Sequence[HostSeen], addresses: Mapping[str, str], *, clock: Callable[[], float] = time.time
) -> tuple[dict[str, HostSeen], list[WaySeen]]:
    """All ways between these hosts, and their clocks measured once more, over connections that are open already."""
    meeting = _Meeting(missing={each.host.name for each in seen})
    tries = [_Trying(ssh, each, seen, addresses, meeting, clock) for each in seen]
    await asyncio.gather(*(one.run() for one in tries))
    ways = [way for one in tries for way in one.results()]
    return {one.seen.host.name: one.seen for one in tries}, ways


class _Trying:
    """One host's part."""

    def __init__(
        self,
        ssh: Ssh,
        seen: HostSeen,
        everybody: Sequence[HostSeen],
        addresses: Mapping[str, str],
        meeting: _Meeting,
        clock: Callable[[], float],
    ) -> None:
        self.seen = seen
        self._ssh, self._addresses, self._meeting, self._clock = ssh, addresses, meeting, clock
        names = [each.host.name for each in everybody]
        place = names.index(seen.host.name)
        # Each begins with the next one after it, so that not all go to the first at once.
        self._others = [each.host for each in (*everybody[place + 1 :], *everybody[:place])]
        self._count = len(everybody)
        self._logins: dict[str, tuple[int, str]] = {}
        self._calls: dict[str, str] = {}
        self._answered = False

    @property
    def _name(self) -> str:
        return self.seen.host.name

    async def run(self) -> None:
        left = False
        try:
            async with AsyncExitStack() as stack:
                async with self._meeting.backend:
                    talk = await stack.enter_async_context(conversation(self._ssh, self.seen.host, self._script()))
                    await _within(_BEGIN_SECONDS, self._begin(talk))
                self._meeting.arrived(self._name)
                await self._meeting.complete.wait()
                await _within(self._patience(), self._try(talk))
                left = True
                self._meeting.leaves(self._name, self._count)
                await self._meeting.all_finished.wait()  # others may still be about to connect here
                await talk.say("finish")
                line = await _within(_BEGIN_SECONDS, talk.wait_for("finished"))
                if line is None or line[1:] != ["listening"]:
                    self._meeting.deaf.add(self._name)
        finally:
            self._meeting.arrived(self._name)
            if not left:
                self._meeting.leaves(self._name, self._count)

    def _script(self) -> str:
        return scripts.exports(self.seen.host.environment) + (resources.files(__package__) / "ways.sh").read_text()

    def _patience(self) -> float:
        """Only ends what hangs."""
        logins = -(-len(self._others) // LOGINS_AT_ONCE) * _ONE_LOGIN
        calls = -(-len(self._others) // CALLS_AT_ONCE) * _ONE_CALL
        return 10.0 + max(logins, calls)

    async def _begin(self, talk: Conversation) -> None:
        if await talk.wait_for("ready") is None:
            return
        self._answered = True
        asked = self._clock()
        await talk.say("clock")
        line = await talk.wait_for("clock")
        if line is not None and _NUMBER.fullmatch(line[-1]):
            self.seen = timed(self.seen, float(line[-1]), asked, self._clock())
        mpi = first_mpi(self.seen.facts) if self.seen.facts else None
        address = self._addresses.get(self._name, "")
        if mpi is None or not address:
            return
        await talk.say("listen", mpi.launcher, "tcp6" if ":" in address else "tcp")
        line = await talk.wait_for("listening", "silent")
        if line is not None and line[0] == "listening" and _PORT.fullmatch(line[-1]):  # others will use it
            self._meeting.arrived(self._name, line[-1])

    async def _try(self, talk: Conversation) -> None:
        callable_ones = [host for host in self._others if host.name in self._meeting.ports]
        for lane in _lanes(self._others, LOGINS_AT_ONCE):
            await talk.say("logins", *(word for host in lane for word in _login_words(host)))
        for lane in _lanes(callable_ones, CALLS_AT_ONCE):
            await talk.say("calls", *(word for host in lane for word in self._call_words(host)))
        await talk.say("finish")
        while (line := await talk.wait_for("login", "call", "finished")) is not None:
            match line:
                case ["login", name, code, said] if code.isdecimal():
                    self._logins[name] = (int(code), said.replace("\037", "\n"))
                case ["call", name, said]:
                    self._calls[name] = said
                case ["finished", *_]:
                    return

    def _call_words(self, host: SshHost) -> tuple[str, str, str]:
        return host.name, self._addresses[host.name], self._meeting.ports[host.name]

    def results(self) -> list[WaySeen]:
        return [self._result(host) for host in self._others]

    def _result(self, other: SshHost) -> WaySeen:
        code, said = self._logins.get(other.name, (None, ""))
        address = self._addresses.get(other.name, "")
        call = self._calls.get(other.name, "")
        untried = ""
        if other.name not in self._meeting.ports:
            untried = Text("no mpirun listens on {host}", host=other.name)
        elif other.name in self._meeting.deaf and call != "connected":
            untried = Text("the mpirun on {host} ended", host=other.name)
        elif other.name not in self._calls:
            untried = (
                Text("{host} did not answer in time", host=self._name)
                if self._answered
                else Text("{host} did not answer", host=self._name)
            )
        return WaySeen(host=self._name, other=other, address=address, code=code, said=said, call=call, untried=untried)


def _login_words(host: SshHost) -> tuple[str, str, str, str]:
    return host.name, host.target, host.user or "-", str(host.port or "-")


def _lanes(hosts: Sequence[SshHost], count: int) -> list[Sequence[SshHost]]:
    return [lane for start in range(count) if (lane := hosts[start::count])]


async def _within(seconds: float, doing: Awaitable[object]) -> Any:
    """None where it took too long: what is missing then is said of each way by itself."""
    try:
        return await asyncio.wait_for(doing, seconds)
    except TimeoutError:
        return None
