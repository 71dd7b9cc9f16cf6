"""How the system's ssh is called: its words, its answers, and what is in the way."""

from __future__ import annotations

import asyncio
import os
import random
import re
import shlex
import signal
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from oarsman.backoff import Backoff
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.engines.hosts.ssh.trouble import NOT_STARTED, SSH_FAILED, TIMED_OUT, Trouble, trouble
from oarsman.portal import running

__all__ = ["AT_ONCE", "Answer", "Ssh", "Trouble", "backoff", "end", "is_turned_away", "on_all", "quietly", "trouble"]

AT_ONCE = 32  # more connections in one moment are what firewalls and jump hosts take for an attack
MOST_OUTPUT = 1 << 20  # bytes of each stream that are kept
_END_SECONDS = 10.0  # for what was killed to be gone
_BACKOFF = Backoff(0.75, 6.0, random.uniform)  # between one knock at a crowded door and the next
_TRIES = 5
_TURNED_AWAY = re.compile(r"^(?:kex|ssh)_exchange_identification: (?:read: )?Connection (?:closed|reset)", re.MULTILINE)

_ALWAYS = (
    "ClearAllForwardings=yes",  # what the user forwards is for the user's own sessions, and would collide
    "ServerAliveInterval=5",
    "ServerAliveCountMax=2",
    "LogLevel=ERROR",
    "EscapeChar=none",
)
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    out: str
    err: str
    trouble: Trouble | None = None  # why the script did not run to its end; None: it did, whatever its code


@dataclass(frozen=True)
class Ssh:
    inventory: Inventory
    program: str = "ssh"

    def argv(
        self,
        host: SshHost,
        *remote: str,
        control: str | None = None,
        master: bool = False,
        batch: bool = True,
        timeout: int = 10,
        options: Sequence[str] = (),
    ) -> list[str]:
        """ssh takes the first value it meets: the caller's options, then ours, then the user's configuration."""
        said = [*options, f"BatchMode={'yes' if batch else 'no'}", f"ConnectTimeout={timeout}", *_ALWAYS]
        said += _connection(control, master)
        words = [self.program, "-T", "-x", "-a", *(word for option in said for word in ("-o", option))]
        return [*words, *self._way(host), "--", host.target, *remote]  # after -- no name is an option

    def typed(self, host: SshHost) -> str:
        """What a person types to go the same way."""
        return shlex.join(["ssh", *self._way(host), host.target])

    def trouble(self, host: SshHost, code: int, said: str) -> Trouble:
        """What is in the way from here."""
        return trouble(host, code, said, typed=self.typed(host), config=self.config)

    def _way(self, host: SshHost) -> list[str]:
        """What the inventory says of it."""
        given = {"-F": self.config, "-l": host.user, "-p": str(host.port or ""), "-J": host.jump}
        words = [word for option, value in given.items() if value for word in (option, value)]
        if host.key:  # that key and no other: an agent full of keys uses up the tries that a server allows
            words += ["-i", self._file(host.key), "-o", "IdentitiesOnly=yes"]
        return words

    @property
    def keys(self) -> list[str]:
        """Files of the inventory that open hosts."""
        return [self._file(host.key) for host in self.inventory.hosts if host.key]

    @property
    def config(self) -> str:
        """The file that replaces the user's own configuration; empty: none does."""
        return self._file(self.inventory.ssh_config) if self.inventory.ssh_config else ""

    def _file(self, name: str) -> str:
        """A supervisor has another working folder than whoever wrote the inventory."""
        return str(self.inventory.file.absolute().parent / Path(name).expanduser())

    async def run(
        self,
        host: SshHost,
        script: str,
        *,
        timeout: float,  # noqa: ASYNC109 - what is ended when it is over is ours to end
        options: Sequence[str] = (),
        answering: Mapping[str, str] | None = None,
    ) -> Answer:
        """Run a script there with /bin/sh, whatever the user's shell is.

        The script comes on standard input, of which shells read ahead: nothing in it may read standard input.
        `answering` is an environment in which ssh gets an answer when it asks for a password.
        """
        words = self.argv(host, "/bin/sh", batch=answering is None, timeout=max(1, round(timeout)), options=options)
        environment = quietly(os.environ) if answering is None else dict(answering)
        deadline = asyncio.get_running_loop().time() + timeout
        answer = await self._once(host, words, script, environment, timeout)
        for pause in backoff():
            left = deadline - asyncio.get_running_loop().time() - pause
            if left <= 0 or answer.trouble is None or not is_turned_away(answer.trouble, answer.err):
                break
            await asyncio.sleep(pause)
            answer = await self._once(host, words, script, environment, left)
        return answer

    async def _once(
        self, host: SshHost, words: Sequence[str], script: str, environment: Mapping[str, str], patience: float
    ) -> Answer:
        try:
            code, out, err = await outcome(*words, text=script, patience=patience, env=environment)
        except (FileNotFoundError, PermissionError) as error:
            return Answer(NOT_STARTED, "", str(error), self.trouble(host, NOT_STARTED, str(error)))
        except TimeoutError:
            return Answer(TIMED_OUT, "", "", self.trouble(host, TIMED_OUT, ""))
        failed = code == SSH_FAILED or code < 0
        return Answer(code, out, err, self.trouble(host, code, err) if failed else None)


