"""The folder of a job on hosts that do not share it: a copy, of which only what changed is sent.

One ssh call for each host is a conversation with copy.sh there: it says what it has, and takes what differs as tar.
What jobs wrote into the copy stays: only what an earlier copy brought is ever removed.
"""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import os
import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from oarsman.engines.hosts.ssh import scripts
from oarsman.engines.hosts.ssh.client import Ssh, backoff, begin, end, is_turned_away, quietly
from oarsman.engines.hosts.ssh.code.changes import archive, changes, gone, named, read_answer, read_names
from oarsman.engines.hosts.ssh.code.clean import copies_folder
from oarsman.engines.hosts.ssh.code.tree import IGNORE_FILE, Tree, TreeEntry, plan_copy
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.trouble import NOT_STARTED, SSH_FAILED, TIMED_OUT, trouble
from oarsman.errors import OarsmanError, RetryableError, UserError
from oarsman.portal import running
from oarsman.text.sentence import Text

__all__ = ["IGNORE_FILE", "Copied", "Tree", "copy", "is_shared", "plan_copy", "remote_folder", "script"]

_CONNECTING = 10  # seconds
_LIFELESS = 30  # seconds; a copy shows life every two
_LONGEST_ANSWER = 64 << 20  # bytes
_TOOL_MISSING, _BUSY = 127, 75  # codes of copy.sh
_FOR_THE_USER = frozenset({"no-ssh", "denied", "host-key-unknown", "host-key-changed", "unresolvable"})


class _TurnedAwayError(RetryableError):
    """The door was crowded; nothing was begun."""


@dataclass(frozen=True, slots=True)
class Copied:
    files: int = 0  # sent; links are files, too
    bytes: int = 0
    removed: int = 0  # files


def is_shared(folder: Path, host: SshHost) -> bool:
    real = folder.resolve()
    return any(real.is_relative_to(Path(shared).resolve()) for shared in host.shared)


def remote_folder(host: SshHost, folder: Path, who: str) -> str:
    """Where the copy lies on a host; ~/ is for the host to expand. No two folders, users or machines have the same."""
    path = folder.resolve()
    machine = ""
    with suppress(OSError):
        machine = Path("/etc/machine-id").read_text().strip()
    key = "\0".join((machine or socket.gethostname(), who or getpass.getuser(), str(path)))
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    name = re.sub(r"[^A-Za-z0-9._-]", "_", path.name).lstrip(".-") or "code"
    return f"{copies_folder(host)}/{name}-{digest}"


async def copy(
    ssh: Ssh,
    host: SshHost,
    tree: Tree,
    target: str,
    *,
    timeout: float,  # noqa: ASYNC109 - of silence: how long a copy takes, nobody can know
    job: str = "",
) -> Copied:
    """Make the folder `target` on a host as the tree is, apart from what jobs wrote there; `job` needs it from now on.

    Raises RetryableError or UserError, which name the host and the reason, if that does not succeed, or if neither side
    gets any further for `timeout` seconds.
    """
    words = ssh.argv(host, scripts.RECEIVER, timeout=max(1, round(min(timeout, _CONNECTING))))

    async def once() -> Copied:
        try:
            process = await begin(*words, limit=_LONGEST_ANSWER, env=quietly(os.environ))
        except (FileNotFoundError, PermissionError) as error:
            raise _failure(ssh, host, NOT_STARTED, str(error)) from error
        try:
            async with asyncio.timeout(timeout) as limit:
                return await _Conversation(ssh, host, process, limit, timeout).copy(tree, target, job)
        except TimeoutError:
            raise _failure(ssh, host, TIMED_OUT, "") from None
        finally:
            await end(process)

    for pause in backoff():
        try:
            return await once()
        except _TurnedAwayError:
            await asyncio.sleep(pause)
    return await once()


