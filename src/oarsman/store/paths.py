"""Where things are kept on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from oarsman.errors import StoreError
from oarsman.text.sentence import Text

_ELSEWHERE = Text("point OARSMAN_STATE to a folder that you can write to")
_SHORT_AND_PLAIN = re.compile(r"[-./\w]{1,13}", re.ASCII)


def short_temp() -> Path:
    """A socket's path has room for 107 bytes, and Open MPI splits the path of its agent at spaces."""
    chosen = tempfile.gettempdir()
    plain = _SHORT_AND_PLAIN.fullmatch(chosen) or not os.access("/tmp", os.W_OK | os.X_OK)
    return Path(chosen if plain else "/tmp")


@dataclass(frozen=True, slots=True)
class Paths:
    """`state` lasts; `run` holds sockets and is kept short, because socket paths may not be long."""

    state: Path

    @classmethod
    def default(cls) -> Paths:
        chosen = os.environ.get("OARSMAN_STATE")
        if chosen:
            return cls(Path(chosen).absolute())
        base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        if base.startswith("~"):  # a user without a name, as containers have them
            raise StoreError(Text("this user has no home folder"), hint=_ELSEWHERE)
        return cls(Path(base).absolute() / "oarsman")

    @property
    def database(self) -> Path:
        return self.state / "oarsman.db"

    @property
    def console_database(self) -> Path:
        """Accounts, sessions and tokens: apart from the jobs, so that neither is in a copy of the other."""
        return self.state / "console.db"

    @property
    def lock(self) -> Path:
        return self.state / "supervisor.lock"

    @property
    def supervisor_log(self) -> Path:
        return self.state / "supervisor.log"

    @property
    def run(self) -> Path:
        """Noted down in the state: whatever TMPDIR is to a command, it has to find the supervisor and its jobs."""
        try:
            return Path(os.readlink(self._run_link))
        except OSError:
            # One per user and state folder, so that two of them never meet.
            mark = hashlib.sha256(f"{os.getuid()} {self.state}".encode(errors="surrogateescape")).hexdigest()[:10]
            return short_temp() / f"oarsman-{mark}"

    @property
    def _run_link(self) -> Path:
        return self.state / "run"

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

    @property
    def secrets_list(self) -> Path:
        return self.state / "secrets"

    def make(self) -> None:
        """Create the folders that last, for this user alone. A run folder of somebody else is refused."""
        with _no_place():
            (self.state / "jobs").mkdir(parents=True, exist_ok=True, mode=0o700)
            self.state.chmod(0o700)
            if not self.run.parent.is_dir():  # a TMPDIR of its own that is gone since
                self._run_link.unlink(missing_ok=True)
            with contextlib.suppress(FileExistsError):
                self._run_link.symlink_to(self.run)
        self.check_run()

    def make_run(self) -> None:
        """Create the run folder. Only the supervisor does, which also removes it: who only looks leaves nothing."""
        with _no_place():
            self.run.mkdir(mode=0o700, exist_ok=True)
        self.check_run()

    def check_run(self) -> None:
        """To be said before anything in the run folder is trusted: others may make one of its name."""
        try:
            found = self.run.lstat()  # of itself: a link may lead to a folder of ours that others can write to
        except OSError:  # there is none, or none that can be reached
            return
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise StoreError(Text("{path} is not a folder of this user alone", path=self.run), hint=Text("remove it"))


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
        raise StoreError(Text("no place to keep jobs: {why}", why=error), hint=_ELSEWHERE) from error
