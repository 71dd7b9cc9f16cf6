"""What people see of jobs on SSH hosts: plans, machines, use, sweeps, and the same from Python and in the console."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
import yaml
from ssh_hosts import Rack
from waiting import waiting

from oarsman import Client, names
from oarsman.console.server import _backends
from oarsman.console.settings import ConsoleSettings
from oarsman.errors import UserError
from oarsman.service import JobService
from oarsman.service.models import Create, Identity, Role

from ..machine import PATIENCE, mpijob
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]
HELLO = mpijob("hello", ["mpirun", "-np", "4", "hostname"], workers=4)


@pytest.fixture(scope="module")
def submitter(shared_rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachine]:
    with closing(SshMachine(tmp_path_factory.mktemp("faces") / "state", shared_rack)) as machine:
        yield machine


def test_a_job_runs_where_the_plan_said(submitter: SshMachine) -> None:
    submitter.until_free()
    manifest = submitter.folder / "hello.yaml"
    manifest.write_text(yaml.safe_dump(HELLO))
    plan = json.loads(submitter.ok("plan", "-o", "json", str(manifest)))
    assert plan["fits"]
    planned = {host["name"]: host["machine"] for host in plan["hosts"]}
    assert planned == {f"hello-worker-{index}": f"node{index // 2 + 1}" for index in range(4)}
    submitter.submit(HELLO)
    record = submitter.until_finished("default/hello")
    assert record.status.is_true(names.SUCCEEDED), record.status
    assert record.status.machines == {"hello-launcher": "node1", **planned}
    assert {f"{rank}": host for rank, host in record.status.placement.items()} == plan["ranks"]
    assert ["hello-worker-2", "node2", "2"] in [row.split() for row in submitter.ok("describe", "hello").splitlines()]
    assert "ssh (node1, node2)" in submitter.ok("list", "-o", "wide")


def test_what_a_job_uses_is_told_by_its_machines(submitter: SshMachine) -> None:
    submitter.until_free()
    submitter.submit(mpijob("busy", ["mpirun", "-np", "2", "sleep", "1000"], slots=1))
    deadline = time.monotonic() + PATIENCE
    while not (used := submitter.jobs.usage("default/busy")) or not submitter.jobs.usage_series("default/busy"):
        assert time.monotonic() < deadline, submitter.ok("describe", "busy")
        time.sleep(0.1)
    assert [use.host for use in used] == ["busy-worker-0"]  # both workers are on the first machine
    assert used[0].processes
    assert used[0].memory_bytes
    assert "busy-worker-0" in submitter.ok("top", "busy")
    submitter.jobs.stop("default/busy")
    submitter.until_finished("default/busy")


def test_a_sweep_runs_as_many_points_as_fit_and_names_the_machine_of_a_failure(submitter: SshMachine) -> None:
    command = ["mpirun", "-np", "2", "sh", "-c", "[ {{lr}} != 4 ] || exit 3; echo loss: {{lr}}"]
    manifest = submitter.folder / "point.yaml"
    manifest.write_text(yaml.safe_dump(mpijob("point", command)))
    words = ["--grid", "lr=1,2,3,4,5,6", "--metric", "loss: ([0-9.]+)", "-o", "json"]
    done = submitter.run("sweep", "run", str(manifest), "--name", "rates", *words)
    points = json.loads(done.stdout)["points"]
    assert [point["state"] for point in points] == [names.FAILED if n == 3 else names.SUCCEEDED for n in range(6)]
    assert [point["metric"] for point in points] == [1, 2, 3, None, 5, 6]
    machine = submitter.jobs.get("default/rates-0003").status.machines["rates-0003-worker-0"]
    assert f"({machine}) exited with code 3" in points[3]["cause"]


def test_the_doctor_counts_the_hosts_that_can_be_used(submitter: SshMachine) -> None:
    page = submitter.ok("doctor")
    assert f"{submitter.inventory}: 4 of 4 can be used" in page
    assert "Open MPI" in page
    more = yaml.safe_load(submitter.inventory.read_text())
    more["hosts"].append({"name": "ghost", "address": "ghost.invalid", "slots": 2})
    file = submitter.folder / "more.yaml"
    file.write_text(yaml.safe_dump(more))
    page = submitter.ok("--hosts", str(file), "doctor")
    assert "4 of 5 can be used" in page
    assert any(line.startswith("warn") and "ghost" in line for line in page.splitlines()), page


def test_python_programs_run_jobs_there_too(submitter: SshMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    submitter.until_free()
    monkeypatch.setenv("OARSMAN_STATE", submitter.environment["OARSMAN_STATE"])
    monkeypatch.chdir(submitter.folder)
    with Client(on="ssh", hosts=submitter.inventory) as client:
        job = client.run(["hostname"], name="called", workers=2, progress=False)
        assert (job.state, job.summary.engine) == ("Succeeded", "ssh")
        assert sorted(job.refresh().details.machines.values()) == ["node1", "node1", "node1"]
        assert [host.name for host in client.hosts()] == ["node1", "node2", "node3", "node4"]


def test_a_console_shows_the_hosts_and_whether_a_job_fits_on_them(submitter: SshMachine) -> None:
    submitter.until_free()
    backends = _backends(ConsoleSettings(engine="ssh", hosts=str(submitter.inventory), paths=submitter.paths))
    try:
        backend = backends.backend(None)
        service = waiting(JobService(backend.jobs, Identity(name="ada", role=Role.ADMIN)))
        assert [(host.name, host.state, host.total.cpus) for host in service.hosts()] == [
            (f"node{n}", "ready", 2.0) for n in range(1, 5)
        ]
        named = {**HELLO, "metadata": {**HELLO["metadata"], "name": "fitting"}}  # nobody else here has that name
        fits = service.preview(Create(document=named))
        assert fits.fit is not None
        assert (fits.fit.now, fits.fit.machines["fitting-worker-3"]) == (True, "node2")
        assert fits.placement == {f"fitting-worker-{index}": [index] for index in range(4)}
        never = service.preview(Create(document=mpijob("huge", ["mpirun", "hostname"], workers=9))).fit
        assert never is not None
        assert (never.now, never.ever) == (False, False)
    finally:
        waiting(backends).close()


def test_a_console_without_its_inventory_does_not_start(submitter: SshMachine) -> None:
    with pytest.raises(UserError, match="there is no file"):
        _backends(ConsoleSettings(engine="ssh", hosts=str(submitter.folder / "none"), paths=submitter.paths))
