"""What lives and can be killed, found by looking at every process. Those of SSH hosts are seen from here, too."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from oarsman import names
from oarsman.engines.hosts.core import process
from oarsman.engines.hosts.core.process import ProcessId
from oarsman.engines.hosts.ssh.host_spec import base_folder
from oarsman.store.paths import Paths

LAUNCHERS = ("mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra")
DAEMONS = ("orted", "prted", "hydra_pmi_proxy")


@dataclass(frozen=True, slots=True)
class Part:
    kind: str  # supervisor, agent, host, host agent, connection, launcher, daemon, rank
    process: ProcessId
    uid: str  # of its job; empty: of all, or nobody knows
    words: str

    def signal(self, number: int) -> bool:
        return process.send_signal(self.process, number)

    def kill(self) -> bool:
        return self.signal(signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Looked:
    """One process."""

    pid: int
    words: list[str]
    environment: dict[str, str]

    @property
    def parent(self) -> int:
        return int(Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[1])

    def open_files(self) -> Iterator[str]:
        for fd in Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                yield os.readlink(fd)


def look() -> Iterator[Looked]:
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{name}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
                lines = Path(f"/proc/{name}/environ").read_bytes().decode(errors="replace").split("\0")
                pairs = (line.partition("=") for line in lines)
                yield Looked(int(name), words, {key: value for key, _, value in pairs})


def parts(paths: Paths, uids: Collection[str]) -> list[Part]:
    """All that belongs to this state folder, in an order that does not depend on chance."""
    agents: set[int] = set()
    found = []
    for seen in sorted(look(), key=lambda each: each.pid):
        with contextlib.suppress(OSError):
            kind, uid = _kind(seen, paths, uids, agents)
            identity = process.identify(seen.pid)
            if kind and identity is not None:
                found.append(Part(kind, identity, uid, " ".join(seen.words)[:100]))
    return found


def _kind(seen: Looked, paths: Paths, uids: Collection[str], agents: set[int]) -> tuple[str, str]:
    words, program = seen.words, os.path.basename(seen.words[0]) if seen.words else ""
    uid = seen.environment.get(names.ENV_JOB, "")
    if "oarsman.control.supervisor" in words and seen.environment.get("OARSMAN_STATE") == str(paths.state):
        return "supervisor", ""
    if "job-agent" in words and words[-1].startswith(f"{paths.state}/"):
        below = seen.parent in agents
        agents.add(seen.pid)
        return "host" if below else "agent", os.path.basename(words[-1])
    if program == "ssh" and str(paths.run) in " ".join(words):
        return "connection", next((uid for uid in uids if f"/{uid[:8]}/" in " ".join(words)), "")
    if any("IFS= read -r s" in word for word in words) and program == "sh":
        folders = {uid: base_folder(uid) for uid in uids}
        files = list(seen.open_files())
        return "host agent", next((uid for uid, base in folders.items() if any(base in file for file in files)), "")
    if uid not in uids:
        return "", ""
    if any(word.endswith("/rank.sh") for word in words) or ("rank" in words and "start.py" in " ".join(words)):
        return "launcher" if program in LAUNCHERS or "mpirun" in words else "rank", uid
    return ("launcher" if program in LAUNCHERS else "daemon" if program in DAEMONS else ""), uid
