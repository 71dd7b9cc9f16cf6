"""However often pages are opened, the server holds what is open now."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.api.running import Served, stopped

from .conftest import LIGHT, Opened, oarsman

pytestmark = pytest.mark.mpi
PAGES = (
    *("/", "/jobs", "/create", "/sweeps", "/sweeps/new", "/hosts", "/environments", "/account", "/people", "/checks"),
    *("/docs", "/missing", "/jobs/default/pi"),
    *(f"/jobs/default/pi?tab={name}" for name in ("Summary", "Ranks", "Usage", "Metrics", "Events", "Runs", "YAML")),
)
ROUNDS = 4
LEFT_FOR_SECONDS = 20.0  # less than a page is kept for whose connection was lost
CLIENT = "nicegui.client.Client"
CONNECTIONS_SECONDS = 90.0  # engine.io drops one that was never completed when it has not answered for 45 s
FEW = Counter({"oarsman.store.jobs._Own": 8})  # one for each thread that has read the store; a page each were eighty


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    counting = str(Path(__file__).with_name("counting.py"))
    found = Served(tmp_path_factory.mktemp("counted") / "state", before=(sys.executable, counting))
    with stopped(found):
        yield found


def held(server: Served) -> Counter[str]:
    assert server.process.stdout is not None
    server.process.send_signal(signal.SIGUSR1)
    return Counter(json.loads(next(line for line in server.process.stdout if line.startswith("{"))))


def test_pages_that_were_left_leave_nothing_behind(server: Served, opened: Opened) -> None:
    oarsman(server, "run", "-n", "1", "--name", "pi", "--", "echo", "loss: 3.14")
    page = opened("/")

    def grown(rounds: int, before: Counter[str]) -> dict[str, int]:
        for path in PAGES * rounds:
            page.goto(server.address + path)
            page.wait_for_function("window.did_handshake")  # the server knows of its connection
        page.goto(server.address + LIGHT)
        left = time.monotonic()
        while True:
            found = {kind: count for kind, count in (held(server) - before - FEW).items() if count >= ROUNDS}
            waited = time.monotonic() - left
            assert CLIENT not in found or waited < LEFT_FOR_SECONDS, found
            if (CLIENT not in found and (not before or not found)) or waited > CONNECTIONS_SECONDS:
                return found
            time.sleep(0.1)

    before = Counter(grown(1, Counter()))
    assert grown(ROUNDS, before) == {}
