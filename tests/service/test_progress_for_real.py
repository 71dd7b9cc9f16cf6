"""A real job whose ranks go at different speeds, looked at from this process and through a real server."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from console.api.running import Served, served

from oarsman import Client
from oarsman.client.handle import JobHandle
from oarsman.service.models import RankProgress

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "state") as found:
        yield found


@pytest.fixture
def clients(server: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Client]]:
    """Both on the same jobs."""
    monkeypatch.setenv("OARSMAN_STATE", server.environment["OARSMAN_STATE"])
    monkeypatch.setenv("PATH", server.environment["PATH"])
    with server.client() as browser:
        secret = str(browser.post("/api/v1/tokens", json={}).json()["secret"])
    with Client() as here, Client(server.address, token=secret) as there:
        yield [here, there]


def seen(job: JobHandle, rank: int, text: str) -> None:
    """Returns once that rank has written that line."""
    assert any(line.text == text for line in job.logs(rank=rank, follow=True))


def ranks_of(job: JobHandle) -> Sequence[RankProgress]:
    """Once the status tells of all of them, which it does a moment after they wrote their first lines."""
    while "" in {rank.state for rank in job.progress().ranks}:
        time.sleep(0.05)
    return job.progress().ranks


def test_a_rank_that_is_stuck_is_named_until_it_goes_on(clients: list[Client], tmp_path: Path) -> None:
    go, end = tmp_path / "go", tmp_path / "end"
    until = "until [ -e {} ]; do sleep 0.1; done"
    script = f"""
        i=0
        while [ $i -lt 40 ]; do
            i=$((i + 1))
            echo "step $i loss: 0.$((100 - i))"
            if [ $OMPI_COMM_WORLD_RANK = 1 ] && [ $i = 5 ]; then {until.format(go)}; fi
        done
        {until.format(end)}
    """
    here, there = clients
    job = here.submit(["sh", "-c", script], name="uneven", workers=3)
    job.wait(until="running", timeout=180)
    try:
        seen(job, 0, "step 40 loss: 0.60")
        seen(job, 2, "step 40 loss: 0.60")
        seen(job, 1, "step 5 loss: 0.95")
        for handle in (job, there.job("uneven")):
            assert [(rank.rank, rank.state, rank.step, rank.behind) for rank in ranks_of(handle)] == [
                (0, "running", 40, ""),
                (1, "running", 5, "at step 5, the others at 40"),
                (2, "running", 40, ""),
            ]
        go.touch()
        seen(job, 1, "step 40 loss: 0.60")
        for handle in (job, there.job("uneven")):
            assert {(rank.step, rank.lines, rank.behind) for rank in handle.progress().ranks} == {(40, 40, "")}
    finally:
        end.touch()
    assert job.wait(timeout=180).state == "Succeeded"
    for handle in (job, there.job("uneven")):
        found = handle.progress()
        assert found.complete
        assert {(rank.state, rank.exit_code, rank.step) for rank in found.ranks} == {("exited", 0, 40)}
        loss, step = found.series
        assert (loss.name, loss.rank, step.name, step.rank) == ("loss", 0, "step", 0)
        assert [point.value for point in loss.points] == pytest.approx([(100 - n) / 100 for n in range(1, 41)])
        assert [point.step for point in loss.points] == [point.value for point in step.points] == list(range(1, 41))


def test_a_log_longer_than_a_page_is_read_from_its_first_to_its_last_line(clients: list[Client]) -> None:
    script = 'seq 1 25000 | sed "s/.*/step & of 25000/"'
    job = clients[0].submit(["sh", "-c", script], name="long", workers=1)
    job.wait(timeout=180)
    for client in clients:
        found = client.job("long").progress()
        (step,) = found.series
        assert (found.complete, found.ranks[0].lines, found.ranks[0].step) == (True, 25_000, 25_000)
        values = [point.value for point in step.points]
        assert (values[0], values[-1], len(values)) == (1, 25_000, 500)
        assert values == sorted(values)
