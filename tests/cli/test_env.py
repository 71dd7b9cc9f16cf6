"""`oarsman env`, and jobs that are sent with an environment."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from oarsman import names
from oarsman.job.environment import BuildLog, EnvironmentRecord, EnvironmentWanted

from .fakes import FakeJobs, oarsman


@pytest.fixture
def requirements(tmp_path: Path) -> str:
    path = tmp_path / "requirements.txt"
    path.write_text("numpy\n")
    return str(path)


def built(jobs: FakeJobs, name: str = "torch", **given: object) -> EnvironmentRecord:
    asyncio.run(jobs.environments.put(EnvironmentWanted(name=name, requirements="numpy", description="for training")))
    return jobs.environments.become(name, "Ready", python="3.11.4", packages=("numpy==2.1.0",), **given)


class Ending:
    """A build that ends in front of whoever reads its log."""

    def __init__(self, jobs: FakeJobs, state: str, message: str = "") -> None:
        self._jobs, self._pieces, self._end = jobs, ["Collecting numpy\nInst", "", "alling\n"], (state, message)

    async def __call__(self, name: str, *, after: int = 0) -> BuildLog:
        text = self._pieces.pop(0)
        if not self._pieces:
            self._jobs.environments.become(name, *self._end, python="3.11.4", packages=("numpy==2.1.0",))  # type: ignore[arg-type]
        return BuildLog(text=text, after=after + len(text), ended=not self._pieces)


def test_a_build_shows_its_log_as_it_comes(jobs: FakeJobs, requirements: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oarsman.cli.env._LOOK_EVERY", 0.0)
    monkeypatch.setattr(jobs.environments, "log", Ending(jobs, "Ready"))
    result = oarsman(jobs, "env", "build", "torch", "-r", requirements, "-p", "scipy", "--python", "3.11")
    assert (result.exit_code, result.stdout) == (0, "Collecting numpy\nInstalling\n")
    assert result.stderr == "torch is ready: Python 3.11.4, 1 packages\n"
    wanted = jobs.environments.records["torch"].wanted
    assert (wanted.requirements, wanted.python, wanted.mpi) == ("numpy\n\nscipy", "3.11", None)


def test_a_build_that_fails_says_why_and_ends_with_1(jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oarsman.cli.env._LOOK_EVERY", 0.0)
    monkeypatch.setattr(jobs.environments, "log", Ending(jobs, "Failed", "no such package"))
    result = oarsman(jobs, "env", "build", "torch", "-p", "nonsense", "-o", "json")
    assert result.exit_code == 1
    assert (json.loads(result.stdout)["state"], json.loads(result.stdout)["message"]) == ("Failed", "no such package")
    assert "Installing" in result.stderr
    assert result.stderr.endswith("torch could not be built: no such package\n")


def test_without_waiting_it_is_only_begun(jobs: FakeJobs) -> None:
    result = oarsman(jobs, "env", "build", "torch", "--no-wait", "--mpi", "mpich")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "torch is being built; `oarsman env log torch -f` shows how it goes\n"
    assert jobs.environments.records["torch"].wanted.mpi == "mpich"


def test_what_is_ready_already_is_said_at_once(jobs: FakeJobs) -> None:
    jobs.environments.next = "Ready"
    jobs.environments.logs["torch"] = "of long ago\n"
    assert "of long ago" not in oarsman(jobs, "env", "build", "torch").output


def test_they_are_listed_and_shown(jobs: FakeJobs) -> None:
    assert oarsman(jobs, "env", "list").stderr == "no environments\n"
    built(jobs, used_by=("default/pi",), size_bytes=10 << 20)
    heads, row = oarsman(jobs, "env", "list").stdout.splitlines()
    assert heads.split() == ["NAME", "STATE", "PYTHON", "MPI", "PACKAGES", "SIZE", "JOBS", "OWNER"]
    assert row.split() == ["torch", "Ready", "3.11.4", "-", "1", "10", "MiB", "1", "ada"]
    assert oarsman(jobs, "env", "list", "-o", "name").stdout == "torch\n"
    (listed,) = json.loads(oarsman(jobs, "env", "list", "-o", "json").stdout)
    assert listed == json.loads(oarsman(jobs, "env", "show", "torch", "-o", "json").stdout)
    assert (listed["spec"]["name"], listed["usedBy"], listed["sizeBytes"]) == ("torch", ["default/pi"], 10 << 20)
    page = oarsman(jobs, "env", "show", "torch").stdout
    assert all(text in page for text in ("for training", "default/pi", "numpy==2.1.0", "Asked for"))


def test_a_log_is_shown_and_nothing_in_it_acts_on_the_terminal(jobs: FakeJobs) -> None:
    built(jobs)
    jobs.environments.logs["torch"] = "one\ntwo without end"
    assert oarsman(jobs, "env", "log", "torch", "-f").stdout == "one\ntwo without end\n"


def test_they_are_deleted_unless_they_are_used(jobs: FakeJobs) -> None:
    built(jobs)
    built(jobs, "busy", used_by=("default/pi",))
    assert oarsman(jobs, "env", "delete", "torch").stdout == "torch deleted\n"
    assert oarsman(jobs, "env", "delete", "busy").exit_code == 5
    missing = oarsman(jobs, "env", "show", "torch")
    assert (missing.exit_code, missing.stderr.splitlines()[0]) == (4, "error: there is no environment torch")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["No"], "name"),
        (["torch", "--python", "2"], "python"),
        (["torch", "-r", "none.txt"], "none.txt cannot be read"),
    ],
)
def test_what_is_wrong_is_named(jobs: FakeJobs, words: list[str], said: str) -> None:
    result = oarsman(jobs, "env", "build", *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert jobs.environments.records == {}


def test_a_job_is_sent_with_an_environment_and_install_commands(jobs: FakeJobs, manifest: str) -> None:
    told = {names.ANNOTATION_ENVIRONMENT: "torch", names.ANNOTATION_INSTALL: "make data"}
    for words in ([manifest], ["-n", "2", "--name", "pi", "--env", "A=1", "./pi"]):
        options = ["--environment", "torch", "--install", "make data"]
        assert oarsman(jobs, "submit", "--replace", *options, *words).exit_code == 0
        assert dict(jobs.records["default/pi"].job.annotations) == told
