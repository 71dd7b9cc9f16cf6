"""Questions to hosts: about themselves, and about their ways to each other, many at a time.

What listens is a real mpirun on each host, as it does for its daemons: ports and firewalls are those of a job.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from oarsman.engines.hosts.ssh import probe, scripts
from oarsman.engines.hosts.ssh.client import HUNG_UP, Ssh, begin, end, quietly
from oarsman.engines.hosts.ssh.diagnose.judge import HostSeen, WaySeen, first_mpi
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.trouble import Trouble
from oarsman.errors import RetryableError
from oarsman.text.sentence import Text

ANSWER_SECONDS = 25.0
CONNECT_SECONDS = 10  # a host that is switched off is not waited for as long as a busy one
PATIENCE = 5  # seconds for what may hang on a host

_Words = tuple[str, ...]


async def ask(ssh: Ssh, host: SshHost) -> HostSeen:
    connect = f"ConnectTimeout={CONNECT_SECONDS}"
    asked = time.time()
    answer = await ssh.run(host, probe.script(host, patience=PATIENCE), timeout=ANSWER_SECONDS, options=(connect,))
    if answer.trouble is not None:
        return HostSeen(host=host, trouble=answer.trouble)
    try:
        facts = probe.parse(answer.out)
    except RetryableError as error:
        why = Text("{host}: {why}", host=host.name, why=error.message)
        return HostSeen(host=host, trouble=Trouble("odd", why, error.hint or ""))
    return timed(HostSeen(host=host, facts=facts), facts.clock, asked, time.time())


def timed(seen: HostSeen, its_clock: float, asked: float, answered: float) -> HostSeen:
    """Its clock was read at some moment between our question and its answer: most likely in the middle."""
    return replace(seen, skew=its_clock - (asked + answered) / 2, within=(answered - asked) / 2)


_PATIENCE = 10  # seconds that a script may take to put away what it started


@dataclass(frozen=True, slots=True)
class Conversation:
    process: asyncio.subprocess.Process

    async def say(self, *words: str) -> None:
        assert self.process.stdin is not None
        with suppress(*HUNG_UP):  # what is asked next finds the end
            self.process.stdin.write((" ".join(words) + "\n").encode())
            await self.process.stdin.drain()

    async def wait_for(self, *words: str) -> list[str] | None:
        """The words of the first line that begins with one of them; None: it ended."""
        assert self.process.stdout is not None
        while True:
            with suppress(ValueError):  # a line far longer than any that the script says
                if not (line := await self.process.stdout.readline()):
                    return None
                said = line.decode(errors="replace").rstrip("\n").split("\t")
                if said[0] in words:
                    return said


@asynccontextmanager
async def conversation(ssh: Ssh, host: SshHost, script: str) -> AsyncIterator[Conversation]:
    """The script's last line must be what begins it: then the shell has read all of it, and input is the script's."""
    # Whoever speaks with a host has reached it before: what ssh itself has to say was said then.
    process = await begin(*ssh.argv(host, "/bin/sh"), stderr=asyncio.subprocess.DEVNULL, env=quietly(os.environ))
    talk = Conversation(process)
    assert process.stdin is not None
    try:
        await talk.say(script.rstrip("\n"))
        yield talk
    finally:
        try:  # the end of the input lets the script put things away; a host that does not answer is not waited for long
            with suppress(TimeoutError, *HUNG_UP):
                process.stdin.close()
                await asyncio.wait_for(process.communicate(), _PATIENCE)
        finally:
            await end(process)


BEGIN_AT_ONCE = 8  # all hosts may be behind one jump host, which refuses some of more than ten
LOGINS_AT_ONCE = 4  # of one host: an sshd refuses some of those that come when ten are not logged in yet
CALLS_AT_ONCE = 16
_BEGIN_SECONDS = 30.0
_ONE_LOGIN, _ONE_CALL = 10.0, 5.0  # seconds, somewhat more than the script allows
_NUMBER, _PORT = re.compile(r"[0-9]+(\.[0-9]+)?"), re.compile(r"[0-9]{1,5}")


class _Gathering(asyncio.Event):
    """Set once everybody has come."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self._missing = set(names)

    def come(self, name: str) -> None:
        self._missing.discard(name)
        if not self._missing:
            self.set()


@dataclass
class _Meeting:
    listening: _Gathering  # nobody begins to connect before
    finished: _Gathering  # nobody stops to listen before: others may still be about to connect
    beginning: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(BEGIN_AT_ONCE))
    ports: dict[str, str] = field(default_factory=dict)
    deaf: set[str] = field(default_factory=set)  # whose mpirun was gone at the end


