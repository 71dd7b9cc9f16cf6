"""The API in this process: what it answers, to whom, and how it says no."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from oarsman import names
from oarsman.service.others import Others

from .asking import API, Asking
from .memory import FAILED, QUEUED, SUCCEEDED, a_document, at

PROBLEM = "application/problem+json"


def test_a_list_is_filtered_sorted_and_paged(ask: Asking) -> None:
    for number in range(5):
        ask.jobs.add(f"job-{number}", SUCCEEDED if number % 2 else FAILED, created_at=at(number))
    first = ask("GET", "/jobs", params={"limit": 2}).json()
    assert ([job["name"] for job in first["items"]], first["total"]) == (["job-4", "job-3"], 5)
    second = ask("GET", "/jobs", params={"limit": 2, "cursor": first["next"]}).json()
    assert [job["name"] for job in second["items"]] == ["job-2", "job-1"]
    failed = ask("GET", "/jobs", params={"state": "failed", "sort": "name"}).json()
    assert [job["name"] for job in failed["items"]] == ["job-0", "job-2", "job-4"]
    assert ask("GET", "/jobs", params={"search": "JOB-3"}).json()["total"] == 1


def test_what_was_just_made_is_in_the_list(ask: Asking) -> None:
    assert ask("GET", "/jobs").json()["total"] == 0
    made = ask("POST", "/jobs", json={"document": a_document("new")})
    assert (made.status_code, made.headers["location"]) == (201, "/api/v1/jobs/default/new")
    assert [job["owner"] for job in ask("GET", "/jobs").json()["items"]] == ["ada"]


CHANGES = [
    ("POST", "scale", {"workers": 3}),
    ("POST", "suspend", None),
    ("POST", "resume", None),
    ("POST", "stop", None),
]


@pytest.mark.parametrize(("method", "verb", "body"), CHANGES)
def test_a_job_is_changed_by_its_owner_and_by_nobody_else(
    ask: Asking, method: str, verb: str, body: dict[str, Any] | None
) -> None:
    ask.jobs.add()
    path = f"/jobs/default/pi/{verb}"
    assert ask(method, path, by="bob", json=body).status_code == 404
    refused = ask(method, path, by="vera", json=body)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert ask(method, path, by="", json=body).status_code == 401
    assert ask(method, path, json=body).status_code == 200
    assert [entry.what for entry in ask.store.audit.page().items] == [verb]


MADE: list[tuple[str, dict[str, Any]]] = [
    ("/jobs", {"document": a_document("new")}),
    ("/jobs/default/pi/rerun", {}),
    ("/jobs/default/pi/clone", {"name": "new"}),
    ("/plan", {"document": a_document("new")}),
]


@pytest.mark.parametrize(("path", "body"), MADE)
def test_whoever_may_only_look_has_nothing_run(ask: Asking, path: str, body: dict[str, Any]) -> None:
    ask.jobs.add(status=SUCCEEDED)
    assert ask("POST", path, by="vera", json=body).status_code == 403
    assert (len(ask.jobs.records()), ask.jobs.submitted) == (1, [])


READS = ["", "/runs", "/events", "/log", "/log/download", "/usage", "/progress", "/watch", "/log/stream"]


@pytest.mark.parametrize("what", READS)
def test_a_job_of_somebody_else_is_not_there(ask: Asking, what: str) -> None:
    ask.jobs.add(status=SUCCEEDED)
    assert ask("GET", f"/jobs/default/pi{what}", by="bob").status_code == 404
    if what not in ("/watch",):  # which lasts as long as the job does
        assert ask("GET", f"/jobs/default/pi{what}", by="vera").status_code == 200


@pytest.mark.parametrize("replace", [False, True])
def test_a_name_that_somebody_else_has_is_taken_and_nobody_is_told_to_delete_that_job(
    ask: Asking, replace: bool
) -> None:
    ask.jobs.add(status=SUCCEEDED)
    answer = ask("POST", "/jobs", by="bob", json={"document": a_document("pi"), "replace": replace})
    assert (answer.status_code, answer.json()["hint"]) == (409, "give this one another name")


def test_whoever_may_only_look_sees_no_secrets_in_a_job(ask: Asking) -> None:
    document = a_document()
    launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher["env"] = [{"name": "HF_TOKEN", "value": "s3cret"}, {"name": "http_proxy", "value": "http://me:s3cret@p"}]
    launcher["command"] = ["mpirun", "-x", "AWS_SECRET_ACCESS_KEY=s3cret", "./pi"]
    ask.jobs.add(document=document, metadata={"annotations": {"example.org/token": "s3cret"}}, status=SUCCEEDED)
    for path in ("/jobs/default/pi", "/jobs?documents=true"):
        hidden, whole = ask("GET", path, by="vera").text, [ask("GET", path, by=name).text for name in ("ada", "root")]
        assert ("s3cret" in hidden, "****" in hidden) == (False, True), path
        assert all("s3cret" in each for each in whole), path


RUN_READS = ["", "/events", "/log", "/log/download", "/usage", "/progress", "/log/stream"]


def an_earlier_run(ask: Asking, owner: str = "ada") -> None:
    """Of pi, with a secret, by that owner; the newest run is ada's."""
    document = a_document()
    launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher["env"] = [{"name": "HF_TOKEN", "value": "s3cret"}]
    ask.jobs.add(document=document, status=FAILED, owner=owner)
    ask.jobs.say("default/pi", "said by the first")
    ask.jobs.keep("default/pi")
    ask.jobs.add(status=SUCCEEDED, run=2)
    ask.jobs.say("default/pi", "said by the second")


