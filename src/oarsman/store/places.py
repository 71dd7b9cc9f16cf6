"""Where things are kept on this machine."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """`state` lasts; `run` holds sockets and is kept short, because socket paths may not be long."""

    state: Path

    @classmethod
    def default(cls) -> Places:
        chosen = os.environ.get("OARSMAN_STATE")
        if chosen:
            return cls(Path(chosen).absolute())
        base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        return cls(Path(base).absolute() / "oarsman")

    @property
    def database(self) -> Path:
        return self.state / "oarsman.db"

    @property
    def lock(self) -> Path:
        return self.state / "supervisor.lock"

    @property
    def supervisor_log(self) -> Path:
        return self.state / "supervisor.log"

    @property
    def run(self) -> Path:
        # One per user and state folder, so that two of them never meet.
        mark = hashlib.sha256(str(self.state).encode()).hexdigest()[:10]
        return Path(tempfile.gettempdir()) / f"oarsman-{os.getuid()}-{mark}"

    @property
    def socket(self) -> Path:
        return self.run / "s"

    def job(self, uid: str) -> Path:
        return self.state / "jobs" / uid

    def job_run(self, uid: str) -> Path:
        return self.run / uid[:8]

    def make(self) -> None:
        """Create the folders, for this user alone. A run folder of somebody else is refused."""
        (self.state / "jobs").mkdir(parents=True, exist_ok=True, mode=0o700)
        self.state.chmod(0o700)
        self.run.mkdir(mode=0o700, exist_ok=True)
        if self.run.stat().st_uid != os.getuid():
            raise PermissionError(f"{self.run} belongs to another user")
