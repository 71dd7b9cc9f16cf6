"""`--on ssh`: which hosts are meant, and where the machines of a job are shown."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from oarsman import backends, names
from oarsman.backends.base import Amounts, Fit, JobRecord, Preview
from oarsman.backends.local.backend import LocalBackend
from oarsman.cli.main import cli
from oarsman.cli.session import Session
from oarsman.cli.text import t
from oarsman.cli.waiting import ShownJob, waiting_for
from oarsman.job.state import QueuePlace, Status
from oarsman.service.views import whole_job
from oarsman.text.catalogue import catalogue
from oarsman.text.sentence import Text, sentences

from .fakes import NOW, RUNNING, SUCCEEDED, FakeJobs, a_status, oarsman

MACHINES = {"pi-launcher": "node1", "pi-worker-0": "node1", "pi-worker-1": "node2"}


def on_ssh(jobs: FakeJobs, *words: str) -> Result:
    return oarsman(jobs, "--on", "ssh", *words)


# -- which hosts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["--on", "ssh", "--hosts", "rack.yaml", "list"],
        ["list", "--on", "ssh", "--hosts", "rack.yaml"],
        ["--hosts", "rack.yaml", "list", "--on", "ssh"],
    ],
)
def test_the_door_is_opened_with_the_file_that_was_named(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    opened = []

    def open_backend(engine: str, **given: Any) -> FakeJobs:
        opened.append((engine, given["hosts"]))
        return FakeJobs()

    monkeypatch.setattr("oarsman.backends.open_backend", open_backend)
    assert CliRunner().invoke(cli, words, obj=Session()).exit_code == 0
    assert opened == [("ssh", "rack.yaml")]


@pytest.mark.parametrize("engine", ["local", "kube"])
def test_hosts_are_refused_elsewhere(jobs: FakeJobs, engine: str) -> None:
    result = oarsman(jobs, "list", "--on", engine, "--hosts", "rack.yaml")
    assert (result.exit_code, result.stderr) == (2, "error: --hosts needs --on ssh\n")


# -- where a job is ----------------------------------------------------------------------------------


def test_a_wide_list_names_the_machines_of_a_job(jobs: FakeJobs) -> None:
    record = jobs.add("pi", replace(RUNNING, machines=MACHINES))
    jobs.records[record.job.key] = replace(record, engine="ssh")
    jobs.add("tau")
    header, *rows = oarsman(jobs, "list", "-o", "wide").stdout.splitlines()
    start = header.index("ENGINE")
    assert [row[start:].split("  ")[0] for row in rows] == ["ssh (node1, node2)", "local"]


def test_a_list_says_where_jobs_are_if_they_are_in_several_places(jobs: FakeJobs) -> None:
    record = jobs.add("pi", replace(RUNNING, machines=MACHINES))
    assert "ENGINE" not in oarsman(jobs, "list").stdout
    jobs.add("tau")
    jobs.records[record.job.key] = replace(record, engine="ssh")
    header, *rows = oarsman(jobs, "list").stdout.splitlines()
    start = header.index("ENGINE")
    assert [row[start:].split() for row in rows] == [["ssh", "-"], ["local", "-"]]


def test_a_wide_list_names_only_a_few_of_many_machines(jobs: FakeJobs) -> None:
    jobs.add("pi", replace(RUNNING, machines={f"pi-worker-{n}": f"node{n}" for n in range(7)}))
    assert "(node0, node1, node2, node3 +3)" in oarsman(jobs, "list", "-o", "wide").stdout


def test_a_description_has_the_machine_of_each_host(jobs: FakeJobs) -> None:
    jobs.add("pi", replace(RUNNING, machines=MACHINES, placement={0: "pi-worker-0", 1: "pi-worker-1"}))
    lines = [line.split() for line in oarsman(jobs, "describe", "pi").stdout.splitlines()]
    assert ["HOST", "MACHINE", "RANKS"] in lines
    assert ["pi-launcher", "node1", "-"] in lines
    assert ["pi-worker-1", "node2", "1"] in lines


def test_hosts_of_one_machine_are_described_without_it(jobs: FakeJobs) -> None:
    jobs.add("pi", replace(RUNNING, placement={0: "pi-worker-0"}))
    assert "MACHINE" not in oarsman(jobs, "describe", "pi").stdout


def test_the_document_says_where_each_host_is(jobs: FakeJobs) -> None:
    jobs.add("pi", replace(RUNNING, machines=MACHINES))
    assert json.loads(oarsman(jobs, "get", "pi", "-o", "json").stdout)["status"]["machines"] == MACHINES


def test_a_job_whose_hosts_are_being_asked_has_no_place_yet(jobs: FakeJobs) -> None:
    record = jobs.add("pi", a_status("Queued", queue=QueuePlace(position=0, reason="its hosts are being asked")))
    assert waiting_for(ShownJob.of(whole_job(record))) == "pi: waiting: its hosts are being asked"
    assert "  its hosts are being asked\n" in oarsman(jobs, "list", "-o", "wide").stdout


def without_hosts(reason: str, position: int = 1) -> Status:
    status = a_status("Queued", queue=QueuePlace(position=position, reason=reason), attempts=0, start_time=None)
    why = [replace(c, reason=names.REASON_NO_HOSTS, message=reason) for c in status.conditions]
    return replace(status, conditions=tuple(why))


DENIED = "no host can be used now; node1: it does not let us log in as ada; node2: no answer on port 22"
BETTER = "asks for 4 slots, the hosts have 2; node2: no answer on port 22"


def test_run_says_of_each_host_in_a_line_why_it_cannot_be_used_whenever_that_changes(manifest: str) -> None:
    jobs = FakeJobs(
        story=(
            without_hosts("its hosts are being asked", 0),
            without_hosts(DENIED),
            without_hosts(DENIED, 2),
            without_hosts(BETTER),
            RUNNING,
            SUCCEEDED,
        )
    )
    text = Path(manifest).read_text()
    named = text.replace("metadata: {name: pi}", "metadata: {name: pi, annotations: {oarsman.dev/inventory: /a b/h}}")
    Path(manifest).write_text(named)
    hint = "  it starts as soon as they can be used; `oarsman hosts check --hosts '/a b/h'` says what to do\n"
    assert on_ssh(jobs, "run", manifest).stderr == (
        "pi: waiting: its hosts are being asked\n"
        "pi: waiting for its hosts: no host can be used now\n"
        "  node1: it does not let us log in as ada\n"
        "  node2: no answer on port 22\n"
        f"{hint}"
        "pi: waiting for its hosts: asks for 4 slots, the hosts have 2\n"
        "  node2: no answer on port 22\n"
        f"{hint}"
        "pi succeeded after 3.5s\n"
    )
    assert on_ssh(jobs, "run", "-q", "--replace", manifest).stderr == ""


def test_what_a_job_waits_for_is_all_chinese(manifest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Text("asks for {asked}, the hosts have {whole}", asked=Text("{n} slots", n=8), whole=6)
    reason = Text("{reason}; --oversubscribe starts it anyway", reason=asked)
    away = Text("{host}: {why}", host="node3", why=Text("there is no way to it in the network"))
    jobs = FakeJobs(story=(without_hosts(sentences([reason, away])), RUNNING, SUCCEEDED))
    monkeypatch.setattr(t, "language", "zh")
    said = on_ssh(jobs, "run", manifest).stderr
    first = catalogue("zh")["asks for {asked}, the hosts have {whole}"]
    assert f"正在等待主机：{first.partition('{')[0]}" in said
    assert "\n  node3：" in said
    assert not re.search("asks for|starts it anyway|there is no way", said)


CLOSED = "no host can be used now; node1: its host key is not known yet; accept it with 'oarsman hosts trust'"


def closed(reason: str) -> Status:
    status = without_hosts(reason)
    return replace(status, conditions=tuple(replace(c, reason=names.REASON_CLOSED) for c in status.conditions))


def test_run_does_not_wait_for_somebody_who_has_to_let_us_in(jobs: FakeJobs, manifest: str) -> None:
    jobs.story = (without_hosts("its hosts are being asked", 0), closed(CLOSED), RUNNING, SUCCEEDED)
    result = on_ssh(jobs, "run", manifest)
    assert result.exit_code == 2
    assert result.stderr == (
        "pi: waiting: its hosts are being asked\n"
        f"error: pi cannot start until this is fixed: {CLOSED}\n"
        "  hint: set up the login with `oarsman hosts trust`; --wait-for-hosts waits until that is done\n"
    )
    assert jobs.records == {}


def test_run_waits_for_them_if_it_is_told_to(jobs: FakeJobs, manifest: str) -> None:
    jobs.story = (closed(CLOSED), RUNNING, SUCCEEDED)
    result = on_ssh(jobs, "run", "--wait-for-hosts", manifest)
    assert result.exit_code == 0
    assert (
        "pi: waiting for its hosts: no host can be used now\n  node1: its host key is not known yet\n" in result.stderr
    )


def test_a_job_that_ran_before_is_not_given_up_for_its_hosts(jobs: FakeJobs, manifest: str) -> None:
    ran = replace(closed(CLOSED), attempts=RUNNING.attempts)
    jobs.story = (RUNNING, ran, SUCCEEDED)
    assert on_ssh(jobs, "run", manifest).exit_code == 0


def test_submit_says_what_the_job_waits_for(jobs: FakeJobs, manifest: str) -> None:
    jobs.story = (without_hosts("its hosts are being asked", 0), closed(CLOSED), RUNNING, SUCCEEDED)
    result = on_ssh(jobs, "submit", manifest)
    assert (result.exit_code, result.stdout) == (0, "pi\n")
    assert "pi: waiting for its hosts: no host can be used now\n" in result.stderr
    assert on_ssh(jobs, "submit", "-q", "--replace", manifest).stderr == ""


class Slow(FakeJobs):
    closed = False

    async def watch(self, key: str, *, timeout: float | None = None) -> AsyncGenerator[JobRecord, None]:  # noqa: ASYNC109
        try:
            async for record in super().watch(key, timeout=timeout):
                yield record
        finally:
            await asyncio.sleep(0.2)
            self.closed = True


@pytest.mark.parametrize("words", [["submit"], ["submit", "--wait"], ["run"]])
def test_who_has_seen_enough_of_a_job_leaves_nothing_open_behind(manifest: str, words: list[str]) -> None:
    """What is still being closed while the command ends complains on the terminal."""
    jobs = Slow(story=(without_hosts("its hosts are being asked", 0), RUNNING, SUCCEEDED), silent=True)
    assert on_ssh(jobs, *words, manifest).exit_code == 0
    assert jobs.closed


@pytest.mark.parametrize("words", [["wait", "pi", "--for", "succeeded"], ["logs", "-f", "pi"]])
def test_whoever_waits_for_a_job_is_told_which_hosts_it_waits_for(jobs: FakeJobs, words: list[str]) -> None:
    jobs.add("pi")
    jobs.story = (without_hosts(DENIED), without_hosts(DENIED), SUCCEEDED)
    said = on_ssh(jobs, *words).stderr
    assert said.startswith("pi: waiting for its hosts: no host can be used now\n  node1: ")
    assert said.count("node2: no answer on port 22\n") == 1


def test_the_spinner_of_a_job_without_hosts_stays_short(jobs: FakeJobs) -> None:
    assert waiting_for(ShownJob.of(whole_job(jobs.add("pi", without_hosts(DENIED))))) == "pi: waiting for its hosts"


# -- code --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["copy", "none"])
def test_whether_the_folder_is_copied_can_be_said_of_a_command_and_of_a_manifest(
    jobs: FakeJobs, manifest: str, choice: str
) -> None:
    for words in ([manifest], ["-n", "2", "--name", "pi", "--", "./pi"]):
        assert on_ssh(jobs, "submit", "--replace", "--code", choice, *words).exit_code == 0
        assert jobs.records["default/pi"].job.annotation(names.ANNOTATION_CODE) == choice
        assert on_ssh(jobs, "submit", "--replace", *words).exit_code == 0
        assert jobs.records["default/pi"].job.annotation(names.ANNOTATION_CODE) == ""
    assert "--code takes one of: copy, none" in on_ssh(jobs, "submit", "--code", "some", manifest).stderr


# -- plan and doctor ---------------------------------------------------------------------------------


def a_preview(fit: Fit) -> Preview:
    return Preview(
        mpi="Open MPI 4.1.4 (/usr/bin/mpirun)",
        hosts=("pi-worker-0", "pi-worker-1"),
        ranks={0: "pi-worker-0"},
        hostfile="10.0.0.1 slots=2\n",
        discover_hosts="",
        environment={},
        launch_line="mpirun ./pi",
        rewritten="mpirun ./pi",
        objects=(),
        not_honoured=(),
        fit=fit,
        machines=fit.machines,
    )


def planned(fit: Fit, *words: str) -> str:
    class Rack(FakeJobs):
        async def preview(self, document: Any, *, environment: Any, folder: Any) -> Preview:
            return a_preview(fit)

    session = Session(factory=lambda engine: Rack(), now=lambda: NOW)
    result = CliRunner().invoke(cli, ["plan", "--on", "ssh", *words], obj=session)
    assert result.exit_code == 0, result.output
    return result.stdout


NOTHING = Amounts()
FITS = Fit(now=True, ever=True, wanted=NOTHING, free=NOTHING, total=NOTHING, machines=MACHINES)


def test_a_plan_shows_on_which_machine_each_host_would_be(manifest: str) -> None:
    lines = [line.split() for line in planned(FITS, manifest).splitlines()]
    assert ["Room:", "fits:", "it", "can", "start", "now"] in lines
    assert ["pi-launcher", "node1", "-", "-"] in lines
    assert ["pi-worker-0", "node1", "2", "0"] in lines
    data = json.loads(planned(FITS, manifest, "-o", "json"))
    assert (data["fits"], data["reason"]) == (True, "")
    assert data["hosts"][1] == {"name": "pi-worker-1", "slots": 2, "machine": "node2"}


@pytest.mark.parametrize(
    ("ever", "said"),
    [(True, "Room:      does not fit now: too many"), (False, "Room:      does not fit, ever: too many")],
)
def test_a_plan_says_why_it_does_not_fit(manifest: str, ever: bool, said: str) -> None:
    fit = replace(FITS, now=False, ever=ever, reason="too many", machines={})
    page = planned(fit, manifest)
    assert said in page.splitlines()
    assert "MACHINE" not in page


def doctor(*words: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", "--on", "ssh", *words], obj=Session())


def test_without_ssh_no_job_can_run_on_hosts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = doctor()
    assert result.exit_code == 1
    assert "install openssh-client" in result.stdout
    assert "No job can run on these hosts before that." in result.stdout


def test_without_an_inventory_no_job_can_run_on_hosts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OARSMAN_STATE", str(tmp_path / "state"))
    result = doctor("--hosts", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert f"there is no file {tmp_path / 'none'}" in result.stdout


# -- the place called by its earlier name ------------------------------------------------------------


def test_the_earlier_name_of_this_machine_is_taken_and_not_offered(
    jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert oarsman(jobs, "list", "--on", "embedded").exit_code == 0
    assert "[local|ssh|kube]" in oarsman(jobs, "list", "--help").stdout
    assert isinstance(backends.open_backend("embedded"), LocalBackend)