def is_turned_away(found: Trouble, said: str) -> bool:
    """Whether sshd, or that of a jump host, had so many beginners that it took no more (MaxStartups). Nothing ran."""
    return found.kind == "lost" and _TURNED_AWAY.search(said) is not None


def backoff() -> Iterator[float]:
    """Pauses between all tries."""
    return map(_BACKOFF.after, range(1, _TRIES))


def quietly(environment: os._Environ[str] | dict[str, str]) -> dict[str, str]:
    """The same environment in which no ssh opens a window to ask for a password."""
    return {**environment, "SSH_ASKPASS_REQUIRE": "never", "SSH_ASKPASS": "/bin/false"}


def _connection(control: str | None, master: bool) -> list[str]:
    """Which connection is used.

    Without a socket of ours one that the user holds open is used, as that may be the only way in (one-time passwords);
    none is made to stay, as it would keep our pipes open behind our back.
    """
    if control is None:
        return ["ControlMaster=no"]
    path = control.replace("%", "%%")
    path = f'ControlPath="{path}"' if " " in path else f"ControlPath={path}"
    return ["ControlMaster=yes", path, "ControlPersist=no"] if master else ["ControlMaster=no", path]


# Of a pipe whose reader has ended; the last is what uvloop says once it knows.
HUNG_UP = (BrokenPipeError, ConnectionResetError, RuntimeError)


async def outcome(*words: str, text: str = "", patience: float | None, **options: Any) -> tuple[int, str, str]:
    """The exit code of a process that is given the text, and what it said; TimeoutError if it took too long."""
    process = await begin(*words, **options)
    try:
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None

        async def feed() -> None:
            with suppress(*HUNG_UP):  # it ended before it had read all; it says why itself
                stdin.write(text.encode())
                await stdin.drain()
                stdin.close()
                await stdin.wait_closed()

        async with asyncio.timeout(patience):
            _, out, err = await asyncio.gather(feed(), _take(stdout), _take(stderr))
        return await process.wait(), out, err
    finally:
        await end(process)


async def _take(stream: asyncio.StreamReader) -> str:
    """What comes after the most that is kept is read and dropped, so that the other side does not stand still."""
    kept = bytearray()
    while part := await stream.read(1 << 16):
        kept += part[: MOST_OUTPUT - len(kept)]
    return kept.decode(errors="replace")


async def begin(*words: str, stderr: int = PIPE, **options: Any) -> asyncio.subprocess.Process:
    """A process in a session of its own: without a terminal nobody is asked, not even by the ssh of a jump host.

    Whoever is cancelled while it is being made still ends it, with its children, of which asyncio knows nothing.
    """
    making = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *words, stdin=PIPE, stdout=PIPE, stderr=stderr, start_new_session=True, **options
        )
    )
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        with suppress(OSError):  # it could not be started
            await end(await making)
        raise


async def end(process: asyncio.subprocess.Process) -> None:
    """With the whole session: the ssh to a jump host is a child of ssh.

    What nobody wants to hear any more is heard out: as long as something is unread, a process is not over to asyncio.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        rest = [_take(stream) for stream in (process.stdout, process.stderr) if stream is not None]
        with suppress(TimeoutError):  # something that left the session may hold our pipes open
            await asyncio.wait_for(asyncio.gather(process.wait(), *rest), _END_SECONDS)


async def on_all(hosts: Iterable[SshHost], work: Callable[[SshHost], Awaitable[_Result]]) -> dict[str, _Result]:
    """Do it on all hosts, some at a time; if it raises for one, the others are ended and it is raised here."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(host: SshHost) -> tuple[str, _Result]:
        async with room:
            return host.name, await work(host)

    async with running(*map(one, hosts)) as tasks:
        return dict(await asyncio.gather(*tasks))
