"""A view of this machine's files for jobs of others than its owner, and the end of all rights over it.

`start.py confined CONFINEMENT program arguments...` runs a program in such a view, with process numbers of its own: one
that somebody else has chosen, like an `mpirun` that is asked for its version. What it starts ends with it.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from collections.abc import Sequence
from typing import NoReturn

from oarsman.engines.hosts.core import linux, process, shims
from oarsman.engines.hosts.core.job_spec import Confinement

TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")


def see_only(confinement: Confinement) -> None:
    """In a mount namespace of one's own. What stays to be seen is taken before anything is hidden or sealed, and is as
    it was: no link that somebody puts there leads elsewhere. Then from the outer folders to those within."""
    seen = (*confinement.shown, *confinement.writable)
    taken = {path: linux.take(path) for path in seen if os.path.exists(path)}
    mask = os.umask(0o022)
    linux.mount("devpts", "/dev/pts", "devpts", linux.MS_NOSUID | linux.MS_NOEXEC, "newinstance,ptmxmode=0666")
    if confinement.sealed:
        linux.set_read_only("/")
    for path in sorted({*confinement.hidden, *taken}, key=lambda path: path.rstrip("/").count("/")):
        if path in taken:
            if not os.path.exists(path):
                _make_alike(path, taken[path])
            linux.put(taken[path], path)
            if path not in confinement.writable:
                linux.set_read_only(path)
        elif os.path.isdir(path):
            mode = "1777" if path in TEMPORARY else "0755"
            linux.mount("tmpfs", path, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, f"mode={mode}")
        elif os.path.exists(path):
            linux.bind("/dev/null", path)
    os.umask(mask)


def _make_alike(path: str, taken: int) -> None:
    """Something that this can be mounted on."""
    if stat.S_ISDIR(os.fstat(taken).st_mode):
        os.makedirs(path)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "x").close()


def give_up_rights(confinement: Confinement) -> None:
    uid = os.getuid() if confinement.uid < 0 else confinement.uid
    linux.give_up_rights(uid, confinement.gid, confinement.groups)


def words(confinement: Confinement) -> list[str]:
    """What stands before a command that is to run so."""
    return [*shims.starter(), "confined", json.dumps(confinement._asdict())]


def main() -> None:
    confinement, command = Confinement(**json.loads(sys.argv[1])), sys.argv[2:]
    linux.end_with_parent(signal.SIGKILL)
    linux.leave_keyring()
    if os.getuid() != 0:
        linux.enter_own_user_namespace()
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWIPC | linux.CLONE_NEWPID)
    child = os.fork()
    if child == 0:
        _be_first(confinement, command)
    process.restore_signals()
    sys.exit(shims.exit_of(os.waitpid(child, 0)[1])[0])


def _be_first(confinement: Confinement, command: Sequence[str]) -> NoReturn:
    """Process 1, which reaps orphans: with its end all others end, too. In a session without the terminal that the
    server was started on, where others could type."""
    folder = os.getcwd()
    os.setsid()
    linux.end_with_parent(signal.SIGKILL)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    see_only(confinement)
    linux.mount("tmpfs", "/dev/shm", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=1777")
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    give_up_rights(confinement)
    linux.end_with_parent(signal.SIGKILL)  # again: whoever becomes somebody else has to
    program = os.fork()
    if program == 0:
        try:
            process.restore_signals()
            os.chdir(folder)
            os.execvp(command[0], list(command))
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(127)
    while True:
        pid, status = os.wait()
        if pid == program:
            os._exit(shims.exit_of(status)[0])
