"""Environments from Python: the same in this process and through REST, with and without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from console.api.asking import SITE, Asking, InThisProcess, asking
from console.api.memory import MemoryJobs
from memory_environments import MemoryEnvironments

from oarsman import names
from oarsman.client import async_client
from oarsman.client.async_client import AsyncClient
from oarsman.client.client import Client
from oarsman.client.mpijob import MPIJob
from oarsman.client.remote import RemoteService
from oarsman.errors import ConflictError, NotFoundError, UsageError, UserError
from oarsman.service import JobService
from oarsman.service.models import Identity, Role


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_client, "_LOOK_EVERY", 0.01)


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Asking]:
    with asking(tmp_path) as found:
        yield found


@pytest.fixture
def known(ask: Asking) -> MemoryEnvironments:
    return ask.jobs.environments


def service(jobs: MemoryJobs) -> JobService:
    return JobService(jobs, Identity(name="ada", role=Role.USER))


@pytest.fixture(params=["local", "remote"])
def client(request: pytest.FixtureRequest, ask: Asking) -> Iterator[Client]:
    remote: Any = RemoteService(SITE.address, token=ask.tokens["ada"], transport=InThisProcess(ask))
    with Client(service=service(ask.jobs) if request.param == "local" else remote) as made:
        yield made


Work = Callable[[AsyncClient], Coroutine[Any, Any, None]]


@pytest.fixture(params=["local", "remote"])
def run(request: pytest.FixtureRequest, ask: Asking) -> Callable[[Work], None]:
    async def with_client(work: Work) -> None:
        remote: Any = RemoteService(SITE.address, token=ask.tokens["ada"], transport=InThisProcess(ask))
        async with AsyncClient(service=service(ask.jobs) if request.param == "local" else remote) as client:
            await work(client)

    return lambda work: asyncio.run(with_client(work))


def test_a_build_is_waited_for(client: Client, known: MemoryEnvironments) -> None:
    known.then = ("Ready", "")
    found = client.environments.build("torch", ["numpy", "scipy"], python="3.11", mpi="openmpi", timeout=30)
    assert (found.state, found.spec.requirements, found.spec.python) == ("Ready", "numpy\nscipy", "3.11")
    assert [one.spec.name for one in client.environments.list()] == ["torch"]


def test_a_build_that_fails_is_an_error_with_its_last_words(client: Client, known: MemoryEnvironments) -> None:
    known.then = ("Failed", "no matching distribution")
    with pytest.raises(UserError, match="torch could not be built: no matching distribution"):
        client.environments.build("torch", "nonsense", timeout=30)


def test_a_build_that_takes_too_long_goes_on_without_us(client: Client, known: MemoryEnvironments) -> None:
    with pytest.raises(TimeoutError, match="torch"):
        client.environments.build("torch", timeout=0)
    assert client.environments.get("torch").state == "Building"


def test_requirements_are_read_from_a_file(client: Client, known: MemoryEnvironments, tmp_path: Path) -> None:
    (tmp_path / "lock.txt").write_text("numpy==2.1.0\n")
    made = client.environments.build("torch", tmp_path / "lock.txt", wait=False)
    assert made.spec.requirements == "numpy==2.1.0\n"
    with pytest.raises(UserError, match=r"none\.txt cannot be read"):
        client.environments.build("torch", tmp_path / "none.txt")


def test_a_log_is_read_whole_and_a_used_one_is_kept(client: Client, known: MemoryEnvironments) -> None:
    client.environments.build("torch", wait=False)
    known.become("torch", "Ready", used_by=("default/pi",))
    known.logs["torch"] = "a line\n" * 5
    assert client.environments.log("torch") == "a line\n" * 5
    with pytest.raises(ConflictError):
        client.environments.delete("torch")
    known.become("torch", "Ready", used_by=())
    client.environments.delete("torch")
    with pytest.raises(NotFoundError):
        client.environments.get("torch")


@pytest.mark.parametrize("wrong", [{"name": "No Name"}, {"python": "2"}, {"mpi": "lam"}, {"colour": "red"}])
def test_what_is_wrong_is_said_before_anything_is_asked(client: Client, ask: Asking, wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        client.environments.build(**{"name": "torch", **wrong})
    assert caught.value.field == next(iter(wrong))
    assert ask.jobs.environments.records == {}


def test_the_same_with_an_event_loop(run: Callable[[Work], None], known: MemoryEnvironments) -> None:
    async def work(client: AsyncClient) -> None:
        known.then = ("Ready", "")
        found = await client.environments.build("torch", ["numpy"], timeout=30)
        assert (found.state, (await client.environments.get("torch")).state) == ("Ready", "Ready")
        known.logs["torch"] = "a line\n" * 5
        assert await client.environments.log("torch") == "a line\n" * 5
        assert [one.spec.name for one in await client.environments.list()] == ["torch"]
        await client.environments.delete("torch")
        with pytest.raises(NotFoundError):
            await client.environments.get("torch")

    run(work)


def test_a_job_names_its_environment_and_its_install_commands() -> None:
    job = MPIJob("pi", command=["python", "x.py"], environment="torch", install="make")
    said = job.to_dict()["metadata"]["annotations"]
    assert said == {names.ANNOTATION_ENVIRONMENT: "torch", names.ANNOTATION_INSTALL: "make"}
    assert job.validate() == []
    assert names.ANNOTATION_ENVIRONMENT not in job.changed(environment=None).to_dict()["metadata"]["annotations"]
    assert "not a name" in MPIJob("pi", command=["x"], environment="No Name").validate()[0].message


def test_a_client_takes_the_name_of_an_environment_too(client: Client, ask: Asking) -> None:
    client.submit(["python", "x.py"], name="pi", environment="torch")
    (submitted,) = ask.jobs.submitted
    assert ask.jobs.record("default/pi").job.annotation(names.ANNOTATION_ENVIRONMENT) == "torch"
    assert "torch" not in submitted["environment"]


def test_a_function_runs_with_the_python_of_its_environment() -> None:
    def hello() -> None:
        print("hello")

    job = MPIJob.from_function(hello, "hi", environment="torch")
    launcher = job.to_dict()["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert launcher["command"][3] == "python3"
