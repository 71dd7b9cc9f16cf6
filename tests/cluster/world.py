"""A world: namespaces of its own for the control plane or for a node, and the programs that run in them.

Whatever runs in a world dies with the world's first process, and so do its mounts and its network. That is the kernel's
promise, and the reason why nothing has to be tidied up inside.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster.places import HERE

PATIENCE = 180.0  # seconds; only ends what hangs, however busy the machine is
GOGC = "400"  # Go programs look for memory to free a quarter as often: a fifth less CPU, for some hundred MB


class World:
    def __init__(self, name: str, work: Path, *, network: bool, owner: int | None) -> None:
        """owner: the reading end of a pipe whose other end the owner holds; without it the world outlives everybody."""
        self.name = name
        self.work = work
        self.network = network
        self._owner = owner
        self.pid = 0
        work.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        network = ["--net", "--uts", "--ipc"] if self.network else []
        mode = "detached" if self._owner is None else "tied"
        self._unshare = subprocess.Popen(
            [
                "unshare",
                *user,
                *network,
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
                sys.executable,
                "-IS",
                str(HERE / "init.py"),
                mode,
            ],
            stdin=subprocess.DEVNULL if self._owner is None else self._owner,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._unshare.stdout
        assert self._unshare.stderr
        if self._unshare.stdout.readline() != b"ready\n":
            raise RuntimeError(f"no namespaces for {self.name}: {self._unshare.stderr.read().decode().strip()}")
        self.pid = only_child(self._unshare.pid)
        (self.work / "init").write_text(f"{self.pid} {started(self.pid)}\n")
        if self.network:
            self.sh(f"hostname {self.name}; ip link set lo up; mount --make-rshared /")

    def attach(self) -> None:
        """To be said instead of start() where somebody else has started it."""
        self.pid = int((self.work / "init").read_text().split()[0])

    def command(self, *words: str) -> list[str]:
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        network = ["--net", "--uts", "--ipc"] if self.network else []
        return ["nsenter", f"--target={self.pid}", *user, *network, "--mount", "--pid", "--", *words]

    def run(self, *words: str) -> str:
        done = subprocess.run(
            self.command(*words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{self.name}: {' '.join(words)}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def sh(self, script: str) -> str:
        return self.run("sh", "-euc", script)

    def kill(self) -> None:
        """As if the machine had lost its power."""
        if self.pid:
            end(self.pid)
            self._unshare.wait()
            for stream in (self._unshare.stdout, self._unshare.stderr):
                if stream:
                    stream.close()
            self.pid = 0


class Program:
    """A program in a world that may be killed and started again."""

    def __init__(
        self, world: World, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> None:
        self.world = world
        self.name = name
        self.command = [str(word) for word in command]
        self.log = world.work / f"{name}.log"
        # Go programs take the machine's proxies from their environment; nothing here is reached through one.
        self._environment = {**os.environ, "NO_PROXY": "*", "no_proxy": "*", **(environment or {})}
        self._environment.setdefault("GOGC", GOGC)  # who has said another one is short of memory
        self._enter: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._enter = subprocess.Popen(
                self.world.command(*self.command),
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self._enter is not None and self._enter.poll() is None

    @property
    def pid(self) -> int:
        assert self._enter, f"{self.name} was not started"
        return only_child(self._enter.pid)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends the signal and waits for the end."""
        if self.running:
            assert self._enter
            os.kill(self.pid, number)
            self._enter.wait(PATIENCE)

    def forget(self) -> None:
        """To be said when the world is gone."""
        if self._enter:
            self._enter.wait(PATIENCE)

    def check(self) -> None:
        if not self.running:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
            raise RuntimeError(f"{self.name} has ended:\n{tail}")


def only_child(pid: int) -> int:
    """nsenter and unshare wait for one child; what was asked of them runs in that one."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.001)
    raise TimeoutError(f"process {pid} started nothing")


def started(pid: int) -> str:
    """When a process began, in the kernel's ticks: with it a number names one process for ever. Empty if none is."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if words[0] in "ZX" else words[19]


def end(pid: int) -> None:
    """Kills a world's first process and waits until the kernel has ended everything in it."""
    birth = started(pid)
    if not birth:
        return
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while started(pid) == birth:
        if time.monotonic() > deadline:
            raise TimeoutError(f"process {pid} does not end")
        time.sleep(0.005)
