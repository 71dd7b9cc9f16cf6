"""Where things are kept on this machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import socket
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from oarsman.errors import StoreError
from oarsman.text.sentence import Text

ELSEWHERE = Text("point OARSMAN_STATE to a folder that you can write to")
_SHORT_AND_PLAIN = re.compile(r"[-./\w]{1,13}", re.ASCII)


def short_temp() -> Path:
    """A socket's path has room for 107 bytes, and Open MPI splits the path of its agent at spaces."""
    chosen = tempfile.gettempdir()
    plain = _SHORT_AND_PLAIN.fullmatch(chosen) or not os.access("/tmp", os.W_OK | os.X_OK)
    return Path(chosen if plain else "/tmp")


def _a_name() -> Path:
    """For a folder that is not there yet. Nobody can guess it, or make one of that name before we do."""
    return short_temp() / f"oarsman-{secrets.token_hex(5)}"


class _InState:
    """A file of that name in the state folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, paths: Paths, _: object = None) -> Path:
        return paths.state / self._name


@dataclass(frozen=True, slots=True)
class Paths:
    """`state` lasts; `run` holds sockets and is kept short, because socket paths may not be long."""

    state: Path
    database = _InState("oarsman.db")
    console_database = _InState("console.db")  # accounts and tokens: apart, so that no copy of one has the other in it
    lock = _InState("supervisor.lock")
    supervisor_log = _InState("supervisor.log")
    secrets_list = _InState("secrets")
    _run_link = _InState("run")

    @classmethod
    def default(cls) -> Paths:
        chosen = os.environ.get("OARSMAN_STATE")
        if chosen:
            return cls(Path(chosen).absolute())
        base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        if base.startswith("~"):  # a user without a name, as containers have them
            raise StoreError(Text("this user has no home folder"), hint=ELSEWHERE)
        return cls(Path(base).absolute() / "oarsman")

    @property
    def run(self) -> Path:
        """Noted down in the state: whatever TMPDIR is to a command, it has to find the supervisor and its jobs. Until
        that is done there is none."""
        try:
            return Path(os.readlink(self._run_link))
        except OSError:
            return self._run_link

    @property
    def socket(self) -> Path:
        return self.run / "s"

    def jobs(self) -> set[str]:
        """The uids of all jobs that have a folder."""
        return set(os.listdir(self.state / "jobs"))

    def job(self, uid: str) -> Path:
        return self.state / "jobs" / uid

    def job_run(self, uid: str) -> Path:
        return self.run / uid[:8]

    def secrets(self) -> list[str]:
        """Files that were given as such, and the state itself: the tokens of the console are in it."""
        try:
            noted = self.secrets_list.read_bytes()
        except OSError:
            noted = b""
        return [str(self.state), *map(os.fsdecode, filter(None, noted.split(b"\0")))]

    def make(self) -> None:
        """Create the folders that last, for this user alone. Refused while another machine looks after them."""
        self.check_machine()
        with _no_place():
            (self.state / "jobs").mkdir(parents=True, exist_ok=True, mode=0o700)
            self.state.chmod(0o700)
            if not self.run.parent.is_dir():  # a TMPDIR of its own that is gone since
                self._run_link.unlink(missing_ok=True)
            with contextlib.suppress(FileExistsError):
                self._run_link.symlink_to(_a_name())
        self.check_run()

    def make_run(self) -> None:
        """Create the run folder. Only the supervisor does, which also removes it: who only looks leaves nothing."""
        with _no_place():
            if not self.check_run():  # somebody who saw it there took its name
                self._run_link.unlink()
                self._run_link.symlink_to(_a_name())
            self.run.mkdir(mode=0o700, exist_ok=True)
        if not self.check_run():
            raise self._not_ours()

    def check_run(self) -> bool:
        """Whether what is in the run folder can be trusted: others may make one of its name. One of ours that others
        can get at is refused."""
        try:
            found = self.run.lstat()  # of itself: a link may lead to a folder of ours that others can write to
        except OSError:  # there is none, or none that can be reached
            return True
        if found.st_uid == os.getuid() and (not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077):
            raise self._not_ours()
        return found.st_uid == os.getuid()

    def _not_ours(self) -> StoreError:
        return StoreError(Text("{path} is not a folder of this user alone", path=self.run), hint=Text("remove it"))

    # -- which machine: two that have one home would each start the jobs of the other once more -------------------
    def check_machine(self) -> None:
        """The same one is known by its boot, whatever it or a container of it is called, and by its names after it."""
        try:
            boot, id, host = self.lock.read_text(errors="replace").splitlines()
        except (OSError, ValueError):  # nobody looks after it
            return
        here, *mine = _this_machine()
        if boot != here and [id, host] != mine:
            message = Text("{host} manages {path}, and its jobs may still be running there", path=self.state, host=host)
            template = Text(
                "run the command there, or set OARSMAN_STATE to a folder of this machine; if {host} is gone "
                "for good: {command}"
            )
            raise StoreError(message, hint=Text(template, host=host, command="oarsman supervisor take-over"))

    def claim(self) -> None:
        """For this machine; only whoever holds the lock does."""
        self.lock.write_text("\n".join(_this_machine()))

    def take_over(self) -> None:
        """From a machine that is gone; one that is there holds the lock, and is not."""
        with self.lock.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self.check_machine()
            else:
                lock.truncate(0)


def _this_machine() -> tuple[str, str, str]:
    """Its boot, its id and its name."""
    found = []
    for file in ("/proc/sys/kernel/random/boot_id", "/etc/machine-id"):
        try:
            found.append(Path(file).read_text().strip())
        except OSError:
            found.append("")
    return found[0], found[1], socket.gethostname()


def note_secret(file: str | Path) -> None:
    """Whatever is given to Oarsman as a secret is never copied to hosts, by no later command."""
    path = os.path.abspath(file)
    with contextlib.suppress(OSError, StoreError):  # nowhere to write: no jobs either
        paths = Paths.default()
        if path not in paths.secrets():
            paths.state.mkdir(parents=True, exist_ok=True, mode=0o700)
            with paths.secrets_list.open("ab") as secrets:
                secrets.write(os.fsencode(path) + b"\0")


@contextlib.contextmanager
def _no_place() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(Text("no place to keep jobs: {why}", why=error), hint=ELSEWHERE) from error
