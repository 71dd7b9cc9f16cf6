"""Many who follow one log that grows: through the console, in browsers and over HTTP, or with `tail -F`."""

from __future__ import annotations

import asyncio
import json
import os
import selectors
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
from measure import Oarsman
from playwright.sync_api import Browser, Page
from serving import PATIENCE_SECONDS, Server, log_of, visitor

# It waits until everybody looks, writes at a steady pace, and says with every line when that was.
WRITER = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
begin, pace, count = time.monotonic(), float(sys.argv[2]), int(sys.argv[3])
for number in range(count):
    time.sleep(max(0.0, begin + number / pace - time.monotonic()))
    print(f"{time.time():.6f} line {number} of {count}", flush=True)
"""
MANIFEST = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {{name: {name}}}
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
            - {{name: launcher, image: benchmark, command: {command}}}
"""


@dataclass(slots=True)
class Talker:
    """A job that writes a log when it is told to."""

    name: str
    go: Path
    pace: float
    count: int

    @property
    def last(self) -> str:
        return f"line {self.count - 1} of {self.count}"


@dataclass(slots=True)
class Followed:
    """What it cost whoever handed the lines out, and how late they came."""

    processor_seconds: float = 0.0
    delays: list[float] = field(default_factory=list)  # of each line, at each reader
    shown: list[float] = field(default_factory=list)  # of the last line, in each browser

    @property
    def median(self) -> float:
        return statistics.median(self.delays)

    @property
    def most(self) -> float:
        return max(self.delays)


def talker(ours: Oarsman, name: str, pace: float, count: int) -> Talker:
    go = ours.folder / f"{name}.go"
    words = ["python3", "-c", WRITER, str(go), str(pace), str(count)]
    path = ours.folder / f"{name}.yaml"
    path.write_text(MANIFEST.format(name=name, command=json.dumps(words)))
    ours("submit", str(path))
    ours("wait", name, "--for", "running", "--timeout", "2m")
    return Talker(name, go, pace, count)


# -- through the console ------------------------------------------------------------------------------
def through_console(server: Server, browser: Browser, talk: Talker, *, browsers: int, others: int) -> Followed:
    """`browsers` are real pages in Chromium, each a context of its own; `others` speak HTTP and show nothing."""
    found = Followed()
    pages = [visitor(browser, server) for _ in range(browsers)]
    for page in pages:
        page.goto(f"{server.address}/jobs/default/{talk.name}?tab=Logs")
        page.get_by_role("log").wait_for()
        page.evaluate(WHEN_SHOWN, talk.last)
    readers = _Readers(server, talk, others, found)
    readers.start()
    before = server.processor_seconds
    talk.go.touch()
    readers.join()
    found.shown = [_shown(page) for page in pages]
    found.processor_seconds = server.processor_seconds - before
    for page in pages:
        page.context.close()
    return found


# Looks only at the last line, so that looking costs the page nothing.
WHEN_SHOWN = """(last) => {
  const look = () => {
    const line = document.querySelector("[role=log]").lastElementChild;
    if (line && line.textContent.includes(last)) window.shownAt = Date.now() / 1000;
    else setTimeout(look, 20);
  };
  look();
}"""


def _shown(page: Page) -> float:
    """How long after it was written the last line was on the screen."""
    at = float(page.wait_for_function("window.shownAt").json_value())
    said = page.evaluate("document.querySelector('[role=log]').lastElementChild.textContent")
    return at - float(said.partition(" line ")[0].split()[-1][-len("1234567890.123456") :])


class _Readers(threading.Thread):
    """An event loop of its own, so that they read while the browsers are waited for."""

    def __init__(self, server: Server, talk: Talker, count: int, found: Followed) -> None:
        super().__init__()
        self._server, self._talk, self._count, self._found = server, talk, count, found
        self._connected = threading.Semaphore(0)
        self._problem: BaseException | None = None

    def start(self) -> None:
        super().start()
        for _ in range(self._count):
            if not self._connected.acquire(timeout=PATIENCE_SECONDS):
                raise TimeoutError(f"not all readers were let in: {self._problem}")

    def run(self) -> None:
        try:
            asyncio.run(self._all())
        except BaseException as problem:
            self._problem = problem

    def join(self, timeout: float | None = None) -> None:
        super().join(timeout)
        if self._problem is not None:
            raise self._problem

    async def _all(self) -> None:
        cookies = dict(self._server.client.cookies)
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            base_url=self._server.address, cookies=cookies, timeout=PATIENCE_SECONDS, trust_env=False, limits=limits
        ) as client:
            await asyncio.gather(*(self._follow(client) for _ in range(self._count)))

    async def _follow(self, client: httpx.AsyncClient) -> None:
        path = f"/api/v1/jobs/default/{self._talk.name}/log"
        place = (await client.get(path)).json()["after"]
        async with client.stream("GET", f"{path}/stream", params={"after": place}) as response:
            self._connected.release()
            async for line in response.aiter_lines():
                if not line.startswith('data: {"lines"'):
                    continue
                now = time.time()
                texts = [one["text"] for one in json.loads(line[6:])["lines"]]
                self._found.delays += [now - float(text.split()[0]) for text in texts]
                if texts and texts[-1].endswith(self._talk.last):
                    return


# -- the rival ----------------------------------------------------------------------------------------
def with_tail(ours: Oarsman, talk: Talker, count: int) -> Followed:
    """As many `tail -F` of the same file, each with a pipe of its own that is read here."""
    path = log_of(ours, talk.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    found = Followed()
    tails = [subprocess.Popen(["tail", "-n", "0", "-F", path], stdout=subprocess.PIPE) for _ in range(count)]
    try:
        _until(lambda: all(_watches(tail.pid) for tail in tails))
        talk.go.touch()
        _read(tails, talk, found)
        found.processor_seconds = sum(sum(psutil.Process(tail.pid).cpu_times()[:2]) for tail in tails)
    finally:
        for tail in tails:
            tail.kill()
            tail.wait()
            assert tail.stdout is not None
            tail.stdout.close()
    return found


def _read(tails: list[subprocess.Popen[bytes]], talk: Talker, found: Followed) -> None:
    last = talk.last.encode()
    with selectors.DefaultSelector() as selector:
        rests = dict.fromkeys(range(len(tails)), b"")
        for number, tail in enumerate(tails):
            assert tail.stdout is not None
            selector.register(tail.stdout, selectors.EVENT_READ, number)
        while rests:
            for key, _ in selector.select(PATIENCE_SECONDS):
                *lines, rest = (rests[key.data] + os.read(key.fd, 1 << 16)).split(b"\n")
                now = time.time()
                found.delays += [now - float(line.split(b" ", 5)[4]) for line in lines]
                rests[key.data] = rest
                if lines and lines[-1].endswith(last):
                    selector.unregister(key.fileobj)
                    del rests[key.data]


def _watches(pid: int) -> bool:
    """Whether it has come as far as being told of changes."""
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it is still starting, and has closed this one since
            if "inotify" in str(file.readlink()):
                return True
    return False


def _until(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not met():
        if time.monotonic() > deadline:
            raise TimeoutError("tail does not follow")
        time.sleep(0.05)
