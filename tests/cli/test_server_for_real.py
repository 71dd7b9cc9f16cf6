"""`--server`: every verb says through a real server what it says in this process, about the same jobs."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from console.api.running import Served, served

from oarsman.cli.main import cli
from oarsman.cli.session import Session

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]
NOW = datetime(2030, 1, 1, tzinfo=UTC)
PROGRAM = "import os, sys; print('rank', os.environ['OMPI_COMM_WORLD_RANK'], flush=True); sys.exit({code})"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("server") / "state") as found:
        yield found


@pytest.fixture(scope="module")
def token(server: Served) -> str:
    with server.client() as browser:
        return str(browser.post("/api/v1/tokens", json={"note": "tests"}).json()["secret"])


Call = Callable[..., Result]


@pytest.fixture
def here(server: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """The command in this process, on the state of the server, in its folder."""
    for name in ("OARSMAN_STATE", "PATH"):
        monkeypatch.setenv(name, server.environment[name])
    for name in ("OARSMAN_SERVER", "OARSMAN_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.chdir(Path(server.environment["OARSMAN_STATE"]).parent)

    def call(*words: str, stdin: str | None = None, **env: str) -> Result:
        session = Session(now=lambda: NOW)
        return CliRunner().invoke(cli, words, input=stdin, obj=session, env=env, catch_exceptions=False)

    return call


@pytest.fixture
def there(here: Call, server: Served, token: str) -> Call:
    def call(*words: str, **more: str) -> Result:
        return here("--server", server.address, *words, OARSMAN_TOKEN=token, **more)

    return call


@pytest.fixture
def ended(here: Call) -> None:
    """Two jobs that have ended, one well and one not, and a sweep."""
    if "pi" in here("list", "-o", "name").stdout:
        return
    for name, code in (("pi", 0), ("bad", 3)):
        words = ("run", "-n", "2", "--workers", "1", "--name", name, "--", "python3", "-c", PROGRAM.format(code=code))
        assert here(*words).exit_code == code
    sweep = ("sweep", "run", "--name", "rates", "--grid", "lr=1,2", "--metric", "rank ([0-9]+)", "-n", "1", "--")
    assert here(*sweep, "python3", "-c", PROGRAM.format(code=0)).exit_code == 0


LOOKING = [
    "list",
    "list -o wide",
    "list -o json",
    "list -o yaml",
    "list -o name",
    "list --state failed",
    "get pi bad",
    "get pi -o yaml",
    "get bad -o json",
    "describe pi bad",
    "logs pi",
    "logs pi -f",
    "logs pi --tail 1 --timestamps",
    "logs pi --tail 1 -f",
    "logs pi --rank 1 -o json",
    "logs pi --rank 7",
    "logs pi --since 2020-01-01 --no-tags",
    "logs pi --since 2029-01-01",
    "logs bad --launcher",
    "events pi",
    "events -o json",
    "wait pi --for succeeded",
    "wait bad --for succeeded",
    "wait nosuch --for deleted",
    "top",
    "top -o json",
    "plan -n 2 --name pi -- ./solver",
    "plan -n 2 --name pi -o json -- ./solver",
    "sweep list",
    "sweep show rates",
    "sweep show rates -o csv",
    "sweep show nosuch",
    "env list",
    "env show nosuch",
    "stop pi",
    "suspend nosuch",
    "scale pi 3",
    "resume bad",
    "delete nosuch",
    "get pl",
]


def test_what_is_asked_is_answered_the_same_by_a_server(ended: None, here: Call, there: Call) -> None:
    different = {}
    for line in LOOKING:
        ours, theirs = here(*line.split()), there(*line.split())
        if (ours.exit_code, ours.stdout, ours.stderr) != (theirs.exit_code, theirs.stdout, theirs.stderr):
            different[line] = (ours.output, theirs.output, theirs.exit_code)
    assert different == {}


def test_a_mistake_that_only_the_place_can_see_is_told_by_a_server(here: Call, there: Call) -> None:
    words = ("plan", "-n", "2", "--name", "pi", "--environment", "nosuch", "--", "./solver")
    ours, theirs = here(*words), there(*words)
    assert (ours.exit_code, theirs.exit_code) == (2, 2)
    assert theirs.stderr == ours.stderr.replace("pi: ", "<manifest>: ", 1)


def test_a_job_runs_through_a_server_with_its_lines_and_its_exit_code(there: Call) -> None:
    run = there("run", "-n", "2", "--name", "far", "--workers", "1", "--", "python3", "-c", PROGRAM.format(code=7))
    assert run.exit_code == 7
    assert sorted(re.findall(r"rank \d far-worker-0\] rank (\d)", run.stdout)) == ["0", "1"]
    assert "cause: " in run.stderr
    assert there("submit", "-n", "1", "--name", "far", "--", "true").exit_code == 5
    assert there("submit", "--replace", "--wait", "-n", "1", "--name", "far", "--", "true").stdout == "far\n"
    assert there("delete", "--wait", "far").stdout == "far deleted\n"
    assert there("get", "far").exit_code == 4


def test_jobs_are_changed_through_a_server(there: Call) -> None:
    assert there("submit", "-n", "1", "--workers", "1", "--name", "long", "--", "sleep", "600").stdout == "long\n"
    assert there("wait", "long", "--for", "running").stdout == "long is Running\n"
    assert "long-worker-0" in there("top", "long").stdout
    assert there("wait", "long", "--for", "succeeded", "--timeout", "1").exit_code == 124
    assert there("suspend", "long").stdout == "long is being suspended\n"
    assert there("wait", "long", "--for", "suspended").stdout == "long is Suspended\n"
    assert there("scale", "long", "2").stdout == "long is to have 2 workers\n"
    assert there("resume", "long").stdout == "long is resumed\n"
    assert json.loads(there("stop", "long", "-o", "json").stdout)["metadata"]["name"] == "long"
    assert there("wait", "long", "--for", "failed").exit_code == 0
    assert there("delete", "--wait", "long").exit_code == 0


def test_a_sweep_runs_through_a_server(there: Call) -> None:
    words = ("sweep", "run", "--name", "far", "--grid", "lr=1,2,3", "--at-once", "1", "-n", "1", "--", "true", "{{lr}}")
    done = there(*words)
    assert (done.exit_code, done.stderr) == (0, "far: 3 of 3 succeeded, 0 failed\n")
    assert [row.split()[2] for row in done.stdout.splitlines()[1:]] == ["Succeeded"] * 3
    assert there("sweep", "resume", "far").exit_code == 0
    assert there("sweep", "delete", "far").stdout == "far deleted\n"


def test_lines_are_followed_through_a_server_until_the_job_ends(there: Call) -> None:
    assert there("submit", "-n", "1", "--workers", "1", "--name", "slow", "--", "sh", "-c", "echo on; sleep 600")
    found: list[Result] = []
    thread = threading.Thread(target=lambda: found.append(there("logs", "-f", "slow")))
    thread.start()
    assert there("wait", "slow", "--for", "running").exit_code == 0
    assert there("stop", "slow").exit_code == 0
    thread.join(120)
    assert [result.exit_code for result in found] == [0]
    there("delete", "--wait", "slow")


def test_a_server_is_remembered_and_forgotten(
    here: Call, server: Served, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OARSMAN_STATE", str(tmp_path / "another"))
    assert here("server", "show").stdout == "no server is remembered\n"
    said = here("server", "set", server.address, "--token-file", "-", stdin=f"{token}\n")
    assert (said.exit_code, said.stdout.startswith(f"{server.address} is remembered: local, as ")) == (0, True)
    file = tmp_path / "config" / "oarsman" / "server.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert here("server", "show").stdout == f"{server.address}\n"
    assert here("submit", "-n", "1", "--name", "kept", "--", "true").stdout == "kept\n"
    assert here("list", "--on", "local").stderr == "no jobs\n"  # what is said goes before what is remembered
    assert here("list", OARSMAN_ON="local").stderr == "no jobs\n"
    assert here("delete", "--wait", "kept").exit_code == 0
    assert here("server", "unset").exit_code == 0
    assert here("list").stderr == "no jobs\n"
    file.write_text("{")
    assert here("list").exit_code == 2


def test_who_has_no_token_is_refused(here: Call, server: Served, tmp_path: Path) -> None:
    refused = here("list", "--server", server.address)
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert "give the command a token, with --token-file FILE or in OARSMAN_TOKEN: " in refused.stderr
    assert "`oarsman tokens add` an API token" in refused.stderr
    unknown = here("list", "--server", server.address, OARSMAN_TOKEN="nobodys")
    assert (unknown.exit_code, "with --token-file FILE" in unknown.stderr) == (3, True)
    (tmp_path / "token").write_text("two words")
    wrong = here("list", "--server", server.address, "--token-file", str(tmp_path / "token"))
    assert (wrong.exit_code, "does not hold a token" in wrong.stderr) == (2, True)
    assert here("list", "--server", "not an address").exit_code == 2
    assert here("list", "--server", server.address, "--on", "local").stderr.startswith("error: --on does not go with")


@pytest.mark.parametrize(
    "words",
    ["doctor", "serve", "hosts list", "users list", "tokens list", "supervisor status", "install", "operator"],
)
def test_what_is_about_a_place_itself_says_so(here: Call, server: Served, words: str) -> None:
    refused = here("--server", server.address, *words.split())
    assert refused.exit_code == 2
    assert f"`oarsman {words.split()[0]}` needs the place itself" in refused.stderr
