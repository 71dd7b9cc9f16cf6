"""Elections of real processes on a real API server, over lines that can be held up."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cluster.cluster import Cluster

from oarsman.engines.kube.client import load_access
from oarsman.engines.kube.lease import steady_clock

CANDIDATE = Path(__file__).with_name("candidate.py")
DURATION = 3.0  # as the candidates have it


class Candidate:
    """A process, and what it has said so far."""

    def __init__(self, api: Cluster, namespace: str, name: str, master: str = "") -> None:
        self.name = name
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, str(CANDIDATE), str(api.kubeconfig), namespace, name, master],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.strip())

    @property
    def beats(self) -> list[float]:
        return [float(line.partition(" ")[2]) for line in list(self.lines) if line.startswith("beat")]

    @property
    def leads(self) -> bool:
        """Or has led: it said so, and a first sign of life has followed."""
        return bool(self.beats)

    def said(self, word: str) -> bool:
        return any(line.startswith(word) for line in list(self.lines))

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(120)
        assert self._process.stdout is not None
        self._process.stdout.close()


class Line:
    """A way to the server that can be held up: what is under way stays there until it goes on."""

    def __init__(self, server: str) -> None:
        self._host, self._port = urlsplit(server).hostname, urlsplit(server).port
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._open.set()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.address = f"https://127.0.0.1:{self._call(self._listen())}"

    def hold(self) -> None:
        self._loop.call_soon_threadsafe(self._open.clear)

    def go_on(self) -> None:
        self._loop.call_soon_threadsafe(self._open.set)

    def close(self) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(120)
        self._loop.close()

    def _call(self, work: object) -> object:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)  # type: ignore[arg-type]

    async def _listen(self) -> int:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _end(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._copy(reader, far_writer))
                both.create_task(self._copy(far_reader, writer))
        except* OSError:
            pass
        finally:
            self._tasks.discard(task)
            for each in (writer, far_writer):
                each.close()

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            await self._open.wait()
            target.write(data)
            await target.drain()
        target.close()


@pytest.fixture
def stand(api: Cluster, api_namespace: str) -> Iterator[Callable[..., Candidate]]:
    candidates: list[Candidate] = []

    def stand(name: str, master: str = "") -> Candidate:
        candidates.append(Candidate(api, api_namespace, name, master))
        return candidates[-1]

    yield stand
    for each in candidates:
        each.kill()


@contextmanager
def a_line(api: Cluster) -> Iterator[Line]:
    line = Line(load_access(kubeconfig=api.kubeconfig).server)
    try:
        yield line
    finally:
        line.close()


def until(condition: Callable[[], bool], patience: float = 120.0) -> float:
    """When it came true."""
    deadline = steady_clock() + patience
    while not condition():
        assert steady_clock() < deadline, "waited in vain"
        time.sleep(0.01)
    return steady_clock()


def lease(api: Cluster, namespace: str) -> dict[str, object]:
    return dict(api.get("lease", "mpi-operator", namespace)["spec"])


def test_a_leader_that_ends_hands_over_at_once(
    api: Cluster, api_namespace: str, stand: Callable[..., Candidate]
) -> None:
    one = stand("one")
    until(lambda: one.leads)
    assert lease(api, api_namespace)["holderIdentity"] == "one"
    two = stand("two")
    time.sleep(DURATION + 1)  # two has had every chance
    assert not two.said("leads")
    one.terminate()
    until(lambda: one.said("stopped"))
    assert lease(api, api_namespace)["holderIdentity"] != "one", "it is given back, not left to run out"
    until(lambda: two.leads)
    assert one.beats[-1] < two.beats[0]
    found = lease(api, api_namespace)
    assert (found["holderIdentity"], found["leaseTransitions"], found["leaseDurationSeconds"]) == ("two", 1, 3)
    two.terminate()
    until(lambda: two.said("stopped"))
    assert lease(api, api_namespace)["holderIdentity"] == ""


def test_a_leader_that_was_killed_is_replaced_when_its_lease_is_over(stand: Callable[..., Candidate]) -> None:
    one = stand("one")
    until(lambda: one.leads)
    two = stand("two")
    time.sleep(1)
    one.kill()
    until(lambda: two.leads)
    assert two.beats[0] - one.beats[-1] > DURATION - 1


def test_a_leader_cut_off_steps_down_before_the_other_takes_over_and_its_late_requests_change_nothing(
    api: Cluster, api_namespace: str, stand: Callable[..., Candidate]
) -> None:
    with a_line(api) as line:
        one = stand("one", line.address)
        until(lambda: one.leads)
        two = stand("two")
        time.sleep(1)
        line.hold()
        until(lambda: two.leads)
        assert one.beats[-1] < two.beats[0]
        line.go_on()  # what `one` sent before and after it was cut off arrives now
        until(lambda: one.said("lost"))
        time.sleep(1)
        beats_after = [beat for beat in one.beats if beat > two.beats[0]]
        assert beats_after == []
        assert lease(api, api_namespace)["holderIdentity"] == "two"
        heard = two.beats[-1]
        until(lambda: two.beats[-1] > heard)


def test_of_five_that_come_and_go_never_two_lead(stand: Callable[..., Candidate]) -> None:
    candidates = [stand(f"c{number}") for number in range(5)]
    left = list(candidates)
    while left:
        until(lambda: any(each.leads for each in left))
        leader = next(each for each in left if each.leads)
        time.sleep(0.3)
        leader.kill() if len(left) % 2 else leader.terminate()
        left.remove(leader)
    terms = sorted((each.beats[0], each.beats[-1]) for each in candidates)
    assert len(terms) == 5
    assert all(earlier[1] < later[0] for earlier, later in pairwise(terms))


def test_what_the_server_keeps_can_be_read_by_others(
    api: Cluster, api_namespace: str, stand: Callable[..., Candidate]
) -> None:
    one = stand("one")
    until(lambda: one.leads)
    api.kubectl("label", "lease", "mpi-operator", "team=hpc", f"--namespace={api_namespace}")
    before = lease(api, api_namespace)["renewTime"]
    until(lambda: lease(api, api_namespace)["renewTime"] != before)
    found = api.get("lease", "mpi-operator", api_namespace)
    assert found["metadata"]["labels"] == {"team": "hpc"}
    assert len(found["spec"]["renewTime"]) == len("2026-01-01T00:00:00.000000Z")
    assert not one.said("lost")
