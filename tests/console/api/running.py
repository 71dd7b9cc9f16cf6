"""`oarsman serve` as a process of its own, with a state of its own, and a client that came in by the link."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import in_process

ROOT = Path(__file__).resolve().parents[3]
OARSMAN = str(ROOT / ".venv" / "bin" / "oarsman")


class Served:
    def __init__(
        self,
        state: Path,
        *options: str,
        before: Sequence[str] = (),
        folder: Path | None = None,
        only: Mapping[str, str] | None = None,
        **environment: str,
    ) -> None:
        """`before`: what stands before the command. `only`: the variables that it has."""
        path = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ["PATH"]])
        usual = {**os.environ, "OARSMAN_STATE": str(state), "PATH": path, "LANG": "C.UTF-8"}
        self.environment = {**(usual if only is None else only), **environment}
        self.process = subprocess.Popen(
            [*before, OARSMAN, "serve", "--port", "0", *options],
            env=self.environment,
            cwd=folder or state.parent,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self.process.stdout is not None
        self.address = _last_word(self.process.stdout.readline(), r"http://\S+$")
        self.link = _last_word(self.process.stdout.readline(), r"http://\S+$")

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """Somebody who opened the link in a browser."""
        headers = {"Origin": self.address, "X-Oarsman": "1"}
        with httpx.Client(base_url=self.address, timeout=60, trust_env=False, headers=headers) as client:
            assert client.get(self.link).status_code == 303
            yield client

    def end(self, number: int = signal.SIGINT) -> str:
        """What it said after the first two lines."""
        self.process.send_signal(number)
        assert self.process.stdout is not None
        said = self.process.stdout.read()
        self.process.wait(120)
        return said


def _last_word(line: str, pattern: str) -> str:
    found = re.search(pattern, line.strip())
    assert found is not None, line
    return found[0]


@contextmanager
def served(state: Path, *options: str, **environment: str) -> Iterator[Served]:
    with stopped(Served(state, *options, **environment)) as server:
        yield server


@contextmanager
def stopped(server: Served) -> Iterator[Served]:
    """In the end, with its jobs and their supervisor."""
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        if server.process.stdout is not None:
            server.process.stdout.close()
        for words in (("delete", "--all", "--yes", "--wait"), ("supervisor", "stop")):  # jobs outlive their supervisor
            in_process.oarsman(server.environment, Path(server.environment["OARSMAN_STATE"]).parent, *words)


def events(response: httpx.Response) -> Iterator[tuple[str, str, str]]:
    """(kind, id, data) of each server-sent event."""
    kind = id = ""
    data: list[str] = []
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if not line:
            if data:
                yield kind or "message", id, "\n".join(data)
            kind, data = "", []
        elif name == "event":
            kind = value
        elif name == "id":
            id = value
        elif name == "data":
            data.append(value)
