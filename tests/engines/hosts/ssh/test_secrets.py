"""What of a folder with secrets lies on hosts: while a job is there, when it is deleted, and after `hosts clean`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from ssh_hosts import Rack

from oarsman import names

from ..machine import mpijob
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.timeout(300)]
GIVEN = "letmein.txt"


@pytest.fixture
def submitter(shared_rack: Rack, tmp_path: Path) -> Iterator[SshMachine]:
    with closing(SshMachine(tmp_path / "state", shared_rack)) as machine:
        for host in machine.rack:  # what jobs of earlier tests left there is nobody's any more
            shutil.rmtree(host.path("/home/rower/.oarsman/code"), ignore_errors=True)
        for name in ("main.py", ".env", GIVEN):
            (machine.folder / name).write_text("secret")
        yield machine


def on_hosts(submitter: SshMachine) -> dict[str, set[str]]:
    """The files of all copies, by host."""
    homes = {host.name: host.path("/home/rower/.oarsman/code") for host in submitter.rack}
    return {name: {path.name for path in home.rglob("*") if path.is_file()} for name, home in homes.items()}


def test_secrets_are_not_copied_and_copies_go_with_their_jobs(submitter: SshMachine) -> None:
    submitter.run("hosts", "trust", "--dry-run", "--yes", "--password-file", GIVEN)
    words = ["sh", "-c", "mkdir results && echo it >results/model"]
    submitter.submit(mpijob("one", words, workers=1))
    record = submitter.until_finished("default/one")
    assert record.status.is_true(names.SUCCEEDED), f"{record.status}\n{submitter.log_of('default/one')}"
    host = submitter.machine_of("default/one")["one-worker-0"]
    there = on_hosts(submitter)[host]
    assert {"main.py", "model"} <= there
    assert not there & {".env", GIVEN}
    told = [event.message for event in submitter.jobs.events("default/one") if event.reason == names.REASON_REMARK]
    assert [message for message in told if ".env, letmein.txt" in message], told

    said = submitter.run("hosts", "clean", "--dry-run")
    assert host in said.stdout
    submitter.run("delete", "one", "--wait")
    while on_hosts(submitter)[host] != {"model"}:
        time.sleep(0.1)
    said = submitter.run("hosts", "trust", "--undo", "--dry-run", "--yes")
    assert f"stay on {host}" in said.stdout
    submitter.run("hosts", "clean", "--yes")
    assert not any(on_hosts(submitter).values())


def test_a_job_that_is_run_again_keeps_its_log_here_and_holds_no_copy_there(submitter: SshMachine) -> None:
    """The copy goes with the newest run, although there are earlier ones."""
    document = mpijob("one", ["sh", "-c", "echo it is said"], workers=1)
    replaces: str | None = None
    for _ in range(2):
        settings = {"environment": submitter.environment, "folder": submitter.folder, "replaces": replaces}
        replaces = submitter.jobs.submit(document, **settings).job.uid
        submitter.until_finished("default/one")
    earlier = submitter.jobs.get("default/one#1")
    assert submitter.lines("default/one#1") == ["it is said"]
    while "journal.jsonl" in {path.name for path in submitter.paths.job(earlier.job.uid).iterdir()}:
        time.sleep(0.1)
    assert earlier.status.machines != {}
    submitter.run("delete", "one", "--wait")
    while any(on_hosts(submitter).values()):
        time.sleep(0.1)
