"""Which key of the user opens a host from now on: one that they name, one that they have, or a new one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from oarsman.engines.bare.over_ssh.client import end
from oarsman.engines.bare.over_ssh.trusting_files import PublicKey
from oarsman.engines.bare.over_ssh.trusting_places import KEY
from oarsman.engines.bare.over_ssh.trusting_ways import Way
from oarsman.errors import UsageError

_PATIENCE = 15.0  # seconds


@dataclass(slots=True)
class StartKey:
    public: str  # the line of its .pub file; empty: it has to be made first
    private: Path
    unused: bool  # ssh would not try it by itself


def public_key(file: Path) -> tuple[str, Path]:
    """The line and the private key that belongs to it, whichever of the two files was named."""
    public = file if file.suffix == ".pub" else file.with_name(f"{file.name}.pub")
    try:
        line = public.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"the public key {public} cannot be read: {reason}") from None
    if PublicKey.read(line) is None or "\n" in line:
        raise UsageError(f"{public} is no public key of OpenSSH", hint="it is one line that begins with its kind")
    return line, public.with_suffix("")


async def opening_key(way: Way, home: Path, named: Path | None) -> StartKey:
    if named is not None:
        line, private = public_key(named)
        return StartKey(line, private, private not in way.identities and named not in way.identities)
    ours = home / ".ssh" / KEY
    for private in way.identities:
        if private.name != KEY and (line := await _usable(private)):
            return StartKey(line, private, unused=False)
    line = await _usable(ours)
    return StartKey(line, ours, ours not in way.identities)


async def _usable(private: Path) -> str:
    """The public half of a key that ssh can use without asking anybody; otherwise empty."""
    public = private.with_name(f"{private.name}.pub")
    try:
        line = public.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
    key = PublicKey.read(line)
    if key is None:
        return ""
    opened = await _output("ssh-keygen", "-y", "-P", "", "-f", str(private))
    return line if opened or key.blob in await _output("ssh-add", "-L") else ""


async def _output(*words: str) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return ""
    try:
        out, _ = await asyncio.wait_for(process.communicate(), _PATIENCE)
    except TimeoutError:  # an agent on the other side of a connection that hangs, for one
        return ""
    finally:
        await end(process)
    return out.decode(errors="replace") if process.returncode == 0 else ""