class _Conversation:
    def __init__(
        self, ssh: Ssh, host: SshHost, process: asyncio.subprocess.Process, limit: asyncio.Timeout, patience: float
    ) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._orders, self._answers, self._signs = process.stdin, process.stdout, process.stderr
        self._ssh, self._host, self._process, self._limit, self._patience = ssh, host, process, limit, patience

    async def copy(self, tree: Tree, target: str, job: str) -> Copied:
        done = None
        try:
            async with running(self._listen()) as (listening,):
                with suppress(asyncio.IncompleteReadError, ConnectionError):  # the other side ended: it says why
                    done = await self._bring(tree, target, job)
                said, code = await asyncio.gather(listening, self._process.wait())
        except (asyncio.LimitOverrunError, ValueError) as error:
            why = Text("{host}: {why}", host=self._host.name, why=Text("what it says makes no sense"))
            raise RetryableError(Text("code was not copied: {why}", why=why)) from error
        if done is None or code != 0:
            raise _failure(self._ssh, self._host, code, said)
        return done

    async def _bring(self, tree: Tree, target: str, job: str) -> Copied:
        await self._say(script(target, job, self._patience))
        await self._hear(b"\0begin\0")
        brought = read_names((await self._hear(b"\0end-of-names\0")).removesuffix(b"end-of-names\0"))
        there = await self._look(tree.entries)
        if former := gone(brought, tree):
            there |= await self._look(former)
        needed = changes(tree, there, former)
        if needed.nothing and not former and len(brought) == len(tree.entries):
            await self._say(b"done\n")
            return Copied()
        await self._say(b"take\n")
        pieces = archive(tree, needed, brought)
        while piece := await asyncio.to_thread(next, pieces, b""):
            await self._say(piece)
        self._orders.write_eof()  # some tars read on to the end of their input
        await self._hear(b"taken\n")
        sent = [entry for entry in needed.sent if not entry.is_folder]
        return Copied(len(sent), sum(entry.size for entry in sent), len(needed.former_files))

    async def _look(self, entries: Iterable[TreeEntry]) -> dict[str, TreeEntry]:
        """What these are on the host. It reads ahead, so nothing more is said before it has answered."""
        wanted = b".\0" + named(entries, folders_marked=False)
        await self._say(b"look %d\n" % len(wanted) + wanted)
        return read_answer(await self._hear(b"\0end\0"))

    async def _say(self, text: bytes) -> None:
        """In pieces, so that each that goes out counts as getting further."""
        for start in range(0, len(text), 1 << 16):
            self._orders.write(text[start : start + (1 << 16)])
            await self._orders.drain()
            self._go_on()

    async def _hear(self, last: bytes) -> bytes:
        answer = await self._answers.readuntil(last)
        self._go_on()
        return answer

    async def _listen(self) -> str:
        """Why it failed, if it did. Beats only keep the connection; they do not mean that anything gets further."""
        said = b""
        while chunk := await self._signs.read(1 << 16):
            if re.sub(rb"^oarsman: beats\n", b"", chunk, flags=re.MULTILINE):
                self._go_on()
            said = re.sub(rb"^oarsman: .*\n", b"", said + chunk, flags=re.MULTILINE)[: 1 << 16]
        return said.decode(errors="replace")

    def _go_on(self) -> None:
        if not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time() + self._patience)


def script(target: str, job: str, patience: float, *, drop: bool = False) -> bytes:
    """For RECEIVER. `drop`: the job is gone, and with the last of those that need it so is all that was brought."""
    variables = {"TARGET": target, "JOB": job, "PATIENCE": f"{max(1, round(patience))}", "LIFELESS": f"{_LIFELESS}"}
    variables["DROP"] = f"{drop:d}"
    return scripts.line(scripts.assignments(variables) + scripts.script("code/copy"))


# What hosts say, in the words of libc that all tools use, and what to do about it.
_REASONS = {
    r"No space left on device|[Qq]uota exceeded": Text(
        "free some space there, or name another folder in the inventory"
    ),
    r"Permission denied|Read-only file system": Text(
        "let the user write there, or name another folder in the inventory"
    ),
    r"belongs to somebody else": Text("name a folder in the inventory that is the user's own"),
    r"Directory not empty": Text(
        "a file of the job has the same path as a folder with results of jobs: move that folder away"
    ),
}


def _failure(ssh: Ssh, host: SshHost, code: int, said: str) -> OarsmanError:
    if code == SSH_FAILED or code < 0:  # as NOT_STARTED and TIMED_OUT are
        found = ssh.trouble(host, code, said)
        kind = UserError if found.kind in _FOR_THE_USER else RetryableError
        kind = _TurnedAwayError if is_turned_away(found, said) else kind
        return kind(Text("code was not copied: {why}", why=found.message), hint=found.hint or None)
    for form, hint in _REASONS.items():
        if line := re.search(rf"^.*(?:{form}).*$", said, re.MULTILINE):
            return UserError(Text("code was not copied: {why}", why=trouble(host, code, line[0]).message), hint=hint)
    message = Text("code was not copied: {why}", why=trouble(host, code, said).message)
    if code == _TOOL_MISSING:
        hint = Text("install it on {host}, or share the folder and say so in the inventory", host=host.name)
        return UserError(message, hint=hint)
    return RetryableError(message, hint=Text("wait for the other copy") if code == _BUSY else None)