def test_the_runs_of_a_job_are_listed_and_each_is_shown_with_its_log(ask: Asking) -> None:
    an_earlier_run(ask)
    runs = ask("GET", "/jobs/default/pi/runs").json()
    assert [(run["run"], run["state"], run["cause"]) for run in runs] == [
        (2, "Succeeded", ""),
        (1, "Failed", "rank 1 on pi-worker-0 exited with code 3"),
    ]
    first = ask("GET", "/jobs/default/pi", params={"run": 1}).json()
    assert (first["summary"]["run"], first["cause"]["rank"]) == (1, 1)
    for what in ("/log", "/log/download", "/log/stream"):
        said = {
            run: ask("GET", f"/jobs/default/pi{what}", params={"run": run} if run else {}).text for run in (None, 1)
        }
        assert ("the second" in said[None], "the first" in said[None]) == (True, False), what
        assert ("the second" in said[1], "the first" in said[1]) == (False, True), what
    assert ask("GET", "/jobs/default/pi", params={"run": 7}).status_code == 404
    assert ask("GET", "/jobs/default/pi", params={"run": 0}).status_code == 422


@pytest.mark.parametrize("what", RUN_READS)
def test_an_earlier_run_is_seen_by_whom_it_belongs_to(ask: Asking, what: str) -> None:
    """Whoever is an admin may replace the job of somebody else, and may be none any more."""
    an_earlier_run(ask, owner="bob")
    asked = {
        by: ask("GET", f"/jobs/default/pi{what}", by=by, params={"run": 1}).status_code for by in ("bob", "ada", "")
    }
    assert asked == {"bob": 200, "ada": 404, "": 401}


def test_only_runs_that_one_may_see_are_listed(ask: Asking) -> None:
    an_earlier_run(ask, owner="bob")
    listed = {by: ask("GET", "/jobs/default/pi/runs", by=by) for by in ("ada", "bob", "vera")}
    assert {by: answer.status_code for by, answer in listed.items()} == {"ada": 200, "bob": 404, "vera": 200}
    assert {by: len(listed[by].json()) for by in ("ada", "vera")} == {"ada": 1, "vera": 2}


