"""`submit`, `scale`, `suspend`, `resume`, `stop`, `delete`: what they do and what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oarsman import names

from .fakes import FAILED, MANIFEST, RUNNING, SUCCEEDED, FakeJobs, oarsman

TWO = MANIFEST + "---\n" + MANIFEST.replace("name: pi}", "name: tau}", 1)


def test_submit_prints_names_and_returns(jobs: FakeJobs) -> None:
    result = oarsman(jobs, "submit", "-", stdin=TWO)
    assert (result.stdout, result.stderr, result.exit_code) == ("pi\ntau\n", "", 0)
    assert [call[1] for call in jobs.calls] == ["default/pi", "default/tau"]


def test_one_mistake_and_nothing_is_submitted(jobs: FakeJobs, manifest: str) -> None:
    result = oarsman(jobs, "submit", manifest, "-", stdin=MANIFEST.replace("replicas: 2", "replicas: none"))
    assert result.exit_code == 2
    assert "<stdin>:" in result.stderr
    assert jobs.calls == []


def test_submit_has_every_form(jobs: FakeJobs, manifest: str) -> None:
    assert oarsman(jobs, "submit", manifest, "-o", "name").stdout == "mpijob/pi\n"
    one = json.loads(oarsman(jobs, "submit", "--replace", manifest, "-o", "json").stdout)
    assert one["metadata"]["name"] == "pi"
    many = json.loads(oarsman(jobs, "submit", "--replace", "-o", "json", "-", stdin=TWO).stdout)
    assert [item["metadata"]["name"] for item in many["items"]] == ["pi", "tau"]


def test_submit_and_wait_ends_with_the_jobs_code(jobs: FakeJobs, manifest: str) -> None:
    jobs.story = (RUNNING, FAILED)
    result = oarsman(jobs, "submit", "--wait", manifest)
    assert (result.stdout, result.exit_code) == ("pi\n", 3)
    assert "rank 1 on pi-worker-0 exited with code 3" in result.stderr
    jobs.story = (RUNNING, SUCCEEDED)
    assert oarsman(jobs, "submit", "--replace", "--wait", manifest).exit_code == 0


def test_the_namespace_option_fills_in_and_never_overrules(jobs: FakeJobs) -> None:
    assert oarsman(jobs, "submit", "--namespace", "lab", "-", stdin=MANIFEST).stdout == "lab/pi\n"
    other = MANIFEST.replace("{name: pi}", "{name: pi, namespace: home}")
    result = oarsman(jobs, "submit", "--namespace", "lab", "-", stdin=other)
    assert result.exit_code == 2
    assert "field: metadata.namespace" in result.stderr


def test_a_folder_that_is_gone_is_said_so(jobs: FakeJobs, manifest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> Path:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "cwd", gone)
    result = oarsman(jobs, "submit", manifest)
    assert (result.exit_code, jobs.calls) == (2, [])
    assert result.stderr.startswith("error: the current folder is gone\n")


@pytest.mark.parametrize(
    ("words", "call", "said"),
    [
        (["scale", "pi", "4"], ("scale", "default/pi", 4), "pi is to have 4 workers"),
        (["scale", "pi", "--workers", "4"], ("scale", "default/pi", 4), "pi is to have 4 workers"),
        (["scale", "pi", "--replicas", "1"], ("scale", "default/pi", 1), "pi is to have 1 worker"),
        (["suspend", "pi"], ("suspend", "default/pi"), "pi is being suspended"),
        (["resume", "mpijob/pi"], ("resume", "default/pi"), "pi is resumed"),
        (["stop", "pi"], ("stop", "default/pi"), "pi is being stopped"),
        (["delete", "pi"], ("delete", "default/pi"), "pi deleted"),
    ],
)
def test_a_change_is_made_and_said(jobs: FakeJobs, words: list[str], call: tuple[object, ...], said: str) -> None:
    jobs.add("pi")
    result = oarsman(jobs, *words)
    assert (result.stdout, result.exit_code) == (said + "\n", 0)
    assert jobs.calls == [call]
    jobs.add("pi")
    assert oarsman(jobs, *words, "-q").output == ""
    jobs.add("pi")
    assert oarsman(jobs, *words, "-o", "name").stdout == "mpijob/pi\n"
    jobs.records.clear()
    assert oarsman(jobs, *words).exit_code == 4


@pytest.mark.parametrize("words", [["scale", "pi"], ["scale", "pi", "2", "--workers", "3"], ["scale", "pi", "0"]])
def test_scale_wants_one_number(jobs: FakeJobs, words: list[str]) -> None:
    jobs.add("pi")
    assert oarsman(jobs, *words).exit_code == 2
    assert jobs.calls == []


def test_delete_goes_on_after_a_missing_job(jobs: FakeJobs) -> None:
    jobs.add("pi")
    result = oarsman(jobs, "delete", "nope", "pi")
    assert (result.stdout, result.exit_code) == ("pi deleted\n", 4)
    assert jobs.records == {}


def test_delete_all_stays_in_its_namespace(jobs: FakeJobs) -> None:
    jobs.add("pi")
    jobs.add("tau", namespace="other")
    assert oarsman(jobs, "delete", "--all", "--yes", "--namespace", "other").stdout == "other/tau deleted\n"
    assert list(jobs.records) == ["default/pi"]


@pytest.mark.parametrize("there", [("pi",), ()])
def test_delete_all_without_a_terminal_wants_a_yes_before_it(jobs: FakeJobs, there: tuple[str, ...]) -> None:
    for name in there:
        jobs.add(name)
    result = oarsman(jobs, "delete", "--all")
    assert result.exit_code == 2
    assert "this deletes every job and asks first" in result.stderr
    assert "--yes answers the question" in result.stderr
    assert len(jobs.records) == len(there)


@pytest.mark.parametrize("words", [[], ["pi", "--all"]])
def test_delete_wants_names_or_all(jobs: FakeJobs, words: list[str]) -> None:
    jobs.add("pi")
    assert oarsman(jobs, "delete", *words).exit_code == 2
    assert names.DEFAULT_NAMESPACE + "/pi" in jobs.records


@pytest.mark.parametrize(("answer", "left"), [("n\n", 1), ("y\n", 0), ("", 1)])
def test_delete_all_on_a_terminal_asks(jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch, answer: str, left: int) -> None:
    from oarsman.cli import change

    class Terminal:
        class stdin:
            @staticmethod
            def isatty() -> bool:
                return True

    monkeypatch.setattr(change, "sys", Terminal)
    jobs.add("pi")
    result = oarsman(jobs, "delete", "--all", stdin=answer)
    assert len(jobs.records) == left
    assert "Delete 1 jobs with their logs?" in result.stderr
    jobs.add("pi")
    assert oarsman(jobs, "delete", "--all", "--yes").exit_code == 0
    assert jobs.records == {}
