"""`list`, `get`, `describe`, `logs`, `events`, `top`, `wait`: what they show, in every form."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import timedelta
from typing import Any

import click
import pytest
import yaml

from oarsman import names
from oarsman.backends.base import EventRecord, LogQuery
from oarsman.cli import render
from oarsman.cli.text import t, width
from oarsman.engines.contract import HostUsage
from oarsman.job.state import QueuePlace, ReplicaCount, Status
from oarsman.manifest import job_from_document
from oarsman.service import views
from oarsman.text.sentence import Text

from .fakes import CAUSE, FAILED, MANIFEST, NOW, RUNNING, SUCCEEDED, FakeJobs, a_line, a_status, at, oarsman
from .test_failures import Terminal

QUEUED = a_status(names.QUEUED, attempts=0, queue=QueuePlace(position=2, reason="4 CPUs"), start_time=None)


def test_a_list_has_a_line_per_job(jobs: FakeJobs) -> None:
    jobs.add("pi", a_status(names.RUNNING, worker=ReplicaCount(ready=1)))
    jobs.add("tau", FAILED, namespace="other")
    lines = oarsman(jobs, "list").stdout.splitlines()
    assert lines[0].split() == ["NAME", "STATE", "WORKERS", "AGE", "DURATION", "MESSAGE"]
    assert sorted(line.split(maxsplit=5) for line in lines[1:]) == [
        ["other/tau", "Failed", "2", "5m", "3.5s", "rank 1 on pi-worker-0 exited with code 3"],
        ["pi", "Running", "1/2", "5m", "4m59s", "-"],
    ]


def test_a_list_says_what_a_job_waits_for(jobs: FakeJobs) -> None:
    jobs.add("pi", QUEUED)
    assert "number 2 in the queue: 4 CPUs" in oarsman(jobs, "list").stdout


def test_queued_jobs_are_listed_in_the_order_of_the_queue(jobs: FakeJobs) -> None:
    for name, position in (("far", 0), ("second", 2), ("first", 1), ("further", 0)):
        jobs.add(name, replace(QUEUED, queue=QueuePlace(position=position, reason="4 CPUs")))
    jobs.add("runs", RUNNING)
    order = ["first", "second", "far", "further"]
    assert [line.split()[0] for line in oarsman(jobs, "list", "--state", "queued").stdout.splitlines()[1:]] == order
    assert oarsman(jobs, "list", "--state", "Queued", "-o", "name").stdout.split() == [f"mpijob/{x}" for x in order]
    assert [line.split()[0] for line in oarsman(jobs, "list").stdout.splitlines()[1:]] != [*order, "runs"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_on_a_terminal_the_message_is_cut_to_its_width(
    jobs: FakeJobs, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.add("tau", FAILED)
    jobs.add("pi", QUEUED)
    rows = [views.summary(record) for record in jobs.records.values()]
    monkeypatch.setattr(t, "language", language)
    monkeypatch.setenv("COLUMNS", "70")
    seen = Terminal()
    monkeypatch.setattr(sys, "stdout", seen)
    render.job_table(rows, NOW)
    cut = seen.getvalue().splitlines()
    render.job_table(rows, NOW, wide=True)
    assert len(cut) == 3
    assert all(width(click.unstyle(line)) <= 70 for line in cut)
    assert cut[1].endswith("…")
    assert t.of(rows[0].cause or "none") in seen.getvalue()


def test_a_run_after_the_first_shows_its_number(jobs: FakeJobs) -> None:
    jobs.add("pi")
    assert "RUN" not in oarsman(jobs, "list").stdout.split()
    jobs.add("tau", run=3)
    lines = [line.split() for line in oarsman(jobs, "list").stdout.splitlines()]
    assert [line[5] for line in lines] == ["RUN", "1", "3"]


def test_columns_line_up_and_nothing_trails(jobs: FakeJobs) -> None:
    jobs.add("pi")
    jobs.add("a-much-longer-name", Status())
    lines = oarsman(jobs, "list").stdout.splitlines()
    column = lines[0].index("STATE")
    assert {line[column - 2 : column] for line in lines} == {"  "}
    assert all(line == line.rstrip() for line in lines)


def test_a_wide_list_says_why(jobs: FakeJobs) -> None:
    jobs.add("pi", QUEUED)
    text = oarsman(jobs, "list", "-o", "wide").stdout
    assert "number 2 in the queue: 4 CPUs" in text
    assert "MPIJobQueued" in text
    assert "ada" in text


def test_a_state_that_does_not_exist_is_a_mistake(jobs: FakeJobs) -> None:
    jobs.add("pi", RUNNING)
    result = oarsman(jobs, "list", "--state", "bogus")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: there is no state 'bogus'")
    assert "Pending, Queued, Running, Restarting, Suspended" in result.stderr


def test_the_mpi_of_a_job_is_the_one_it_has_and_not_a_default(jobs: FakeJobs) -> None:
    def told(**given: Any) -> str:
        record = jobs.add("pi", **{key: value for key, value in given.items() if key != "engine"})
        jobs.records[record.job.key] = replace(record, engine=given.get("engine", "local"))
        [line] = [line for line in oarsman(jobs, "describe", "pi").stdout.splitlines() if line.startswith("  MPI:")]
        return line.split(maxsplit=1)[1]

    assert told(mpi="MPICH 4.2.0 (/opt/mpich/bin/mpirun)") == "MPICH 4.2.0 (/opt/mpich/bin/mpirun)"
    assert told() == "not chosen yet"
    assert told(engine="kube") == "OpenMPI (default)"  # nobody looks into an image


def test_a_page_says_each_sentence_once(jobs: FakeJobs) -> None:
    cause = "rank 1 on pi-worker-0 exited with code 3"
    failed = Text("MPIJob {key} has failed: {why}", key="default/pi", why=CAUSE.summary)
    conditions = tuple(replace(one, message=failed) if one.type == names.FAILED else one for one in FAILED.conditions)
    jobs.add("pi", replace(FAILED, conditions=conditions))
    created = "it is created"
    jobs.happened = [
        EventRecord(time=at(1), first_time=at(1), severity="Normal", reason="MPIJobCreated", message=created),
        EventRecord(time=at(5), first_time=at(5), severity="Warning", reason="MPIJobFailed", message=failed),
    ]
    page = oarsman(jobs, "describe", "pi").stdout
    assert [page.count(one) for one in (cause, created, "MPIJob default/pi has failed")] == [1, 1, 1]
    jobs.happened = ()
    jobs.add("tau", QUEUED)
    assert oarsman(jobs, "describe", "tau").stdout.count("4 CPUs") == 1


def test_a_list_can_be_narrowed_by_state_and_namespace(jobs: FakeJobs) -> None:
    jobs.add("pi", RUNNING)
    jobs.add("tau", FAILED)
    jobs.add("phi", FAILED, namespace="other")
    assert oarsman(jobs, "list", "--state", "failed", "-o", "name").stdout == "mpijob/tau\nmpijob/other/phi\n"
    assert oarsman(jobs, "list", "--namespace", "other", "-o", "name").stdout == "mpijob/other/phi\n"
    assert oarsman(jobs, "--namespace", "other", "list", "-o", "name").stdout == "mpijob/other/phi\n"


def test_what_was_asked_of_a_job_shows_before_what_it_still_is(jobs: FakeJobs) -> None:
    jobs.add("pi", RUNNING, stop_requested=True)
    assert "Stopping" in oarsman(jobs, "list").stdout
    jobs.add("pi", RUNNING, deleting=True)
    assert "Deleting" in oarsman(jobs, "list").stdout


def test_no_jobs_is_said_on_stderr(jobs: FakeJobs) -> None:
    result = oarsman(jobs, "list")
    assert (result.stdout, result.stderr, result.exit_code) == ("", "no jobs\n", 0)
    assert oarsman(jobs, "-q", "list").output == ""
    assert oarsman(jobs, "list", "-q").output == ""


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_documents_are_what_kubernetes_would_print(jobs: FakeJobs, form: str, read: Any) -> None:
    jobs.add("pi", FAILED)
    one = read(oarsman(jobs, "get", "pi", "-o", form).stdout)
    assert (one["apiVersion"], one["kind"], one["metadata"]["name"]) == ("kubeflow.org/v2beta1", "MPIJob", "pi")
    assert str(one["metadata"]["creationTimestamp"]).startswith("2026-01-01")
    assert one["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
    assert [c["type"] for c in one["status"]["conditions"]] == ["Created", "Failed"]
    every = read(oarsman(jobs, "list", "-o", form).stdout)
    assert (every["apiVersion"], every["kind"], every["items"]) == ("v1", "List", [one])


@pytest.mark.parametrize(
    "name", ["pi", "default/pi", "mpijob/pi", "mj/pi", "mpijobs.kubeflow.org/pi", "mpijob/default/pi"]
)
def test_a_job_has_several_names(jobs: FakeJobs, name: str) -> None:
    jobs.add("pi")
    assert oarsman(jobs, "get", name, "-o", "name").stdout == "mpijob/pi\n"


@pytest.mark.parametrize("name", ["/pi", "a/b/c", "", "mpijob/"])
def test_other_names_are_refused(jobs: FakeJobs, name: str) -> None:
    assert oarsman(jobs, "get", name).exit_code == 2


def test_a_name_and_a_namespace_that_disagree_are_refused(jobs: FakeJobs) -> None:
    jobs.add("pi")
    assert oarsman(jobs, "get", "default/pi", "--namespace", "other").exit_code == 2
    assert oarsman(jobs, "get", "default/pi", "--namespace", "default").exit_code == 0


def test_an_unknown_job_brings_the_nearest_names(jobs: FakeJobs) -> None:
    result = oarsman(jobs, "get", "pi")
    assert (result.exit_code, result.stderr) == (4, "error: no job default/pi\n  hint: there are no jobs yet\n")
    jobs.add("train-a1")
    assert "hint: did you mean train-a1?" in oarsman(jobs, "describe", "trian-a1").stderr
    assert "hint: `oarsman list` shows" in oarsman(jobs, "describe", "zzz").stderr
    jobs.add("pi", namespace="other")
    assert "hint: did you mean other/pi?" in oarsman(jobs, "logs", "pi").stderr


def test_a_description_tells_the_whole_story(jobs: FakeJobs) -> None:
    jobs.add(
        "pi",
        a_status(
            names.FAILED,
            cause=FAILED.cause,
            attempts=2,
            placement={0: "pi-worker-0", 1: "pi-worker-0", 2: "pi-worker-1"},
            timeline={"submitted": at(0), "hostsUp": at(0.5), "ended": at(4)},
        ),
    )
    jobs.happened = (EventRecord(time=at(60), first_time=at(1), severity="Warning", reason="R", message="m", count=3),)
    text = oarsman(jobs, "describe", "pi").stdout
    for fact in (
        "1 launcher + 2 workers = 3",
        "2 hosts x 2 = 4",
        "-np 4",
        "mpirun -n 4 ./pi",
        "by ada",
        "/home/ada",
        "MPIJobFailed",
        "cause: rank 1 on pi-worker-0 exited with code 3",
        "| ValueError: no",
        "hint: look at rank 1",
        "m (x3)",
        "+0.5s",
        "+3.5s",
    ):
        assert fact in text
    rows = [line.split(maxsplit=1) for line in text.splitlines()]
    assert ["pi-worker-0", "0-1"] in rows
    assert ["pi-worker-1", "2"] in rows


def test_a_description_of_a_job_nothing_is_known_of_yet(jobs: FakeJobs) -> None:
    jobs.add("pi", Status())
    result = oarsman(jobs, "describe", "pi")
    assert result.exit_code == 0
    assert "Pending" in result.stdout


def test_log_options_become_one_query(jobs: FakeJobs) -> None:
    jobs.add("pi", a_status(names.RUNNING, attempts=2))
    oarsman(
        jobs,
        "logs",
        "-f",
        "pi",
        "--rank",
        "0",
        "--rank",
        "2",
        "--worker",
        "1",
        "--stderr",
        "--since",
        "5m",
        "--tail",
        "9",
        "--attempt",
        "2",
    )
    assert jobs.calls == [
        (
            "logs",
            LogQuery(
                ranks=(0, 2),
                workers=(1,),
                stream="err",
                since=NOW - timedelta(minutes=5),
                tail=9,
                attempt=2,
                follow=True,
            ),
        )
    ]
    assert oarsman(jobs, "logs", "pi", "--launcher", "--rank", "0").exit_code == 2


def with_command(jobs: FakeJobs, status: Status, *command: str) -> None:
    record = jobs.add("pi", status)
    document = yaml.safe_load(MANIFEST)
    document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"] = list(command)
    jobs.records[record.job.key] = replace(record, job=job_from_document(document))


PLACED = {0: "pi-worker-0", 1: "pi-worker-0"}


@pytest.mark.parametrize(
    ("status", "command", "rank", "hint"),
    [
        (RUNNING, ["mpirun", "-np", "4", "./pi"], "4", "its ranks are 0 to 3"),
        (Status(), ["mpirun", "-np", "4", "./pi"], "99", "its ranks are 0 to 3"),
        (RUNNING, ["mpirun", "./pi"], "4", "its ranks are 0 to 3"),
        (RUNNING, ["mpirun", "-np", "1", "./pi"], "1", "its only rank is 0"),
        (replace(SUCCEEDED, placement=PLACED), ["./start.sh"], "2", "its ranks are 0 to 1"),
    ],
)
def test_a_rank_that_is_not_there_is_an_error_that_says_which_are(
    jobs: FakeJobs, status: Status, command: list[str], rank: str, hint: str
) -> None:
    with_command(jobs, status, *command)
    for words in ([], ["-f"], ["--rank", "0"]):
        result = oarsman(jobs, "logs", "pi", "--rank", rank, *words)
        assert (result.exit_code, result.stdout) == (4, "")
        assert result.stderr == f"error: pi has no rank {rank}\n  hint: {hint}\n"
    assert oarsman(jobs, "logs", "pi", "--rank", "0").exit_code == 0


@pytest.mark.parametrize(
    ("status", "words", "said"),
    [
        (RUNNING, ["--worker", "7"], "pi has no worker 7\n  hint: its workers are 0 to 1"),
        (RUNNING, ["--worker", "0", "--worker", "2", "-f"], "pi has no worker 2\n  hint: its workers are 0 to 1"),
        (RUNNING, ["--attempt", "4"], "pi has no attempt 4\n  hint: its only attempt is 1"),
        (
            a_status(names.RUNNING, attempts=3),
            ["--attempt", "4"],
            "pi has no attempt 4\n  hint: its attempts are 1 to 3",
        ),
    ],
)
def test_a_worker_or_an_attempt_that_is_not_there_is_an_error_that_says_which_are(
    jobs: FakeJobs, status: Status, words: list[str], said: str
) -> None:
    jobs.add("pi", status)
    jobs.lines = {}
    result = oarsman(jobs, "logs", "pi", *words)
    assert (result.exit_code, result.stdout, result.stderr) == (4, "", f"error: {said}\n")


def test_a_worker_that_went_with_a_scale_down_has_left_its_lines(jobs: FakeJobs) -> None:
    jobs.add("pi", RUNNING)
    jobs.lines = {1: [a_line("written before", rank=5)]}
    assert "written before" in oarsman(jobs, "logs", "pi", "--worker", "5").stdout


@pytest.mark.parametrize(
    ("status", "command", "more"),
    [
        (replace(RUNNING, placement=PLACED), ["./start.sh"], []),
        (SUCCEEDED, ["./start.sh"], []),
        (SUCCEEDED, ["sh", "-c", "mpirun -np 2 a; mpirun -np 9 b"], []),
        (replace(SUCCEEDED, placement=PLACED), ["sh", "-c", "mpirun -np 4 a; mpirun -np 2 b"], []),
        (RUNNING, ["horovodrun", "-np", "2", "--max-np", "9", "--host-discovery-script", "./d", "./pi"], []),
        (a_status(names.RUNNING, attempts=2), ["mpirun", "-np", "2", "./pi"], ["--attempt", "1"]),
    ],
)
def test_a_rank_is_asked_for_where_only_the_launcher_knows_how_many_there_are(
    jobs: FakeJobs, status: Status, command: list[str], more: list[str]
) -> None:
    with_command(jobs, status, *command)
    assert oarsman(jobs, "logs", "pi", "--rank", "7", *more).exit_code == 0
    assert jobs.calls[-1][1].ranks == (7,)


def test_following_goes_on_through_later_attempts(jobs: FakeJobs) -> None:
    jobs.add("pi")
    jobs.lines = {1: [a_line("old")], 2: [a_line("first")], 3: [a_line("second")]}
    jobs.story = (a_status(names.RUNNING, attempts=2), RUNNING, a_status(names.SUCCEEDED, attempts=3))
    assert oarsman(jobs, "logs", "-f", "pi", "--no-tags", "--tail", "5").stdout == "first\nsecond\n"
    assert [(call[1].attempt, call[1].tail) for call in jobs.calls] == [(2, 5), (3, None)]


def test_logs_have_times_tags_and_a_form_for_programs(jobs: FakeJobs) -> None:
    jobs.add("pi")
    jobs.lines = {1: [a_line("héllo"), a_line("bad \udcff byte", 1, "err")]}
    assert oarsman(jobs, "logs", "pi", "--no-tags").stdout_bytes == "héllo\nbad ".encode() + b"\xff byte\n"
    line = oarsman(jobs, "logs", "pi", "--timestamps").stdout_bytes.decode("utf-8", "replace").splitlines()[0]
    assert line.endswith("[rank 0 pi-worker-0] héllo")
    assert line.startswith("2026-01-01T")
    first = json.loads(oarsman(jobs, "logs", "pi", "-o", "json").stdout_bytes.splitlines()[0])
    assert first == {
        "time": "2026-01-01T08:00:02.000000Z",
        "rank": 0,
        "host": "pi-worker-0",
        "stream": "out",
        "text": "héllo",
    }


def test_events_of_one_job_and_of_all(jobs: FakeJobs) -> None:
    jobs.add("pi")
    jobs.happened = [
        EventRecord(time=at(9), first_time=at(9), severity="Normal", reason="Late", message="two\nlines"),
        EventRecord(time=at(1), first_time=at(1), severity="Warning", reason="Early", message="m"),
    ]
    assert oarsman(jobs, "events", "pi").stdout.splitlines() == [
        "AGE    KIND     REASON  MESSAGE",
        "4m59s  Warning  Early   m",
        "4m51s  Normal   Late    two lines",
    ]
    assert oarsman(jobs, "events").stdout.split()[2] == "NAME"
    found = json.loads(oarsman(jobs, "events", "pi", "-o", "json").stdout)["items"]
    assert [(e["reason"], e["lastTimestamp"]) for e in found] == [
        ("Early", "2026-01-01T08:00:01.000000Z"),
        ("Late", "2026-01-01T08:00:09.000000Z"),
    ]


def test_top_shows_what_hosts_use(jobs: FakeJobs) -> None:
    jobs.add("pi")
    jobs.add("done", SUCCEEDED)
    jobs.uses = (
        HostUsage(
            host="pi-worker-0",
            role="worker",
            processes=2,
            cpu_percent=198.7,
            memory_bytes=3 << 20,
            memory_limit_bytes=4 << 30,
            gpus=(0, 1),
        ),
    )
    lines = oarsman(jobs, "top").stdout.splitlines()
    assert lines[1:] == ["pi    pi-worker-0  worker  2          199%  3.0 MiB  4.0 GiB  0,1"]
    assert json.loads(oarsman(jobs, "top", "pi", "-o", "json").stdout)[0]["memoryBytes"] == 3 << 20


@pytest.mark.parametrize(
    ("story", "goal", "code"),
    [
        ((RUNNING, SUCCEEDED), "succeeded", 0),
        ((RUNNING, SUCCEEDED), "Succeeded", 0),
        ((RUNNING, FAILED), "succeeded", 1),
        ((RUNNING, FAILED), "failed", 0),
        ((RUNNING, SUCCEEDED), "failed", 1),
        ((RUNNING, FAILED), "finished", 0),
        ((QUEUED, RUNNING), "running", 0),
        ((QUEUED, SUCCEEDED), "running", 1),
        ((RUNNING, a_status(names.SUSPENDED)), "suspended", 0),
        ((RUNNING, SUCCEEDED), "deleted", 0),
        ((RUNNING,), "finished", 1),
    ],
)
def test_waiting_ends_when_the_goal_is_met_or_cannot_be(
    jobs: FakeJobs, story: tuple[Status, ...], goal: str, code: int
) -> None:
    jobs.add("pi")
    jobs.story = story
    assert oarsman(jobs, "wait", "pi", "--for", goal).exit_code == code


def test_waiting_in_vain_ends_with_124(jobs: FakeJobs) -> None:
    jobs.add("pi")
    jobs.story, jobs.silent = (RUNNING,), True
    result = oarsman(jobs, "wait", "pi", "--for", "finished", "--timeout", "1s")
    assert (result.exit_code, result.stderr) == (124, "pi is not finished yet; the time is up\n")


def test_a_job_that_does_not_exist_is_deleted_but_nothing_else(jobs: FakeJobs) -> None:
    assert oarsman(jobs, "wait", "pi", "--for", "deleted").exit_code == 0
    assert oarsman(jobs, "wait", "pi", "--for", "finished").exit_code == 4


# -- runs ---------------------------------------------------------------------------------------------------
def two_runs(jobs: FakeJobs) -> None:
    jobs.records["default/pi#1"] = jobs.add("pi", FAILED, run=1)
    jobs.add("pi", SUCCEEDED, run=2)
    jobs.add("tau", RUNNING)


def test_the_history_of_a_job_has_its_runs_the_newest_first_and_why_they_failed(jobs: FakeJobs) -> None:
    two_runs(jobs)
    lines = oarsman(jobs, "history", "pi").stdout.splitlines()
    assert lines[0].split() == ["NAME", "RUN", "STATE", "SUBMITTED", "DURATION", "MESSAGE"]
    assert [line.split()[:3] for line in lines[1:]] == [["pi", "2", "Succeeded"], ["pi", "1", "Failed"]]
    assert "exited with code" in lines[2]


def test_without_a_name_the_history_is_that_of_every_job(jobs: FakeJobs) -> None:
    two_runs(jobs)
    data = json.loads(oarsman(jobs, "history", "-o", "json").stdout)
    found = [(one["name"], one["run"], one["state"]) for one in data if one["namespace"] == "default"]
    assert sorted(found) == [("pi", 1, "Failed"), ("pi", 2, "Succeeded"), ("tau", 1, "Running")]


@pytest.mark.parametrize("verb", ["logs", "describe"])
def test_an_earlier_run_is_shown_by_its_number(jobs: FakeJobs, verb: str) -> None:
    two_runs(jobs)
    assert oarsman(jobs, verb, "pi", "--run", "1").exit_code == 0
    missing = oarsman(jobs, verb, "pi", "--run", "7")
    assert (missing.exit_code, "pi#7" in missing.stderr) == (4, True)
    assert oarsman(jobs, verb, "pi", "--run", "0").exit_code == 2


def test_a_page_of_an_earlier_run_says_which_it_is_and_why_it_failed(jobs: FakeJobs) -> None:
    two_runs(jobs)
    first, newest = (oarsman(jobs, "describe", "pi", *words).stdout for words in (("--run", "1"), ()))
    assert ("Failed" in first, "Failed" in newest) == (True, False)
    assert "Run:        2" in newest