def test_whoever_may_only_look_sees_no_secrets_in_an_earlier_run(ask: Asking) -> None:
    an_earlier_run(ask)
    hidden, whole = (ask("GET", "/jobs/default/pi", by=by, params={"run": 1}).text for by in ("vera", "ada"))
    assert ("s3cret" in hidden, "****" in hidden, "s3cret" in whole) == (False, True, True)


def test_hosts_and_the_queue_do_not_tell_a_user_about_others(ask: Asking) -> None:
    ask.jobs.add("mine", QUEUED)
    ask.jobs.add("theirs", QUEUED, owner="bob")
    (host,) = ask("GET", "/hosts").json()
    assert [holding["key"] for holding in host["holdings"]] == ["default/mine", ""]
    assert [entry["key"] for entry in ask("GET", "/queue").json()] == ["default/mine"]
    assert len(ask("GET", "/queue", by="vera").json()) == 2


def test_the_overview_counts_and_explains(ask: Asking) -> None:
    ask.jobs.add("a")
    ask.jobs.add("b", QUEUED)
    seen = ask("GET", "/overview").json()
    assert (seen["states"], seen["total"]["cpus"], seen["failures"]) == ({"Running": 1, "Queued": 1}, 8.0, [])


def test_a_mistake_in_a_manifest_is_told_with_its_place(ask: Asking) -> None:
    answer = ask("POST", "/jobs", json={"manifest": "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nspek: {}\n"})
    assert (answer.status_code, answer.headers["content-type"]) == (422, PROBLEM)
    problem = answer.json()
    assert problem["code"] == "invalid-manifest"
    assert (3, 1, "spek") in [(wrong["line"], wrong["column"], wrong["field"]) for wrong in problem["errors"]]


@pytest.mark.parametrize(
    ("method", "path", "given", "status", "code"),
    [
        ("GET", "/nothing", {}, 404, "not-found"),
        ("GET", "/jobs/default/none", {}, 404, "not-found"),
        ("PUT", "/jobs", {}, 405, "method-not-allowed"),
        ("GET", "/jobs?limit=0", {}, 422, "invalid"),
        ("GET", "/jobs?sort=colour", {}, 400, "usage"),
        ("GET", "/jobs?state=bogus", {}, 400, "usage"),
        ("GET", "/jobs?cursor=abc", {}, 400, "usage"),
        ("POST", "/jobs", {"content": b"{"}, 422, "invalid"),
        ("POST", "/jobs", {"json": {}}, 400, "usage"),
        ("POST", "/jobs", {"json": {"colour": 1}}, 422, "invalid"),
        ("POST", "/jobs", {"content": b" " * (1 << 20) + b"{}"}, 413, "too-large"),
        ("POST", "/convert", {"json": {"document": a_document(), "apiVersion": "v9"}}, 400, "usage"),
        ("GET", "/jobs/default/pi/log?after=nowhere", {}, 400, "user-error"),
        ("POST", "/jobs/default/ended/stop", {}, 409, "conflict"),
    ],
)
def test_every_no_is_a_problem_document(
    ask: Asking, method: str, path: str, given: dict[str, Any], status: int, code: str
) -> None:
    ask.jobs.add()
    ask.jobs.add("ended", SUCCEEDED)
    answer = ask(method, path, **given)
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM), answer.text
    assert {"status": status, "code": code}.items() <= answer.json().items()


def test_a_body_without_an_announced_length_is_cut_off_all_the_same(ask: Asking) -> None:
    def endless() -> Any:
        async def parts() -> Any:
            for _ in range(100):
                yield b" " * 65536

        return parts()

    assert ask("POST", "/preview", content=endless()).status_code == 413


