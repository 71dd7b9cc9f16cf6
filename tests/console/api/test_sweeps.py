"""Sweeps through REST and from Python: what each answers, and to whom."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oarsman.client import sweeps as sdk_sweeps
from oarsman.client.async_client import AsyncClient
from oarsman.client.client import Client
from oarsman.client.remote import RemoteService
from oarsman.errors import ConflictError, JobFailed, ManifestError, NotFoundError, UsageError
from oarsman.manifest import to_yaml
from oarsman.service import JobService
from oarsman.service.models import Identity, JobQuery, Role

from .asking import SITE, Asking, InThisProcess, asking
from .memory import FAILED, RUNNING, SUCCEEDED, MemoryJobs, a_document

MANIFEST = to_yaml([a_document("x", slotsPerWorker="{{slots}}")])
SPEC: dict[str, Any] = {"name": "s", "manifest": MANIFEST, "grid": {"slots": [2, 3, 4]}, "metric": "loss: (\\S+)"}
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Asking]:
    with asking(tmp_path) as found:
        yield found


def test_a_sweep_that_is_not_begun_says_how_many_points_it_has_and_the_first(ask: Asking) -> None:
    wanted = {**SPEC, "grid": {"slots": [2, 3, 4], "lr": [1, 2, 3, 4]}}
    found = ask("POST", "/sweeps/preview", json=wanted).json()
    assert (found["total"], found["parameters"], found["problems"]) == (12, ["slots", "lr"], [])
    assert found["points"] == [{"slots": 2, "lr": n} for n in (1, 2, 3, 4)] + [{"slots": 3, "lr": 1}]
    assert ask.jobs.records() == []
    made(ask)
    assert ask("POST", "/sweeps/preview", json=SPEC).json()["resumes"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"grid": {"2": [1]}}, "grid"),
        ({"grid": {"slots": []}}, "grid"),
        ({"metric": "loss: ("}, "metric"),
        ({"metric": "loss"}, "metric"),
        ({"grid": {"lr": [1]}}, "slotsPerWorker"),
        ({"grid": {"slots": ["many"]}}, "spec.slotsPerWorker"),
    ],
)
def test_what_is_wrong_with_a_sweep_is_told_with_its_field_before_it_is_begun(
    ask: Asking, wrong: dict[str, Any], field: str
) -> None:
    found = ask("POST", "/sweeps/preview", json={**SPEC, **wrong}).json()
    assert [problem["field"] for problem in found["problems"]] == [field]
    assert found["total"] == 0


@pytest.mark.parametrize("field", ["retries", "atOnce"])
def test_true_and_false_are_no_numbers(ask: Asking, field: str) -> None:
    """The description says so, and a client that sends one means something else."""
    answer = ask("POST", "/sweeps/preview", json={**SPEC, field: True})
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_the_name_of_another_sweep_is_told_before_one_is_begun(ask: Asking) -> None:
    made(ask)
    found = ask("POST", "/sweeps/preview", json={**SPEC, "grid": {"slots": [7]}}).json()
    assert [(one["field"], one["message"]) for one in found["problems"]] == [
        ("name", "there is another sweep default/s already")
    ]


def made(ask: Asking, **given: Any) -> dict[str, Any]:
    answer = ask("POST", "/sweeps", json={**SPEC, **given})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_sweep_is_begun_listed_and_shown(ask: Asking) -> None:
    answer = ask("POST", "/sweeps", json=SPEC)
    assert (answer.status_code, answer.headers["Location"]) == (201, "/api/v1/sweeps/default/s")
    assert [job.job.name for job in ask.jobs.records()] == ["s-0000", "s-0001", "s-0002"]
    ask.jobs.become("default/s-0000", SUCCEEDED)
    ask.jobs.say("default/s-0000", "loss: 3", "loss: 0.5")
    ask.jobs.become("default/s-0001", FAILED)
    ask.jobs.become("default/s-0002", RUNNING)
    view = until(ask, "Running", Succeeded=1, Failed=1, Running=1)
    assert [point["metric"] for point in view["points"]] == [0.5, None, None]
    assert view["points"][1]["cause"] == "rank 1 on pi-worker-0 exited with code 3"
    assert (view["parameters"], view["owner"], view["total"]) == (["slots"], "ada", 3)
    (listed,) = ask("GET", "/sweeps").json()
    assert listed == {**view, "points": []}
    assert ask("GET", "/jobs", params={"sweep": "s", "state": "Failed"}).json()["total"] == 1
    assert ask("GET", "/jobs", params={"sweep": "other"}).json()["total"] == 0


def until(ask: Asking, state: str, **states: int) -> dict[str, Any]:
    """The job index hears of changes by itself."""
    while True:
        view: dict[str, Any] = ask("GET", "/sweeps/default/s").json()
        if (view["state"], view["states"]) == (state, states):
            return view


def test_results_are_a_file_for_spreadsheets_that_runs_nothing(ask: Asking) -> None:
    made(ask, grid={"slots": [2], "state": ["=1+1", "-5"]})
    answer = ask("GET", "/sweeps/default/s/results.csv")
    assert answer.headers["Content-Type"].startswith("text/csv")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="s.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["parameter_state"] for row in rows] == ["'=1+1", "-5"]
    assert [row["job"] for row in rows] == ["default/s-0000", "default/s-0001"]


@pytest.mark.parametrize(
    ("given", "status", "about"),
    [
        ({"manifest": "a: ["}, 422, "manifest"),
        ({"grid": {"slots": [2, "many"]}}, 422, "point 1"),
        ({"grid": {"other": [2]}}, 400, "{{slots}}"),
        ({"grid": {}}, 400, "a grid or a list"),
        ({"metric": "("}, 400, "pattern"),
        ({"name": "No"}, 422, "name"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_submitted(
    ask: Asking, given: dict[str, Any], status: int, about: str
) -> None:
    answer = ask("POST", "/sweeps", json={**SPEC, **given})
    assert answer.status_code == status, answer.text
    assert about in answer.text
    assert ask.jobs.records() == []


def test_stop_resume_and_delete(ask: Asking) -> None:
    made(ask, at_once=None)
    stopped = ask("POST", "/sweeps/default/s/stop").json()
    assert stopped["states"] == {"Stopping": 3}
    assert ask("POST", "/sweeps/default/s/resume").status_code == 200
    assert ask("DELETE", "/sweeps/default/s").status_code == 204
    assert ask.jobs.records() == []
    assert ask("GET", "/sweeps/default/none").status_code == 404
    noted = [entry.what for entry in ask.store.audit.page().items]
    assert {"begin sweep", "stop sweep", "resume sweep", "delete sweep"} <= set(noted)


def test_the_server_hands_in_the_rest_when_points_have_ended(ask: Asking) -> None:
    view = made(ask, atOnce=1)
    assert (view["state"], view["states"]) == ("Running", {"Pending": 1, "NotSubmitted": 2})
    for index in range(3):
        wait_for(ask.jobs, f"default/s-000{index}")
        ask.jobs.become(f"default/s-000{index}", SUCCEEDED)
    until(ask, "Succeeded", Succeeded=3)


def wait_for(jobs: MemoryJobs, key: str) -> None:
    with jobs._change:
        assert jobs._change.wait_for(lambda: key in jobs._records, 120)


def test_a_sweep_belongs_to_whom_it_was_begun_for(ask: Asking) -> None:
    made(ask)
    for method, path in (("GET", ""), ("POST", "/stop"), ("POST", "/resume"), ("DELETE", ""), ("GET", "/results.csv")):
        assert ask(method, f"/sweeps/default/s{path}", by="bob").status_code == 404, path
        expected = 200 if method == "GET" else 403
        assert ask(method, f"/sweeps/default/s{path}", by="vera").status_code == expected, path
    assert ask("GET", "/sweeps", by="bob").json() == []
    assert ask("POST", "/sweeps", by="bob", json=SPEC).status_code == 409
    assert ask("POST", "/sweeps", by="vera", json=SPEC).status_code == 403
    assert len(ask("GET", "/sweeps", by="root").json()) == 1


def test_whoever_may_only_look_sees_no_secrets_in_a_sweep(ask: Asking) -> None:
    """Its first job has all of its manifest in an annotation."""
    document = a_document("x")
    launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    launcher["env"] = [{"name": "HF_TOKEN", "value": "s3cret"}]
    made(ask, manifest=to_yaml([document]), grid={"token": ["s3cret"], "n": [1, 2]})
    paths = ("/sweeps/default/s", "/sweeps/default/s/results.csv", "/jobs/default/s-0000", "/jobs?documents=true")
    for path in paths:
        shown, whole = ask("GET", path, by="vera").text, ask("GET", path).text
        assert ("s3cret" in shown, "****" in shown, "s3cret" in whole) == (False, True, True), path


def test_a_sweep_without_its_first_job_is_still_shown_stopped_and_deleted(ask: Asking) -> None:
    made(ask)
    ask.jobs.vanish("default/s-0000")
    view = until(ask, "Running", NotSubmitted=1, Pending=2)
    assert view["parameters"] == []
    assert ask("POST", "/sweeps/default/s/resume").status_code == 409
    assert ask("DELETE", "/sweeps/default/s").status_code == 204


# -- from Python --------------------------------------------------------------------------------------
@pytest.fixture(params=["here", "remote"])
def client(request: pytest.FixtureRequest, ask: Asking, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(sdk_sweeps, "_LOOK_EVERY", 0.01)
    service: Any = (
        JobService(ask.jobs, Identity(name="ada", role=Role.USER))
        if request.param == "here"
        else RemoteService(SITE.address, token=ask.tokens["ada"], transport=InThisProcess(ask))
    )
    with Client(service=service) as found:
        yield found


def test_a_program_begins_waits_and_reads_results(client: Client, ask: Asking) -> None:
    handle = client.sweep(MANIFEST, "s", {"slots": [2, 3]}, metric=r"loss: (\S+)")
    assert (handle.key, handle.state, len(handle.points)) == ("default/s", "Running", 2)
    with pytest.raises(TimeoutError):
        handle.wait(0)
    for index in range(2):
        ask.jobs.say(f"default/s-000{index}", f"loss: {index}")
        ask.jobs.become(f"default/s-000{index}", FAILED if index else SUCCEEDED)
    assert handle.wait(120).state == "Failed"
    rows = handle.results()
    assert [(row["slots"], row["state"], row["metric"]) for row in rows] == [(2, "Succeeded", 0), (3, "Failed", 1)]
    assert handle.to_csv().startswith("point,slots,state,metric,")
    assert handle.job(1).state == "Failed"
    with pytest.raises(JobFailed, match="1 of 2 points did not succeed; point 1: rank 1"):
        handle.wait(check=True)
    assert [view.name for view in client.sweeps.list()] == ["s"]
    assert [job.name for job in client.jobs(sweep="s", sort="name")] == ["s-0000", "s-0001"]
    assert client.sweeps.get("s").resume().state == "Failed"
    with pytest.raises(ConflictError, match="has ended already"):
        client.sweeps.get("s").stop()
    handle.delete()
    with pytest.raises(NotFoundError):
        client.sweeps.get("s")


def test_mistakes_raise_the_same_errors_wherever_the_work_is_done(client: Client) -> None:
    with pytest.raises(UsageError, match="name"):
        client.sweep(MANIFEST, "No Name", {"slots": [1]})
    with pytest.raises(ManifestError, match="point 0"):
        client.sweep(MANIFEST, "s", {"slots": ["many"]})
    client.sweep(MANIFEST, "s", {"slots": [2]})
    with pytest.raises(ConflictError):
        client.sweep(MANIFEST, "s", {"slots": [3]})


def test_commands_and_documents_are_swept_too(client: Client, ask: Asking) -> None:
    client.sweep(["train", "--lr={{lr}}"], "words", points=[{"lr": 0.5}], workers=2)
    client.sweep(a_document("x", slotsPerWorker="{{n}}"), "dict", {"n": [3]})
    assert ask.jobs.record("default/words-0000").job.launcher.container.argv[-1] == "--lr=0.5"
    assert ask.jobs.record("default/dict-0000").job.slots_per_worker == 3


def test_a_notebook_shows_a_table_and_never_markup(client: Client, ask: Asking) -> None:
    handle = client.sweep(["train", "{{word}}"], "s", {"word": [MARKUP]})
    assert repr(handle) == "<sweep default/s Running, 1 points: 1 Pending>"
    for html in (handle._repr_html_(), handle.results()._repr_html_(), client.sweeps.list()._repr_html_()):  # type: ignore[attr-defined]
        assert "<table>" in html
        assert "<img" not in html


def test_the_same_in_an_event_loop(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_sweeps, "_LOOK_EVERY", 0.01)

    async def story() -> None:
        remote: Any = RemoteService(SITE.address, token=ask.tokens["ada"], transport=InThisProcess(ask))
        async with AsyncClient(service=remote) as client:
            handle = await client.sweep(MANIFEST, "s", {"slots": [2]})
            ask.jobs.become("default/s-0000", SUCCEEDED)
            assert (await handle.wait(120)).state == "Succeeded"
            assert [view.key for view in await client.sweeps.list()] == ["default/s"]
            again = await client.sweeps.get("s")
            with pytest.raises(ConflictError, match="has ended already"):
                await again.stop()
            assert (await again.resume()).results()[0]["state"] == "Succeeded"
            await again.delete()

    asyncio.run(story())


def test_a_query_by_sweep_is_part_of_every_list() -> None:
    assert JobQuery(sweep="s").model_dump(exclude_defaults=True) == {"sweep": "s"}


def test_whoever_may_only_look_sees_no_secrets_among_the_parameters_of_a_sweep(ask: Asking) -> None:
    """Neither among the parameters nor in what is kept of the sweep with its first job."""
    container = {"name": "c", "env": [{"name": "DB_PASSWORD", "value": "sesame"}]}
    manifest = MANIFEST + "".join(f"# {key}: {value}\n" for key, value in container.items())
    made(ask, manifest=manifest, grid={"slots": [2], "api_token": ["sesame", "other"], "fast": [True, 1]})
    for path in ("/sweeps/default/s", "/sweeps/default/s/results.csv", "/jobs/default/s-0000"):
        assert "sesame" in ask("GET", path).text
        assert "sesame" not in ask("GET", path, by="vera").text, path
    points = ask("GET", "/sweeps/default/s", by="vera").json()["points"]
    assert points[0]["parameters"] == {"slots": 2, "api_token": "****", "fast": True}
    assert points[1]["parameters"]["fast"] == 1
    assert points[1]["parameters"]["fast"] is not True
