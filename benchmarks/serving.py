"""A console to measure: a state with many jobs, the server in front of it, and browsers that came in by its link."""

from __future__ import annotations

import contextlib
import copy
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psutil
from measure import MANIFEST, Oarsman, environment
from playwright.sync_api import Browser, Page, sync_playwright

from oarsman import names
from oarsman.engines.hosts.core.log_lines import stamp
from oarsman.job.state import Attempt, Condition, Status
from oarsman.manifest import documents
from oarsman.status.codec import to_wire
from oarsman.store.jobs import JobStore
from oarsman.store.logs import merged_path
from oarsman.store.paths import Paths

PATIENCE_SECONDS = 120.0
# What a browser does by itself would only be refused here; a root user has no sandbox.
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
    "--disable-component-update",
)
BARE = """
import uvicorn
from fastapi import FastAPI
from nicegui import ui

@ui.page("/")
def page():
    ui.label("nothing else")

app = FastAPI()
ui.run_with(app)
uvicorn.run(app, port={port}, log_level="warning")
"""


# -- the state ----------------------------------------------------------------------------------------
def places_of(ours: Oarsman) -> Paths:
    return Paths(Path(ours.environment["OARSMAN_STATE"]))


def fill(ours: Oarsman, count: int) -> None:
    """Jobs that have succeeded, each a second after the one before, written as a supervisor would."""
    paths = places_of(ours)
    paths.make()
    store = JobStore(paths.database)
    text = MANIFEST.format(name="job", slots=4, workers=4, command='["mpirun", "-n", "16", "python3", "train.py"]')
    (shape,) = documents(text)
    first = datetime.now(UTC) - timedelta(seconds=count + 60)
    for number in range(count):
        name, created = job_name(number), first + timedelta(seconds=number)
        document = copy.deepcopy(shape)
        document["metadata"]["name"] = name
        uid = str(uuid.uuid4())
        store.add(
            uid=uid,
            namespace=names.DEFAULT_NAMESPACE,
            name=name,
            engine="local",
            owner="somebody",
            folder="/",
            document=document,
            environment={},
            now=created,
        )
        store.write_status(uid, to_wire(_succeeded(name, created)), finished=True, now=created)
    store.close()


def job_name(number: int) -> str:
    return f"job-{number:05}"


def _succeeded(name: str, created: datetime) -> Status:
    end = created + timedelta(seconds=40)
    conditions = tuple(
        Condition(
            type=kind,
            status=kind != names.RUNNING,
            reason=f"MPIJob{kind}",
            message=f"{name}: {kind}",
            last_update_time=end,
            since=end,
        )
        for kind in (names.CREATED, names.RUNNING, names.SUCCEEDED)
    )
    steps = ("submitted", "admitted", "hostsUp", "launched", "firstOutput", "ended")
    return Status(
        conditions=conditions,
        start_time=created,
        completion_time=end,
        attempts=(Attempt(number=1, started=created, ended=end, outcome="Succeeded", workers=4),),
        timeline=dict.fromkeys(steps, end),
        placement={rank: names.worker_name(name, rank // 4) for rank in range(16)},
    )


def log_of(ours: Oarsman, name: str) -> Path:
    """The merged log of a stored job."""
    paths = places_of(ours)
    store = JobStore(paths.database)
    path = merged_path(paths.job(store.get(f"{names.DEFAULT_NAMESPACE}/{name}").uid), 1)
    store.close()
    return path


def write_log(path: Path, size: int, last: str) -> None:
    """Lines as ranks write them, `size` bytes of them, and one more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    heads = [f"{stamp(time.time())} {rank} job-worker-{rank // 4} out" for rank in range(16)]
    block = "".join(f"{heads[n % 16]} step {n} loss 0.{n:06} images/sec 1234.5\n" for n in range(16_000)).encode()
    with open(path, "wb") as file:
        while (missing := size - file.tell()) > 0:
            file.write(block if missing >= len(block) else block[: block.find(b"\n", missing - 1) + 1])
        file.write(f"{heads[0]} {last}\n".encode())


# -- the server ---------------------------------------------------------------------------------------
class Server:
    """`oarsman serve` on a state, and a client that opened its link."""

    def __init__(self, ours: Oarsman) -> None:
        self._started = time.perf_counter()
        self.running = subprocess.Popen(
            ["oarsman", "serve", "--port", "0"],
            env=ours.environment,
            cwd=ours.folder,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.address, self._link = self._said(), self._said()
        self.process = psutil.Process(self.running.pid)
        self.client = httpx.Client(base_url=self.address, timeout=PATIENCE_SECONDS, trust_env=False)
        self.client.get(self._link)

    def _said(self) -> str:
        assert self.running.stdout is not None
        line = self.running.stdout.readline()
        found = re.search(r"http://\S+$", line.strip())
        if found is None:
            sys.exit(f"oarsman serve did not start: {line}")
        return found[0]

    def knows(self, jobs: int) -> float:
        """Seconds from its start until it lists that many jobs."""
        while self.get("/jobs", limit=1)["total"] < jobs:
            pass  # each question waits for an answer
        return time.perf_counter() - self._started

    def get(self, path: str, **asked: str | int) -> dict[str, object]:
        answer = self.client.get(f"/api/v1{path}", params=asked)
        answer.raise_for_status()
        found: dict[str, object] = answer.json()
        return found

    @property
    def memory(self) -> int:
        return int(self.process.memory_info().rss)

    @property
    def processor_seconds(self) -> float:
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def end(self) -> None:
        self.client.close()
        self.running.send_signal(signal.SIGINT)
        try:
            self.running.wait(30)
        except subprocess.TimeoutExpired:
            self.running.kill()
            self.running.wait()
        assert self.running.stdout is not None
        self.running.stdout.close()


@contextlib.contextmanager
def serving(ours: Oarsman) -> Iterator[Server]:
    server = Server(ours)
    try:
        yield server
    finally:
        server.end()


def bare_memory() -> int:
    """Of a server with uvicorn and NiceGUI and one page with one label, after the page was asked for."""
    with httpx.Client(trust_env=False, timeout=PATIENCE_SECONDS) as client:
        port = _free_port()
        process = subprocess.Popen([sys.executable, "-c", BARE.format(port=port)], env=environment())
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not _answers(client, f"http://127.0.0.1:{port}/"):
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit("the bare server did not start")
                time.sleep(0.1)
            return int(psutil.Process(process.pid).memory_info().rss)
        finally:
            process.kill()
            process.wait()


def _answers(client: httpx.Client, address: str) -> bool:
    try:
        return client.get(address).is_success
    except httpx.TransportError:
        return False


def _free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


# -- the browser --------------------------------------------------------------------------------------
@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
    if found is None:
        sys.exit("there is no chromium on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(QUIET))
        yield browser
        browser.close()


def visitor(browser: Browser, server: Server) -> Page:
    """A browser of its own, as far as the server can tell, that is let in."""
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 720})
    for cookie in server.client.cookies.jar:
        context.add_cookies([{"name": cookie.name, "value": cookie.value or "", "url": server.address}])
    page = context.new_page()
    page.set_default_timeout(PATIENCE_SECONDS * 1000)
    return page