def test_an_accident_is_a_problem_document_without_details(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(ask.jobs, "hosts", broken)
    answer = ask("GET", "/hosts")
    assert (answer.status_code, answer.headers["content-type"]) == (500, PROBLEM)
    assert "secret" not in answer.text


def test_a_field_that_is_wrong_is_named(ask: Asking) -> None:
    ask.jobs.add()
    (wrong,) = ask("POST", "/jobs/default/pi/scale", json={"workers": 0}).json()["errors"]
    assert wrong["field"] == "workers"


def test_nothing_in_a_log_is_anything_but_text(ask: Asking) -> None:
    ask.jobs.add(status=SUCCEEDED)
    nasty = "<script>\x1b[2J\x00 \ud800 \u202e\r"
    ask.jobs.say("default/pi", nasty)
    (line,) = ask("GET", "/jobs/default/pi/log").json()["lines"]
    assert line["text"] == nasty.replace("\ud800", "?")
    downloaded = ask("GET", "/jobs/default/pi/log/download")
    assert (downloaded.headers["content-type"], "<script>" in downloaded.text) == ("text/plain; charset=utf-8", True)


def test_a_finished_log_streams_to_its_end(ask: Asking) -> None:
    ask.jobs.add(status=SUCCEEDED)
    ask.jobs.say("default/pi", "one", "two", "three")
    whole = ask("GET", "/jobs/default/pi/log/stream")
    assert whole.headers["content-type"].startswith("text/event-stream")
    assert "id: 3\n" in whole.text
    assert whole.text.endswith("event: end\ndata: {}\n\n")
    rest = ask("GET", "/jobs/default/pi/log/stream", headers={"Last-Event-ID": "2"})
    assert ("two" in rest.text, "three" in rest.text) == (False, True)


def test_the_description_is_served_and_names_every_operation(ask: Asking) -> None:
    found = ask("GET", "/openapi.json", by="").json()
    names = [operation["operationId"] for path in found["paths"].values() for operation in path.values()]
    assert {"listJobs", "createJob", "followLog", "previewJob"} <= set(names)
    assert len(names) == len(set(names))
    assert "ProblemDetails" in found["components"]["schemas"]


# Their bodies are read before it is asked who sends them: two of them are the way in.
READ_FIRST = {("POST", "/session"), ("POST", "/session/cluster"), ("PUT", "/me/password")}


def test_whoever_shows_nothing_gets_nothing(ask: Asking) -> None:
    """On every route of the API, whichever there will be; nor does whoever shows something made up."""
    ask.jobs.add("pi", SUCCEEDED)
    answered = {}
    made_up = ({}, {"Authorization": "Bearer oar_made-up"}, {"Cookie": "oarsman-8470=made-up"})
    routes = [(method.upper(), path) for path, methods in ask.app.openapi()["paths"].items() for method in methods]
    for shown, (method, path) in itertools.product(made_up, routes):
        route = path.removeprefix(API)
        answer = ask(method, route, by="", json={}, headers=shown)
        if answer.status_code != (422 if (method, route) in READ_FIRST else 401):
            answered[method, route, str(shown)] = answer.status_code
    assert answered == {}


def test_a_description_has_no_secrets_for_anybody(ask: Asking) -> None:
    """It stands in rows that are made once for all."""
    document = a_document("told")
    document["metadata"]["annotations"] = {"oarsman.dev/description": "run with --password=sesame"}
    ask("POST", "/jobs", json={"document": document})
    assert ask("GET", "/jobs", by="vera").json()["items"][0]["description"] == "run with --password=****"


def test_jobs_of_everybody_with_an_account_are_kept_to_it(ask: Asking, tmp_path: Path) -> None:
    """An admin's too: whether somebody owns the machine is told by how they came in, and not by their role."""
    ask.console._others = Others(folder=tmp_path, hidden=(), here=False)
    for name in ("ada", "root"):
        made = ask("POST", "/jobs", by=name, json={"document": a_document(f"of-{name}")})
        assert made.status_code == 201, made.text
        assert names.ENV_CONFINED in ask.jobs.submitted[-1]["environment"], name
