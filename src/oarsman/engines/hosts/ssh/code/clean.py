"""Copies of jobs' folders that lie on hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oarsman.engines.hosts.ssh import scripts
from oarsman.engines.hosts.ssh.client import Ssh
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.trouble import Trouble, trouble

_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class FolderCopy:
    name: str
    bytes: int
    jobs: tuple[str, ...]  # uids of those that need it


async def copies(ssh: Ssh, host: SshHost, *, remove: Sequence[str] = ()) -> list[FolderCopy] | Trouble:
    """Those that are there once these have been removed."""
    told = scripts.assignments({"FOLDER": copies_folder(host), "REMOVE": " ".join(remove)})
    answer = await ssh.run(host, told + scripts.script("code/clean"), timeout=_SECONDS)
    if answer.trouble or answer.code:
        return answer.trouble or trouble(host, answer.code, answer.err)
    rows = [line.split() for line in answer.out.splitlines()]
    return [FolderCopy(row[0], int(row[1]) << 10, tuple(row[2:])) for row in rows if len(row) > 1 and row[1].isdigit()]


def copies_folder(host: SshHost) -> str:
    return f"{host.folder.rstrip('/') or '~/.oarsman'}/code"
