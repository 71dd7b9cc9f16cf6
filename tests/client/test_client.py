"""One suite for both ways: whatever a Client can do, it does alike in this process and through REST."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from service.memory_backend import DOCUMENT, MANIFEST, NOON, MemoryService
from waiting import waiting

import oarsman
from oarsman.client.client import Client
from oarsman.client.handle import JobHandle
from oarsman.client.mpijob import MPIJob
from oarsman.client.remote import RemoteService
from oarsman.errors import (
    ConflictError,
    JobFailed,
    ManifestError,
    NotFoundError,
    UnsupportedError,
    UsageError,
    UserError,
)
from oarsman.service.models import CauseView, Step

from .rest import Rest


@pytest.fixture
def service() -> MemoryService:
    return MemoryService()


@pytest.fixture(params=["local", "remote"])
def client(request: pytest.FixtureRequest, service: MemoryService) -> Iterator[Client]:
    answering: Any = service
    if request.param == "remote":
        answering = RemoteService("http://127.0.0.1:1", token="oar_x", transport=Rest(service))
    with Client(service=answering) as made:
        yield made


def later(work: Callable[[], None]) -> threading.Thread:
    """Do it in another thread, at once; whoever waits for its outcome waits for a condition."""
    thread = threading.Thread(target=work)
    thread.start()
    return thread


# -- submitting -------------------------------------------------------------------------------------
def test_a_manifest_is_sent_as_it_was_written(client: Client, service: MemoryService) -> None:
    job = client.submit(MANIFEST)
    assert (job.key, job.state) == ("default/pi", "Pending")
    assert service.created[0].manifest == MANIFEST


@pytest.mark.parametrize("as_path", [str, Path])
def test_a_manifest_in_a_file_is_read(client: Client, tmp_path: Path, as_path: Callable[[Path], Any]) -> None:
    (tmp_path / "pi.yaml").write_text(MANIFEST)
    assert client.submit(as_path(tmp_path / "pi.yaml")).name == "pi"


def test_a_file_that_is_not_there_is_named(client: Client, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.yaml cannot be read"):
        client.submit(tmp_path / "none.yaml")


@pytest.mark.parametrize("command", [["python", "train.py"], "python train.py", ("python", "train.py")])
def test_a_command_becomes_a_job_with_the_shape_asked_for(client: Client, service: MemoryService, command: Any) -> None:
    job = client.submit(command, workers=3, slots=2, env={"SEED": 7})
    assert job.name.startswith("train-")
    assert job.summary.ranks == 6
    document = service.created[0].document or {}
    launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert launcher["command"] == ["mpirun", "-n", "6", "python", "train.py"]
    assert launcher["env"] == [{"name": "SEED", "value": "7"}]


def test_a_document_and_a_builder_are_jobs_too(client: Client) -> None:
    assert client.submit(DOCUMENT).name == "pi"
    assert client.submit(MPIJob("other", command=["true"])).name == "other"


def test_changes_apply_to_a_manifest_as_well(client: Client) -> None:
    assert client.submit(MANIFEST, name="pi-4", workers=4).summary.workers == 4


def test_an_empty_command_is_refused_before_anything_is_sent(client: Client, service: MemoryService) -> None:
    with pytest.raises(UsageError, match="nothing to run"):
        client.submit([])
    assert service.created == []


def test_every_problem_of_a_manifest_comes_back_with_its_place(client: Client) -> None:
    broken = MANIFEST.replace("replicas: 2", "replicas: none").replace("slotsPerWorker: 1", "slotsPerWorker: 0")
    with pytest.raises(ManifestError) as caught:
        client.submit(broken)
    assert {problem.field for problem in caught.value.problems} == {
        "spec.slotsPerWorker",
        "spec.mpiReplicaSpecs.Worker.replicas",
    }
    assert all(problem.line for problem in caught.value.problems)


def test_a_name_that_is_taken_is_a_conflict_with_field_and_hint(client: Client) -> None:
    client.submit(MANIFEST)
    with pytest.raises(ConflictError, match="already") as caught:
        client.submit(MANIFEST)
    assert (caught.value.field, caught.value.hint) == ("metadata.name", "another name")


def test_the_namespace_of_a_client_is_that_of_jobs_without_one(service: MemoryService) -> None:
    with Client(service=service, namespace="lab") as client:
        assert client.submit(MANIFEST).key == "lab/pi"
        assert client.job("pi").key == "lab/pi"


def test_what_a_job_inherits_can_be_said(client: Client, service: MemoryService) -> None:
    client.submit(MANIFEST, environment={"A": "1"}, folder="/srv", replace=True)
    wanted = service.created[0]
    assert (wanted.environment, wanted.folder, wanted.replace) == ({"A": "1"}, "/srv", True)


def test_a_server_is_not_sent_this_machines_variables(client: Client, service: MemoryService) -> None:
    client.submit(MANIFEST)
    assert (service.created[0].environment, service.created[0].folder) == ({}, None)


# -- running and waiting ----------------------------------------------------------------------------
def test_run_returns_when_the_job_has_succeeded(client: Client, service: MemoryService) -> None:
    states: list[str] = []
    handle = client.run(MANIFEST, wait=False)
    service.become(handle.key, "Running", timeline=[Step(name="launched", time=NOON)])
    thread = later(lambda: service.become(handle.key, "Succeeded"))
    handle.wait(seeing=lambda job: states.append(job.summary.state))
    thread.join()
    assert handle.finished
    assert states[-1] == "Succeeded"


def test_a_failed_job_raises_its_cause_in_one_line(client: Client, service: MemoryService) -> None:
    key = service.add("pi")
    cause = CauseView(
        summary="exited with code 3: no such file",
        rank=1,
        host="pi-worker-0",
        exit_code=3,
        last_lines=["no such file"],
        hint="look at the path",
    )
    service.become(key, "Failed", cause=cause)
    with pytest.raises(JobFailed) as caught:
        client.job("pi").wait()
    failed = caught.value
    assert str(failed) == "pi failed: rank 1 on pi-worker-0: exited with code 3: no such file"
    assert (failed.rank, failed.host, failed.exit_status, failed.last_lines) == (
        1,
        "pi-worker-0",
        3,
        ("no such file",),
    )
    assert failed.hint == "look at the path"


def test_a_cause_that_names_rank_and_host_is_not_told_twice(client: Client, service: MemoryService) -> None:
    key = service.add("pi")
    service.become(key, "Failed", cause=CauseView(summary="rank 1 on w0 was killed", rank=1, host="w0"))
    with pytest.raises(JobFailed, match=r"^pi failed: rank 1 on w0 was killed$"):
        client.job("pi").wait()


def test_a_failed_job_raises_nothing_if_not_asked_to(client: Client, service: MemoryService) -> None:
    service.add("pi", "Failed")
    assert client.job("pi").wait(check=False).state == "Failed"
    assert client.job("pi").wait(until="failed").state == "Failed"


def test_a_wait_has_a_time_limit_and_can_be_taken_up_again(client: Client, service: MemoryService) -> None:
    key = service.add("pi", "Running")
    job = client.job("pi")
    for _ in range(3):
        with pytest.raises(TimeoutError, match="default/pi is Running after"):
            job.wait(timeout=0.01)
    service.become(key, "Succeeded")
    assert job.wait(timeout=60).state == "Succeeded"


@pytest.mark.parametrize(
    ("wish", "state"), [("running", "Running"), ("suspended", "Suspended"), (lambda job: job.workers == 2, "Pending")]
)
def test_a_job_is_waited_for_until_it_is_as_wished(
    client: Client, service: MemoryService, wish: Any, state: str
) -> None:
    service.add("pi", state)
    assert client.job("pi").wait(until=wish).state == state


def test_a_job_that_ended_otherwise_cannot_become_as_wished(client: Client, service: MemoryService) -> None:
    service.add("pi", "Succeeded")
    with pytest.raises(ConflictError, match="cannot become suspended: it is Succeeded"):
        client.job("pi").wait(until="suspended")


def test_a_wish_that_is_no_wish_is_refused(client: Client, service: MemoryService) -> None:
    service.add("pi")
    with pytest.raises(UsageError, match="until 'done'"):
        client.job("pi").wait(until="done")  # type: ignore[arg-type]


def test_a_job_deleted_meanwhile_is_said_to_be_gone(client: Client, service: MemoryService) -> None:
    key = service.add("pi", "Running")
    job = client.job("pi")
    seen = threading.Event()

    def delete() -> None:
        seen.wait()
        service.vanish(key)

    thread = later(delete)
    with pytest.raises(NotFoundError, match="default/pi was deleted"):
        job.wait(seeing=lambda _: seen.set())
    thread.join()
    assert job.wait(until="deleted") is job


def test_another_job_of_the_same_name_is_not_waited_for(client: Client, service: MemoryService) -> None:
    service.add("pi", "Running")
    job = client.job("pi")
    service.vanish("default/pi")
    service.add("pi", "Succeeded")
    with pytest.raises(NotFoundError, match="was deleted"):
        job.wait()


def test_an_interrupt_stops_the_job_and_is_raised_again(client: Client, service: MemoryService) -> None:
    def interrupt() -> None:
        with service.change:
            service.change.wait_for(lambda: "job" in service.asked)  # the watch begins with a look
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with service.change:
        thread = later(interrupt)
    with pytest.raises(KeyboardInterrupt):
        client.run(MANIFEST, progress=False)
    thread.join()
    assert "stop" in service.asked
    assert service.kept["default/pi"].summary.reason == "StoppedByUser"


def test_progress_is_one_plain_line_per_change_where_nobody_watches(
    client: Client, service: MemoryService, capsys: pytest.CaptureFixture[str]
) -> None:
    with service.change:
        thread = later(lambda: _play(service))
    client.run(MANIFEST)
    thread.join()
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "pi: succeeded after 1m30s"
    assert len(lines) == len(set(lines))


def _play(service: MemoryService) -> None:
    with service.change:
        service.change.wait_for(lambda: "default/pi" in service.kept)
    service.become("default/pi", "Running")
    service.become("default/pi", "Succeeded")


# -- looking ----------------------------------------------------------------------------------------
def test_jobs_come_page_by_page_only_as_far_as_somebody_looks(client: Client, service: MemoryService) -> None:
    for number in range(450):
        service.add(f"job-{number}")
    found = client.jobs()
    assert next(iter(found)).name == "job-0"
    assert service.asked.count("jobs") == 1
    assert [job.name for job in found] == [f"job-{number}" for number in range(450)]
    assert service.asked.count("jobs") == 3
    assert (len(found), found[449].name, found[-1].name) == (450, "job-449", "job-449")
    assert [job.name for job in found[3:5]] == ["job-3", "job-4"]


def test_an_empty_list_of_jobs_is_empty(client: Client) -> None:
    assert (len(client.jobs()), list(client.jobs()), repr(client.jobs())) == (0, [], "no jobs")


def test_jobs_are_filtered_by_the_service(client: Client, service: MemoryService) -> None:
    service.add("one", "Running")
    service.add("two", "Failed")
    assert [job.name for job in client.jobs(states="Failed")] == ["two"]
    assert [job.name for job in client.jobs(states=["Failed", "Running"], search="on")] == ["one"]


def test_a_job_from_a_list_fetches_its_details_when_they_are_asked_for(client: Client, service: MemoryService) -> None:
    key = service.add("pi")
    service.become(key, "Failed", cause=CauseView(summary="it broke", rank=4))
    service.kept[key] = service.kept[key].model_copy(
        update={"summary": service.kept[key].summary.model_copy(update={"cause": "it broke"})}
    )
    (job,) = client.jobs()
    assert job.summary.cause == "it broke"
    assert job.cause is not None
    assert job.cause.rank == 4
    assert job.manifest.name == "pi"


def test_an_unknown_job_is_not_found_with_its_hint(client: Client) -> None:
    with pytest.raises(NotFoundError, match="there is no job default/none") as caught:
        client.job("none")
    assert caught.value.hint == "look at the list"


@pytest.mark.parametrize("name", ["", "/", "a/b/c", "a/"])
def test_what_is_no_name_is_refused(client: Client, name: str) -> None:
    with pytest.raises(UsageError, match="not the name of a job"):
        client.job(name)


def test_the_place_can_be_looked_at(client: Client) -> None:
    assert client.info().home == "default"
    assert client.overview().states == {"Running": 1}
    assert client.hosts()[0].total.cpus == 4
    assert client.queue()[0].reason == "no room"
    assert client.templates()[0].name == "hello"
    assert client.preview(MANIFEST).ranks == 2
    text, losses = client.convert(MANIFEST, "v1")
    assert "apiVersion: kubeflow.org/v1\n" in text
    assert list(losses) == ["something"]


def test_changes_begin_with_a_reset_and_every_job(client: Client, service: MemoryService) -> None:
    service.add("pi")
    first, second = list(client.changes())
    assert first.reset
    assert second.changed is not None
    assert second.changed.name == "pi"


# -- one job ----------------------------------------------------------------------------------------
def _spoken(service: MemoryService, client: Client) -> JobHandle:
    key = service.add("pi", "Running")
    service.say(key, "zero a", "zero b", rank=0)
    service.say(key, "one a", rank=1, stream="err")
    return client.job("pi")


def _texts(lines: Any) -> list[str]:
    return [line.text for line in lines]


def test_a_log_of_a_running_job_ends_with_its_last_line(client: Client, service: MemoryService) -> None:
    job = _spoken(service, client)
    assert _texts(job.logs()) == ["zero a", "zero b", "one a"]
    assert _texts(job.logs(rank=0)) == ["zero a", "zero b"]
    assert _texts(job.logs(rank=[0, 1], search=" a")) == ["zero a", "one a"]
    assert _texts(job.logs(stream="err")) == ["one a"]
    assert _texts(job.logs(search="nowhere")) == []


def test_the_last_lines_of_a_log_can_be_had_alone(client: Client, service: MemoryService) -> None:
    job = _spoken(service, client)
    assert _texts(job.logs(tail=2)) == ["zero b", "one a"]
    assert _texts(job.logs(tail=99)) == ["zero a", "zero b", "one a"]
    assert _texts(job.logs(tail=0)) == []
    service.say(job.key, *(f"line {n}" for n in range(1200)))
    assert _texts(job.logs(tail=1100)) == [f"line {n}" for n in range(100, 1200)]


def test_a_followed_log_goes_on_until_the_end(client: Client, service: MemoryService) -> None:
    job = _spoken(service, client)
    lines = job.logs(follow=True, tail=1)
    assert next(lines).text == "one a"
    service.say(job.key, "later")
    assert next(lines).text == "later"
    service.become(job.key, "Succeeded")
    assert list(lines) == []


def test_a_stream_that_is_not_one_is_refused(client: Client, service: MemoryService) -> None:
    with pytest.raises(UsageError, match="stream") as caught:
        _spoken(service, client).logs(stream="both")
    assert caught.value.field == "stream"


def test_a_job_is_changed_through_its_handle(client: Client, service: MemoryService) -> None:
    service.add("pi", "Running")
    job = client.job("pi")
    assert job.scale(5).summary.workers == 5
    assert job.suspend().state == "Suspended"
    assert job.resume().state == "Running"
    assert job.stop().state == "Stopped"
    with pytest.raises(ConflictError, match="has ended"):
        job.stop()
    assert job.rerun().state == "Pending"
    assert [(run.run, run.state) for run in job.runs()] == [(2, "Pending"), (1, "Stopped")]
    assert job.run(1).summary.state == "Stopped"
    job.delete()
    with pytest.raises(NotFoundError):
        job.refresh()


def test_deleting_by_name_deletes(client: Client, service: MemoryService) -> None:
    service.add("pi")
    client.delete("pi")
    assert service.kept == {}


def test_a_clone_differs_by_what_was_changed_and_nothing_else(client: Client, service: MemoryService) -> None:
    service.add("pi", "Succeeded")
    job = client.job("pi")
    clone = job.clone("pi-big", workers=4, env={"SEED": "7"})
    assert clone.name == "pi-big"
    expected = job.manifest.changed(name="pi-big", workers=4, env={"SEED": "7"})
    assert clone.manifest == expected
    assert "- '4'" in str(clone.manifest) or '- "4"' in str(clone.manifest)
    assert job.clone().manifest == job.manifest.changed(name="pi-2")


def test_events_and_usage_are_lists(client: Client, service: MemoryService) -> None:
    service.add("pi")
    job = client.job("pi")
    assert job.events()[0].reason == "Created"
    assert [point.memory_bytes for point in job.usage()] == [0, 1, 2]
    assert len(job.usage(since=job.usage()[1].time)) == 2


def test_progress_has_series_and_says_which_rank_is_behind(client: Client, service: MemoryService) -> None:
    service.add("pi")
    found = client.job("pi").progress()
    assert [(series.name, [point.step for point in series.points]) for series in found.series] == [("loss", [0, 1, 2])]
    assert [rank.behind for rank in found.ranks] == ["at step 1, the others at 2"]
    assert found == waiting(service).progress("default/pi")


def test_a_usage_table_without_pandas_says_what_to_install(
    client: Client, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    service.add("pi")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UnsupportedError, match="needs pandas"):
        client.job("pi").usage_frame()


# -- the door itself --------------------------------------------------------------------------------
def test_leaving_the_with_closes_the_service(service: MemoryService) -> None:
    with Client(service=service):
        assert not service.closed
    assert service.closed


def test_the_package_offers_its_names_and_imports_them_late() -> None:
    import subprocess
    import sys

    assert oarsman.Client is Client
    assert oarsman.MPIJob is MPIJob
    assert {"Client", "AsyncClient", "MPIJob", "JobFailed"} <= set(dir(oarsman))
    with pytest.raises(AttributeError, match="no attribute 'Clint'"):
        oarsman.Clint  # noqa: B018
    loaded = "import sys; before = set(sys.modules); import oarsman; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "['oarsman', 'oarsman.version']"


# -- where jobs run ---------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [Client, oarsman.AsyncClient])
@pytest.mark.parametrize("on", ["local", "kube"])
def test_hosts_are_for_ssh(kind: Callable[..., object], on: str) -> None:
    with pytest.raises(UsageError, match='hosts are for on="ssh"'):
        kind(on=on, hosts="rack.yaml")


async def _nobody(*_: Any) -> None:
    """No supervisor is needed for what is only written down."""


def test_jobs_on_ssh_hosts_are_handed_in_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oarsman.backends.local.follow.SupervisorLink.ensure", _nobody)
    monkeypatch.setattr("oarsman.backends.local.follow.SupervisorLink.poke", _nobody)
    monkeypatch.setattr("oarsman.backends.local.follow.SupervisorLink.attend", _nobody)
    monkeypatch.setenv("OARSMAN_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rack").write_text("node1 slots=2\n")
    with Client(on="ssh", hosts=tmp_path / "rack") as client:
        job = client.submit(["./pi"], name="pi")
        assert (job.summary.engine, job.details.folder) == ("ssh", str(tmp_path))
        assert [found.name for found in client.jobs()] == ["pi"]
