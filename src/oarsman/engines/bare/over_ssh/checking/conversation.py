"""A shell script on a host that is spoken with, line by line, over one connection."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from oarsman.engines.bare.over_ssh.client import Ssh, end, quietly
from oarsman.engines.bare.over_ssh.inventory import RackHost

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
async def conversation(ssh: Ssh, host: RackHost, script: str) -> AsyncIterator[Conversation]:
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
