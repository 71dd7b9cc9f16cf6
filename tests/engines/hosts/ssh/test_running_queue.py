"""Jobs for SSH hosts come in every form that manifests have, wait for their room, and mind no one's login shell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from ssh_hosts import Rack

from oarsman import names
from oarsman.backends.base import JobRecord
from oarsman.errors import UserError
from oarsman.job.state import Status

from ..machine import mpijob
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(240)]


@pytest.fixture
def submitter(shared_rack: Rack, tmp_path: Path) -> Iterator[SshMachine]:
    with closing(SshMachine(tmp_path / "state", shared_rack)) as machine:
        yield machine


def succeeded(submitter: SshMachine, key: str) -> JobRecord:
    record = submitter.until_finished(key)
    assert record.status.is_true(names.SUCCEEDED), f"{record.status}\n{submitter.log_of(key)}"
    return record


def runs(status: Status) -> bool:
    return status.is_true(names.RUNNING)


def nodes(submitter: SshMachine, key: str) -> list[str]:
    return sorted(submitter.rank_lines(key))


def test_ranks_that_are_launched_after_the_job_was_scaled_up_run_on_its_new_host(submitter: SshMachine) -> None:
    two = 'until [ "$(grep -c . "$OMPI_MCA_orte_default_hostfile")" = 2 ]; do sleep 0.1; done'
    document = mpijob("grown", ["sh", "-c", f"{two}; exec mpirun hostname"], workers=1, slots=2)
    key = submitter.submit(document)
    submitter.until(key, runs)
    submitter.jobs.scale(key, 2)
    succeeded(submitter, key)
    assert nodes(submitter, key) == ["node1", "node1", "node2", "node2"]


# -- room ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("workers", "slots", "wanted"), [(5, 2, ("10 slots", "8")), (1, 3, ("3 slots",))], ids=["rack", "host"]
)
def test_a_job_that_never_fits_is_refused_with_the_shortage(
    workers: int, slots: int, wanted: tuple[str, ...], submitter: SshMachine
) -> None:
    with pytest.raises(UserError, match="can never start") as refused:
        submitter.submit(mpijob("big", ["mpirun", "hostname"], workers=workers, slots=slots))
    assert all(words in str(refused.value) for words in wanted), refused.value
    assert refused.value.exit_code == 2


def test_jobs_that_do_not_fit_together_run_one_after_the_other_the_urgent_first(submitter: SshMachine) -> None:
    signal = submitter.rack.shared / "go-on"
    first = submitter.submit(
        mpijob("first", ["sh", "-c", f"until [ -e {signal} ]; do sleep 0.1; done"], workers=3, slots=2)
    )
    submitter.until(first, runs)
    given: list[tuple[str, dict[str, Any]]] = [("patient", {}), ("urgent", {names.ANNOTATION_PRIORITY: "5"})]
    patient, urgent = [
        submitter.submit(mpijob(name, ["mpirun", "hostname"], workers=4, slots=2, annotations=annotations))
        for name, annotations in given
    ]
    waiting = submitter.until(urgent, lambda status: status.queue is not None and "first" in status.queue.reason)
    assert waiting.status.queue is not None
    assert "first" in waiting.status.queue.reason
    signal.touch()
    ends = [submitter.until_finished(key).status for key in (first, urgent, patient)]
    assert all(status.is_true(names.SUCCEEDED) for status in ends), ends
    for before, after in pairwise(ends):
        assert before.completion_time is not None
        assert after.start_time is not None
        assert before.completion_time <= after.start_time, submitter.ok("describe", "urgent", "patient")
    signal.unlink()


# -- forms --------------------------------------------------------------------------------------------------
OLD = """\
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: old}
spec:
  slotsPerWorker: 2
  cleanPodPolicy: Running
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template: {spec: {containers: [{name: l, image: old, command: [mpirun, -np, "4", hostname]}]}}
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: w, image: old}]}}
"""


def test_a_manifest_of_the_first_version_runs(submitter: SshMachine) -> None:
    (submitter.folder / "old.yaml").write_text(OLD)
    said = submitter.ok("run", "--no-tags", "old.yaml")
    assert sorted(said.split()) == ["node1", "node1", "node2", "node2"]


def test_a_plain_command_runs_and_its_exit_code_is_told(submitter: SshMachine) -> None:
    said = submitter.ok("run", "-np", "4", "--no-tags", "--", "hostname")
    assert sorted(said.split()) == ["node1", "node1", "node2", "node2"]
    done = submitter.run("run", "-np", "2", "--name", "failing", "--", "sh", "-c", "exit 3")
    assert done.returncode == 3, done.stdout + done.stderr


# -- shells -------------------------------------------------------------------------------------------------
NOISE = "echo Welcome, rower; echo 'up 1234' >&2; echo up 1; echo oarsman-probe\n"


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/tcsh", "/bin/sh"])
def test_login_shells_that_talk_do_not_disturb(shell: str, submitter: SshMachine) -> None:
    rack = submitter.rack
    planted = [host.faults.login_shell(shell) for host in rack]
    files = [host.path(f"/home/rower/{name}") for host in rack for name in (".profile", ".bashrc", ".tcshrc")]
    for host in rack:
        for name in (".profile", ".bashrc", ".tcshrc"):
            host.write(f"/home/rower/{name}", NOISE.replace(" >&2", "") if "csh" in name else NOISE, "rower")
    try:
        key = submitter.submit(mpijob("noisy", ["mpirun", "-n", "8", "hostname"], workers=4, slots=2))
        succeeded(submitter, key)
        assert nodes(submitter, key) == [f"node{number}" for number in (1, 1, 2, 2, 3, 3, 4, 4)]
    finally:
        for fault in planted:
            fault.undo()
        for file in files:
            file.unlink()
