"""What the benchmarks share: a command with a state of its own, a stopwatch, and one form for results."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent  # the project's environment: oarsman, mpirun and python3 of one make

MANIFEST = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: {name}
spec:
  slotsPerWorker: {slots}
  runPolicy:
    backoffLimit: 0
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
            - name: launcher
              image: benchmark
              command: {command}
    Worker:
      replicas: {workers}
      template:
        spec:
          containers:
            - name: worker
              image: benchmark
              resources: {{requests: {{cpu: 1}}}} # so that the queue has something to count
"""


def environment(**more: str) -> dict[str, str]:
    """The caller's, with the project's programs first, and Open MPI free to run as any user."""
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    # Compiled files are kept, as they are wherever Python is not told otherwise.
    base = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**base, "PATH": path, "LANG": "C.UTF-8", "NO_COLOR": "1", **root, **more}


class Oarsman:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = environment(OARSMAN_STATE=str(folder / "state"))

    def __call__(self, *words: str, stdout: Any = subprocess.PIPE) -> str:
        done = subprocess.run(
            ["oarsman", *words],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"oarsman {' '.join(words)} ended with {done.returncode}:\n{done.stdout or ''}{done.stderr}")
        return done.stdout or ""

    def quietly(self, *words: str) -> str:
        """What it printed, whatever became of it: for clearing away."""
        return subprocess.run(
            ["oarsman", *words], cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False
        ).stdout

    def manifest(self, *names: str, command: Sequence[str], workers: int = 1, slots: int = 2) -> str:
        """The path of a file with one job per name."""
        jobs = (MANIFEST.format(name=n, command=json.dumps(command), workers=workers, slots=slots) for n in names)
        path = self.folder / f"{names[0]}.yaml"
        path.write_text("---\n".join(jobs))
        return str(path)


@contextmanager
def oarsman() -> Iterator[Oarsman]:
    """A command whose jobs, logs and supervisor are gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="oars-bench-"))
    command = Oarsman(folder)
    try:
        yield command
    finally:
        going = command.quietly("list", "--state", "Running", "-o", "name").split()  # those of a benchmark that broke
        if going:
            command.quietly("delete", "--wait", *going)
        command.quietly("supervisor", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def bare(*words: str, stdout: Any = subprocess.DEVNULL) -> None:
    subprocess.run(words, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, stdout=stdout, check=True)


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def in_turn(rounds: int, *actions: Callable[[], object]) -> list[float]:
    """The median seconds of each action, taken in turn, so that a busy moment hits all of them."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for mine, action in zip(times, actions, strict=True):
            mine.append(seconds(action))
    return [statistics.median(mine) for mine in times]


def most_memory(process: psutil.Process) -> int:
    """The largest resident size so far; where the system does not keep it, the present one."""
    try:
        with open(f"/proc/{process.pid}/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))
    except OSError:
        return int(process.memory_info().rss)


def report(claim: str, ours: str, rival: str, ratio: float, *notes: str) -> None:
    print(f"{claim}\n  ours   {ours}\n  rival  {rival}\n  ratio  {ratio:.2f}")
    for note in notes:
        print(f"  note   {note}")
