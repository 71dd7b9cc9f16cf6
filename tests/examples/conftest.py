"""The installed command, with a state of its own and with one MPI of the set-up first on PATH."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import in_process
import pytest
from ssh_hosts.fixtures import rack, shared_rack  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
MPIS = ROOT / ".mpi"
OARSMAN = str(ROOT / ".venv" / "bin" / "oarsman")


class Oarsman:
    def __init__(self, state: Path, mpi: Path) -> None:
        path = os.pathsep.join([str(mpi / "bin"), str(ROOT / ".venv" / "bin"), os.environ["PATH"]])
        self.environment = {**os.environ, "OARSMAN_STATE": str(state), "PATH": path, "LANG": "C.UTF-8", "NO_COLOR": "1"}
        self.environment.pop("VIRTUAL_ENV", None)

    def __call__(self, *words: str) -> str:
        """Ask in this process; what was printed on either stream."""
        return in_process.oarsman(self.environment, ROOT, *words).output

    def run(self, example: str, *options: str, code: int = 0, timeout: float = 60) -> str:
        """Run an example in the repository, expect its exit code, return what it printed on either stream."""
        done = subprocess.run(
            [OARSMAN, "run", *options, f"examples/{example}/{example}.yaml"],
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
        assert done.returncode == code, f"{example} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    @contextmanager
    def follow(self, job: str) -> Iterator[Iterable[str]]:
        """Lines of its log as they come; whoever waits for one that never does is ended by the test's time limit."""
        with subprocess.Popen(
            [OARSMAN, "logs", "-f", job], env=self.environment, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            try:
                yield process.stdout
            finally:
                process.kill()


@pytest.fixture(scope="module")
def oarsman_with(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Oarsman]]:
    """The command for an MPI of the set-up, by the name of its folder in .mpi; its supervisor is that of all tests."""
    folder = tmp_path_factory.mktemp("states")
    commands: dict[str, Oarsman] = {}

    def make(mpi: str) -> Oarsman:
        return commands.setdefault(mpi, Oarsman(folder / mpi, MPIS / mpi))

    yield make
    for command in commands.values():
        command("supervisor", "stop")


@pytest.fixture(scope="module")
def oarsman(oarsman_with: Callable[[str], Oarsman]) -> Oarsman:
    return oarsman_with("openmpi5")
