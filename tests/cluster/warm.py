"""The command without its start: a process that has imported all of it forks for each one that is asked for.

Nine tenths of what a short command takes is imports. What runs in the fork is what `python -m oarsman.cli` runs, with
its own environment, folder and output. One that is sent signals is started as usual.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from cluster.places import HERE

LONGEST = 1 << 20  # bytes of a request


class Warm:
    """Any number of commands at a time."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="oarsman-warm-")
        self._place = f"{self._folder.name}/socket"
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening.bind(self._place)
        listening.listen()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OARSMAN_", "KUBE"))}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cluster.warm", str(listening.fileno())],
            env={**kept, "PYTHONPATH": str(HERE.parent)},
            stdin=subprocess.PIPE,  # at whose end it ends, however we do
            stdout=subprocess.DEVNULL,
            pass_fds=[listening.fileno()],
        )
        listening.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
        self._folder.cleanup()

    def says(
        self, words: Sequence[str], environment: Mapping[str, str], folder: Path, patience: float
    ) -> subprocess.CompletedProcess[str]:
        asked = json.dumps({"words": list(words), "environment": dict(environment), "folder": str(folder)}).encode()
        with (
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as err,
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line,
        ):
            line.settimeout(patience)
            line.connect(self._place)
            socket.send_fds(line, [asked], [out.fileno(), err.fileno()])
            code = line.recv(64)
            if not code:
                raise RuntimeError(f"nobody answers who could start {words}")
            for file in (out, err):
                file.seek(0)
            return subprocess.CompletedProcess(list(words), int(code), out.read(), err.read())


def serve(listening: socket.socket) -> None:
    """For each that asks there is a process that waits for the command's end, or for whoever asked to lose patience."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those
    while True:
        ready, _, _ = select.select([listening, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        line, _ = listening.accept()
        if os.fork():
            line.close()
            continue
        listening.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        asked, files, _, _ = socket.recv_fds(line, LONGEST, 2)
        if child := os.fork():
            _tell_end(line, child)
        line.close()
        _become(json.loads(asked), files)
        return


def _tell_end(line: socket.socket, child: int) -> NoReturn:
    threading.Thread(target=_end_with, args=(line, child), daemon=True).start()
    line.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
    os._exit(0)


def _end_with(line: socket.socket, child: int) -> None:
    if not line.recv(1):
        os.kill(child, signal.SIGKILL)


def _become(asked: Mapping[str, object], files: Sequence[int]) -> None:
    from oarsman.cli.__main__ import main

    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate((nothing, *files)):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(asked["environment"])  # type: ignore[call-overload]
    os.chdir(str(asked["folder"]))
    sys.argv = ["oarsman", *asked["words"]]  # type: ignore[misc]
    main()


def _import_all() -> None:

    for name in ("oarsman.cli", "oarsman.backends.kube", "oarsman.engines.kube.client"):
        package = importlib.import_module(name)
        for found in pkgutil.iter_modules(package.__path__, f"{name}."):
            importlib.import_module(found.name)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as ours:
        _import_all()
        gc.freeze()  # forks leave the memory that they share as it is
        serve(ours)