async def try_ways(
    ssh: Ssh, seen: Sequence[HostSeen], addresses: Mapping[str, str]
) -> tuple[dict[str, HostSeen], list[WaySeen]]:
    """All ways between these hosts, and their clocks measured once more, over connections that are open already."""
    hosts = [each.host for each in seen]
    meeting = _Meeting(_Gathering(host.name for host in hosts), _Gathering(host.name for host in hosts))
    tries = [
        # Each begins with the next one after it, so that not all go to the first at once.
        _Trying(ssh, each, [*hosts[place + 1 :], *hosts[:place]], addresses, meeting)
        for place, each in enumerate(seen)
    ]
    await asyncio.gather(*(one.run() for one in tries))
    ways = [one.result(other) for one in tries for other in one.others]
    return {one.name: one.seen for one in tries}, ways


@dataclass
class _Trying:
    ssh: Ssh
    seen: HostSeen
    others: Sequence[SshHost]
    addresses: Mapping[str, str]
    meeting: _Meeting
    logins: dict[str, tuple[int, str]] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)
    answered: bool = False

    @property
    def name(self) -> str:
        return self.seen.host.name

    async def run(self) -> None:
        meeting, host = self.meeting, self.seen.host
        script = scripts.exports(host.environment) + scripts.script("diagnose/ways")
        logins = -(-len(self.others) // LOGINS_AT_ONCE) * _ONE_LOGIN
        calls = -(-len(self.others) // CALLS_AT_ONCE) * _ONE_CALL
        try:
            async with AsyncExitStack() as stack:
                async with meeting.beginning:
                    talk = await stack.enter_async_context(conversation(self.ssh, host, script))
                    await _within(_BEGIN_SECONDS, self._begin(talk))
                meeting.listening.come(host.name)
                await meeting.listening.wait()
                await _within(10.0 + max(logins, calls), self._try(talk))  # only ends what hangs
                meeting.finished.come(host.name)
                await meeting.finished.wait()
                await talk.say("finish")
                line = await _within(_BEGIN_SECONDS, talk.wait_for("finished"))
                if line is None or line[1:] != ["listening"]:
                    meeting.deaf.add(host.name)
        finally:
            meeting.listening.come(host.name)
            meeting.finished.come(host.name)

    async def _begin(self, talk: Conversation) -> None:
        if await talk.wait_for("ready") is None:
            return
        self.answered = True
        asked = time.time()
        await talk.say("clock")
        line = await talk.wait_for("clock")
        if line is not None and _NUMBER.fullmatch(line[-1]):
            self.seen = timed(self.seen, float(line[-1]), asked, time.time())
        mpi = first_mpi(self.seen.facts) if self.seen.facts else None
        address = self.addresses.get(self.name, "")
        if mpi is None or not address:
            return
        await talk.say("listen", mpi.launcher, "tcp6" if ":" in address else "tcp")
        line = await talk.wait_for("listening", "silent")
        if line is not None and line[0] == "listening" and _PORT.fullmatch(line[-1]):  # others will use it
            self.meeting.ports[self.name] = line[-1]

    async def _try(self, talk: Conversation) -> None:
        logins = [(host.name, host.target, host.user or "-", str(host.port or "-")) for host in self.others]
        ports = self.meeting.ports
        names = [host.name for host in self.others if host.name in ports]
        calls = [(name, self.addresses[name], ports[name]) for name in names]
        for lane in _lanes(logins, LOGINS_AT_ONCE):
            await talk.say("logins", *chain(*lane))
        for lane in _lanes(calls, CALLS_AT_ONCE):
            await talk.say("calls", *chain(*lane))
        await talk.say("finish")
        while (line := await talk.wait_for("login", "call", "finished")) is not None:
            match line:
                case ["login", name, code, said] if code.isdecimal():
                    self.logins[name] = (int(code), said.replace("\037", "\n"))
                case ["call", name, said]:
                    self.calls[name] = said
                case ["finished", *_]:
                    return

    def result(self, other: SshHost) -> WaySeen:
        code, said = self.logins.get(other.name, (None, ""))
        address, call = self.addresses.get(other.name, ""), self.calls.get(other.name, "")
        untried = ""
        if other.name not in self.meeting.ports:
            untried = Text("no mpirun listens on {host}", host=other.name)
        elif other.name in self.meeting.deaf and call != "connected":
            untried = Text("the mpirun on {host} ended", host=other.name)
        elif other.name not in self.calls and self.answered:
            untried = Text("{host} did not answer in time", host=self.name)
        elif other.name not in self.calls:
            untried = Text("{host} did not answer", host=self.name)
        return WaySeen(host=self.name, other=other, address=address, code=code, said=said, call=call, untried=untried)


def _lanes(words: Sequence[_Words], count: int) -> list[Sequence[_Words]]:
    return [lane for start in range(count) if (lane := words[start::count])]


async def _within(seconds: float, doing: Awaitable[object]) -> Any:
    """None where it took too long: what is missing then is said of each way by itself."""
    try:
        return await asyncio.wait_for(doing, seconds)
    except TimeoutError:
        return None
