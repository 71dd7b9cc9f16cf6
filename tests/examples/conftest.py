"""The installed command, with a state of its own and with one MPI of the set-up first on PATH."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ssh_hosts.fixtures import rack, shared_rack  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
MPIS = ROOT / ".mpi"


class Oarsman:
    def __init__(self, state: Path, mpi: Path) -> None:
        path = os.pathsep.join([str(mpi / "bin"), str(ROOT / ".venv" / "bin"), os.environ["PATH"]])
        self.environment = {**os.environ, "OARSMAN_STATE": str(state), "PATH": path, "LANG": "C.UTF-8", "NO_COLOR": "1"}
        self.environment.pop("VIRTUAL_ENV", None)

    def __call__(self, *words: str, code: int = 0, timeout: float = 60) -> str:
        """Run the command in the repository, expect its exit code, return what it printed on either stream."""
        done = subprocess.run(
            [str(ROOT / ".venv" / "bin" / "oarsman"), *words],
            cwd=ROOT,
            env=self.environment,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        assert done.returncode == code, f"oarsman {' '.join(words)} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def run(self, example: str, **expected: int) -> str:
        return self("run", f"examples/{example}/{example}.yaml", **expected)


@pytest.fixture
def oarsman_with(tmp_path: Path) -> Iterator[Callable[[str], Oarsman]]:
    """Make a command for an MPI of the set-up, by the name of its folder in .mpi."""
    commands: list[Oarsman] = []

    def make(mpi: str) -> Oarsman:
        commands.append(Oarsman(tmp_path / mpi, MPIS / mpi))
        return commands[-1]

    yield make
    for command in commands:
        command("supervisor", "stop")


@pytest.fixture
def oarsman(oarsman_with: Callable[[str], Oarsman]) -> Oarsman:
    return oarsman_with("openmpi5")
