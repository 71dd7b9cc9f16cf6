"""Real MPI jobs on this machine: through the service in this process, and through a real server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from console.api.running import OARSMAN, ROOT, Served, served

from oarsman import AsyncClient, Client, JobFailed, MPIJob, OarsmanError
from oarsman.errors import ConflictError, ManifestError, NotFoundError

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]


def greet(word: str) -> None:
    import os

    print(word, os.environ["OMPI_COMM_WORLD_RANK"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("sdk") / "state") as found:
        yield found


@pytest.fixture(scope="module")
def token(server: Served) -> str:
    with server.client() as browser:
        made = browser.post("/api/v1/tokens", json={"note": "tests"})
        assert made.status_code == 201, made.text
        return str(made.json()["secret"])


@pytest.fixture(params=["local", "remote"])
def client(
    request: pytest.FixtureRequest, server: Served, token: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    """Both on the same jobs: the server's own state, looked at from this process or through REST."""
    share_state(server, monkeypatch)
    with Client() if request.param == "local" else Client(server.address, token=token) as made:
        yield made
        delete_every_job(made)


def share_state(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OARSMAN_STATE", server.environment["OARSMAN_STATE"])
    monkeypatch.setenv("PATH", server.environment["PATH"])


def delete_every_job(client: Client) -> None:
    """The state is that of every test here, in whatever order, and some ask for all the jobs there are."""
    for job in client.jobs():
        job.stop_and_wait()
        job.delete()
        job.wait(until="deleted")


def test_a_function_runs_on_every_rank_and_its_lines_come_back(client: Client) -> None:
    job = client.run(MPIJob.from_function(greet, "greet", args=["hello"], workers=2), progress=False)
    assert job.state == "Succeeded"
    said = sorted(line.text for line in job.logs() if line.rank is not None)  # mpirun may have remarks of its own
    assert said == ["hello 0", "hello 1"]
    assert [line.text for line in job.logs(rank=1)] == ["hello 1"]
    assert [line.text for line in job.logs(search="hello 0")] == ["hello 0"]
    assert {event.reason for event in job.events()} >= {"MPIJobCreated", "MPIJobSucceeded"}
    assert [found.name for found in client.jobs(states="Succeeded")] == ["greet"]
    assert job.details.timeline


def test_a_failing_rank_is_named_and_its_clone_succeeds(client: Client) -> None:
    with pytest.raises(
        JobFailed, match=r"bad failed: rank \d on bad-worker-\d exited with code 3: no such file"
    ) as caught:
        client.run(["sh", "-c", "echo no such file >&2; exit 3"], name="bad", progress=False)
    assert caught.value.exit_status == 3
    fixed = client.job("bad").clone("good", command=["true"])
    assert fixed.wait().state == "Succeeded"
    again = client.job("bad").rerun().wait(check=False)
    assert again.state == "Failed"
    earlier = again.runs()[1]
    assert (earlier.run, earlier.state) == (1, "Failed")
    for run in (None, 1):
        assert "no such file" in {line.text for line in again.logs(stream="err", run=run)}
    assert {event.reason for event in again.events(run=1)} >= {"MPIJobCreated", "MPIJobFailed"}


def test_a_running_job_is_followed_stopped_and_waited_for(client: Client) -> None:
    job = client.submit(["sh", "-c", "echo begun; sleep 600"], name="slow", workers=1)
    lines = job.logs(rank=0, follow=True)
    assert next(lines).text == "begun"
    with pytest.raises(TimeoutError):
        job.wait(timeout=0.05)
    assert job.wait(until="running", timeout=180).state == "Running"
    assert [line.text for line in job.logs(rank=0)] == ["begun"]
    with pytest.raises(ConflictError):
        client.submit(["true"], name="slow")
    job.stop()
    assert list(lines) == []
    with pytest.raises(JobFailed, match="slow stopped: stopped by the user"):
        job.wait(timeout=180)


def test_mistakes_are_the_same_both_ways(client: Client) -> None:
    with pytest.raises(NotFoundError):
        client.job("none")
    with pytest.raises(ManifestError) as caught:
        client.submit(
            "kind: MPIJob\napiVersion: kubeflow.org/v2beta1\nmetadata: {name: x}\nspec: {slotsPerWorker: 0}\n"
        )
    assert "spec.slotsPerWorker" in {problem.field for problem in caught.value.problems}
    assert client.preview(["true"], workers=2, slots=2).ranks == 4
    assert client.hosts()[0].state == "ready"
    assert client.templates()
    text, _ = client.convert(["true"], "v1")
    assert "kubeflow.org/v1\n" in text


def test_a_token_that_is_not_good_is_refused(server: Served) -> None:
    with Client(server.address, token="oar_wrong") as stranger, pytest.raises(OarsmanError) as caught:
        stranger.info()
    assert caught.value.code in ("unauthenticated", "access")


def test_a_log_goes_on_where_it_was_when_its_server_was_killed_and_came_back(tmp_path: Path) -> None:
    """The same port, the same state, another process: no line is missing, none comes twice."""
    with served(tmp_path / "state") as first:
        with first.client() as browser:
            secret = browser.post("/api/v1/tokens", json={}).json()["secret"]
        port = first.address.rpartition(":")[2]
        flag = tmp_path / "go"
        say = "for i in 1 2 3; do echo {}$i; done"
        script = f"{say.format('a')}; until [ -e {flag} ]; do sleep 0.1; done; {say.format('b')}"
        with Client(first.address, token=secret) as client:
            lines = client.submit(["sh", "-c", script], name="long", workers=1).logs(rank=0, follow=True)
            found = [next(lines).text for _ in range(3)]
            first.process.kill()
            first.process.wait()
            environment = {**first.environment}
            again = subprocess.Popen(
                [OARSMAN, "serve", "--port", port],
                env=environment,
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                flag.touch()
                found += [line.text for line in lines]
            finally:
                again.send_signal(signal.SIGINT)
                again.wait(180)
    assert found == ["a1", "a2", "a3", "b1", "b2", "b3"]


def test_an_interrupted_program_leaves_nothing_running(tmp_path: Path) -> None:
    program = (
        'from oarsman import Client\nClient().run(["sh", "-c", "echo begun; sleep 600"], name="slow", workers=1)\n'
    )
    path = os.pathsep.join([str(ROOT / ".venv" / "bin"), os.environ["PATH"]])
    environment = {**os.environ, "OARSMAN_STATE": str(tmp_path / "state"), "PATH": path, "PYTHONUNBUFFERED": "1"}
    started = subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert started.stderr is not None
        for line in started.stderr:
            if line == "slow: running\n":
                break
        started.send_signal(signal.SIGINT)
        said = started.stderr.read()
        started.wait(180)
        assert "KeyboardInterrupt" in said
        listed = subprocess.run(
            [OARSMAN, "list"], env=environment, capture_output=True, text=True, check=True, timeout=180
        )
        assert "Stopped" in listed.stdout
    finally:
        if started.poll() is None:
            started.kill()
            started.wait()
        if started.stderr is not None:
            started.stderr.close()
        subprocess.run([OARSMAN, "supervisor", "stop"], env=environment, check=True, capture_output=True, timeout=180)


def test_two_jobs_run_at_once_from_one_event_loop(server: Served, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    share_state(server, monkeypatch)

    async def story() -> list[str]:
        async with AsyncClient() as here, AsyncClient(server.address, token=token) as there:
            jobs = await asyncio.gather(
                here.run(["true"], name="here", workers=1, progress=False),
                there.run(["true"], name="there", workers=1, progress=False),
            )
            return [job.state for job in jobs]

    try:
        assert asyncio.run(story()) == ["Succeeded", "Succeeded"]
    finally:
        with Client() as here:
            delete_every_job(here)
    assert not [t for t in threading.enumerate() if t.name == "oarsman-pump" and not t.daemon]
