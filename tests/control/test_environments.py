"""Environments of this machine: real virtual environments, real pip, a package that lies beside the test."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import threading
import time
import tomllib
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from engines.hosts.machine import remove_run_folder
from waiting import waiting

from oarsman.backends.base import JobRecord
from oarsman.backends.local.backend import LocalBackend
from oarsman.backends.local.follow import SupervisorLink
from oarsman.client.mpijob import MPIJob
from oarsman.control import environment_build
from oarsman.control.environments import FIELD, _whole_letters
from oarsman.errors import ConflictError, ManifestError, NotFoundError, UsageError, UserError
from oarsman.job.confined import Confined
from oarsman.job.environment import EnvironmentRecord, EnvironmentWanted, digest_of
from oarsman.job.state import Status
from oarsman.service import JobService
from oarsman.service.models import Create, Identity, Role
from oarsman.store.environments import INTERRUPTED, Contents, Result, Shelf
from oarsman.store.paths import Paths

pytestmark = pytest.mark.timeout(300)
PATIENCE = 120.0
ROOT = Path(__file__).resolve().parents[2]


def a_wheel(folder: Path, name: str = "oarlock", value: str = "forty-two") -> Path:
    """A package of one line, as pip takes it without asking anybody."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": f"VALUE = {value!r}\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in files.items():
            archive.writestr(inside, text)
    return path


@pytest.fixture
def requirements(tmp_path: Path) -> str:
    return f"--no-index\n{a_wheel(tmp_path)}\n"


def remove(jobs: LocalBackend, key: str) -> None:
    jobs.delete(key)
    with contextlib.suppress(NotFoundError):  # gone before it could be watched
        for _ in jobs.watch(key, timeout=PATIENCE):
            pass


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalBackend]:
    state = tmp_path / "state"
    monkeypatch.setenv("OARSMAN_STATE", str(state))
    monkeypatch.setenv("PATH", os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    opened = waiting(LocalBackend(Paths(state)))
    yield opened
    for record in opened.list():
        remove(opened, record.job.key)
    for one in opened.environments.list():
        opened.environments.delete(one.wanted.name)
    SupervisorLink(Paths(state)).stop()
    remove_run_folder(Paths(state))


def until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def the_end_of_the_build(jobs: LocalBackend, name: str) -> EnvironmentRecord:
    until(lambda: jobs.environments.get(name).state in ("Ready", "Failed"))
    return jobs.environments.get(name)


def trees(jobs: LocalBackend) -> list[str]:
    return sorted(path.parent.name for path in Path(os.environ["OARSMAN_STATE"]).glob("environments/contents/*/tree-*"))


def submit(jobs: LocalBackend, name: str, script: str, **given: object) -> JobRecord:
    job = MPIJob(name, command=["python", "-c", script], workers=2, **given)  # type: ignore[arg-type]
    return jobs.submit(job.to_dict(), environment=dict(os.environ), folder=Path("/"))


def status_when(jobs: LocalBackend, record: JobRecord, fits: Callable[[Status], bool]) -> Status:
    for found in jobs.watch(record.job.key, timeout=PATIENCE):
        if fits(found.status):
            return found.status
    raise AssertionError("the job went away")


# -- building ----------------------------------------------------------------------------------------


def test_contents_are_built_once_whatever_they_are_called(jobs: LocalBackend, requirements: str) -> None:
    begun = jobs.environments.put(EnvironmentWanted(name="rowing", requirements=requirements), owner="ada")
    assert (begun.state in ("Waiting", "Building"), begun.owner) == (True, "ada")
    ready = the_end_of_the_build(jobs, "rowing")
    assert (ready.state, ready.message) == ("Ready", "")
    assert "oarlock==1.0" in ready.packages
    assert ready.python == ".".join(map(str, sys.version_info[:3]))
    assert ready.size_bytes is not None
    assert ready.size_bytes > 1000
    log = jobs.environments.log("rowing")
    assert "Successfully installed oarlock-1.0" in log.text
    assert log.ended
    assert jobs.environments.log("rowing", after=log.after).text == ""

    same = jobs.environments.put(EnvironmentWanted(name="sculling", requirements=f"\n{requirements}\n"), owner="bob")
    assert (same.state, same.owner, same.built_at) == ("Ready", "bob", ready.built_at)
    assert len(trees(jobs)) == 1
    jobs.environments.delete("rowing")
    assert jobs.environments.get("sculling").state == "Ready"
    with pytest.raises(NotFoundError, match="rowing"):
        jobs.environments.get("rowing")
    jobs.environments.delete("sculling")
    assert trees(jobs) == []


def test_nobody_runs_what_others_built_for_the_same_words(
    jobs: LocalBackend, requirements: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has the user that a build runs as can change what comes of it."""
    monkeypatch.setattr(environment_build, "start", lambda *_, **__: None)
    wanted, as_users = EnvironmentWanted(name="rowing", requirements=requirements), ("", "ann", "ben")
    confined = [None, *(Confined("/srv/jobs", ["/state"], user) for user in as_users)]
    digests = {jobs.environments.put(wanted, confined=by).digest for by in confined}
    assert len(digests) == len(confined)


def test_what_was_installed_cannot_say_so_much_or_such_things_that_others_cannot_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(environment_build.BuildError):
        environment_build._answer(["sh", "-c", "head -c 9000000 /dev/zero"], ())
    assert environment_build._answer(["sh", "-c", "printf 'a\\377b'"], ()) == "a\ufffdb"
    told = [{"name": "oarlock", "version": "1.0"}, {"name": "\ud83d", "version": "1"}, {"name": "pip", "version": "1"}]
    monkeypatch.setattr(environment_build, "_run", lambda *_: None)
    monkeypatch.setattr(environment_build, "_answer", lambda *_: json.dumps(told) + " " * 99)
    contents = Contents(tmp_path)
    contents.requirements.write_text("")
    built = environment_build._build(contents, contents.tree("tree-1"), sys.executable, ())
    assert built.packages == ("oarlock==1.0",)
    assert len(built.python) < 99


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_no_link_leads_astray_who_takes_a_tree_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Unix user that built it may still be at it, from outside of any job."""
    within, elsewhere = tmp_path / "tree" / "lib", tmp_path / "elsewhere"
    for folder in (within, elsewhere):
        folder.mkdir(parents=True)
        for name in ("a", "b"):
            (folder / name).touch()
            os.chown(folder / name, 1, 1)
    chown = os.chown

    def quicker(path: str, *words: int, **more: Any) -> None:
        chown(path, *words, **more)
        if os.path.basename(path) in ("a", "b") and not within.is_symlink():
            within.rename(tmp_path / "gone")
            within.symlink_to(elsewhere)

    monkeypatch.setattr(os, "chown", quicker)
    environment_build._own(tmp_path / "tree")
    assert [os.stat(elsewhere / name).st_uid for name in ("a", "b")] == [1, 1]


def test_a_build_that_fails_says_what_pip_said_and_can_be_tried_again(jobs: LocalBackend, tmp_path: Path) -> None:
    wanted = EnvironmentWanted(name="rowing", requirements=f"--no-index\n--find-links {tmp_path}\noarlock\n")
    jobs.environments.put(wanted)
    failed = the_end_of_the_build(jobs, "rowing")
    assert (failed.state, failed.message) == ("Failed", "No matching distribution found for oarlock")
    assert "oarlock" in jobs.environments.log("rowing").text
    with pytest.raises(ManifestError, match="could not be built: No matching distribution") as caught:
        submit(jobs, "row", "pass", environment="rowing")
    assert caught.value.field == FIELD
    a_wheel(tmp_path)
    jobs.environments.put(wanted)
    assert the_end_of_the_build(jobs, "rowing").state == "Ready"


class Locked(BaseHTTPRequestHandler):
    """Lets in who says the password; what it was asked with is kept."""

    folder: Path
    heard: list[str]

    def do_GET(self) -> None:
        self.heard.append(self.headers.get("Authorization", ""))
        if self.heard[-1] != "Basic " + b64encode(b"me:s3cr3t-word").decode():
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.end_headers()
            return
        content = (self.folder / self.path.rpartition("/")[2]).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    handler = type("Here", (Locked,), {"folder": tmp_path, "heard": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield server
        server.shutdown()
        serving.join()


def files_with(secret: str) -> list[str]:
    state = Path(os.environ["OARSMAN_STATE"])
    found = (path for path in state.rglob("*") if path.is_file() and not path.is_symlink())
    return [str(path.relative_to(state)) for path in found if secret.encode() in path.read_bytes()]


def test_credentials_are_used_for_the_build_and_kept_nowhere(
    jobs: LocalBackend, tmp_path: Path, locked: ThreadingHTTPServer
) -> None:
    url = f"http://me:s3cr3t-word@127.0.0.1:{locked.server_port}/{a_wheel(tmp_path).name}"
    made = jobs.environments.put(EnvironmentWanted(name="rowing", requirements=f"--no-index\noarlock @ {url}\n"))
    assert "s3cr3t" not in str(made)
    ready = the_end_of_the_build(jobs, "rowing")
    assert (ready.state, ready.packages[0]) == ("Ready", "oarlock==1.0")
    assert "s3cr3t" not in str(ready)
    assert f"http://****@127.0.0.1:{locked.server_port}" in ready.wanted.requirements
    until(lambda: files_with("s3cr3t") == [])


def test_what_programs_say_about_credentials_is_not_in_the_log(
    jobs: LocalBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "git").write_text(
        "#!/bin/sh\ncase $* in *version*) echo git version 2.40.0 ;; *)\n"
        "echo \"fatal: cannot read $*; 's3cr3t word' is wrong\" >&2; exit 128 ;; esac\n"
    )
    (tools / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    jobs.environments.put(
        EnvironmentWanted(name="rowing", requirements="oarlock @ git+https://me:s3cr3t%20word@127.0.0.1:1/oarlock\n")
    )
    failed = the_end_of_the_build(jobs, "rowing")
    log = jobs.environments.log("rowing").text
    assert (failed.state, "fatal: cannot read" in log) == ("Failed", True)
    assert "s3cr3t" not in log + str(failed)
    assert files_with("s3cr3t") == []


def test_a_killed_build_is_seen_as_that_at_once_and_taken_up_by_the_next_put(
    jobs: LocalBackend, requirements: str
) -> None:
    wanted = EnvironmentWanted(name="rowing", requirements=requirements)
    jobs.environments.put(wanted)
    contents = Shelf(Path(os.environ["OARSMAN_STATE"])).contents(digest_of(wanted))
    until(lambda: contents.builder.exists() and bool(list(contents.folder.glob("tree-*"))))
    builder = psutil.Process(json.loads(contents.builder.read_text())["pid"])
    helpers = builder.children(recursive=True)
    builder.send_signal(signal.SIGKILL)
    until(lambda: not contents.building())
    killed = jobs.environments.get("rowing")
    assert (killed.state, killed.message) == ("Failed", INTERRUPTED)
    assert jobs.environments.log("rowing", after=1 << 30).ended
    psutil.wait_procs(helpers, timeout=PATIENCE)
    assert not [helper for helper in helpers if helper.is_running()]
    jobs.environments.put(wanted)
    assert the_end_of_the_build(jobs, "rowing").state == "Ready"
    assert len(trees(jobs)) == 1


def test_one_that_is_deleted_while_it_is_built_is_not_built_further(jobs: LocalBackend, requirements: str) -> None:
    wanted = EnvironmentWanted(name="rowing", requirements=requirements)
    jobs.environments.put(wanted)
    contents = Shelf(Path(os.environ["OARSMAN_STATE"])).contents(digest_of(wanted))
    until(contents.builder.exists)
    builder = psutil.Process(json.loads(contents.builder.read_text())["pid"])
    jobs.environments.delete("rowing")
    psutil.wait_procs([builder], timeout=PATIENCE)
    assert not contents.folder.exists()


def test_many_who_want_the_same_at_once_have_it_built_once(jobs: LocalBackend, requirements: str) -> None:
    names = [f"env-{number}" for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        made = pool.map(
            lambda name: jobs.environments.put(EnvironmentWanted(name=name, requirements=requirements)), names
        )
        assert {one.state for one in made} <= {"Waiting", "Building"}
    assert {the_end_of_the_build(jobs, name).state for name in names} == {"Ready"}
    assert len(trees(jobs)) == 1


# -- what needs no build -----------------------------------------------------------------------------


def test_a_python_that_is_not_here_is_refused_with_those_that_are(jobs: LocalBackend) -> None:
    with pytest.raises(UserError, match=r"no Python 3\.2 ") as caught:
        jobs.environments.put(EnvironmentWanted(name="old", python="3.2"))
    assert ".".join(map(str, sys.version_info[:3])) in (caught.value.hint or "")
    assert jobs.environments.list() == []


def test_a_python_is_found_on_path_and_where_managers_keep_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def a_python(folder: Path, name: str, version: str) -> Path:
        folder.mkdir(parents=True)
        (folder / name).write_text(f"#!/bin/sh\necho {version}\n")
        (folder / name).chmod(0o755)
        return folder / name

    on_path = a_python(tmp_path / "bin", "python3.2", "3.2.9")
    managed = a_python(tmp_path / "pyenv/versions/3.1.7/bin", "python3", "3.1.7")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    monkeypatch.setenv("PYENV_ROOT", f"{tmp_path}/pyenv")
    assert environment_build.find("3.2") == environment_build.find("3.2.9") == str(on_path)
    assert environment_build.find("3.1") == str(managed)
    with pytest.raises(UserError):
        environment_build.find("3.2.1")


@pytest.mark.parametrize("name", ["", "No", "../up", "a/b", "x" * 64, "-x"])
def test_a_name_that_is_none_is_refused(jobs: LocalBackend, name: str) -> None:
    with pytest.raises(UsageError):
        jobs.environments.put(EnvironmentWanted(name=name))
    with pytest.raises(NotFoundError):
        jobs.environments.get(name)


def test_a_job_in_an_environment_that_is_not_there_is_refused_with_those_that_are(
    jobs: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment_build, "start", _ready_at_once)
    jobs.environments.put(EnvironmentWanted(name="rowing"))
    jobs.environments.put(EnvironmentWanted(name="sculling", requirements="x"))
    for ask in (jobs.fit, lambda document: jobs.submit(document, environment={}, folder=Path("/"))):
        with pytest.raises(ManifestError, match="there is no environment rowin") as caught:
            ask(MPIJob("row", command=["true"], environment="rowin").to_dict())
        assert (caught.value.field, caught.value.hint) == (FIELD, "there are: rowing, sculling")
    assert jobs.list() == []
    text = MPIJob("row", command=["true"], environment="rowin").to_yaml()
    (problem,) = (
        waiting(JobService(jobs.here, Identity(name="ada", role=Role.ADMIN))).preview(Create(manifest=text)).problems
    )
    assert (problem.field, problem.line) == (FIELD, 1 + text.splitlines().index("    oarsman.dev/environment: rowin"))
    assert jobs.fit(MPIJob("row", command=["true"], environment="rowing").to_dict()).ever


def _ready_at_once(contents: Contents, _lock: int, **_: object) -> None:
    contents.clear()
    (contents.tree("tree-1") / "bin").mkdir(parents=True)
    (contents.tree("tree-1") / "bin" / "python").touch()
    contents.write_result(Result(ready=True, tree="tree-1", built_at="2026-01-01T00:00:00+00:00"))


def test_a_tree_that_somebody_removed_is_not_ready(jobs: LocalBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_build, "start", _ready_at_once)
    jobs.environments.put(EnvironmentWanted(name="rowing"))
    (contents,) = Shelf(Path(os.environ["OARSMAN_STATE"])).all_contents()
    (contents.tree("tree-1") / "bin" / "python").unlink()
    assert jobs.environments.get("rowing").state == "Failed"
    assert jobs.environments.put(EnvironmentWanted(name="rowing")).state == "Ready"


@pytest.mark.parametrize("text", ["", "plain", "é", "世界", "a🚣"])
def test_a_letter_of_a_log_is_never_cut_in_two(text: str) -> None:
    data = text.encode()
    for cut in range(len(data) + 1):
        first, taken = _whole_letters(data[:cut], last=False)
        rest, more = _whole_letters(data[taken:], last=True)
        assert (first + rest, taken + more) == (text, len(data))


def test_a_log_that_ends_with_no_letter_ends_all_the_same() -> None:
    assert _whole_letters(b"a\xc3", last=True) == ("a\ufffd", 2)


def test_the_mpi_of_an_environment_is_that_of_our_own_extras() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {name: [line] for name, line in environment_build.MPI.items()} == {
        name: extras[name] for name in environment_build.MPI
    }


# -- jobs in them ------------------------------------------------------------------------------------


@pytest.mark.mpi
def test_a_job_waits_for_its_environment_and_every_rank_runs_in_it(jobs: LocalBackend, requirements: str) -> None:
    jobs.environments.put(EnvironmentWanted(name="rowing", requirements=requirements))
    script = "import oarlock, os, sys; print(oarlock.VALUE, sys.prefix == os.environ['VIRTUAL_ENV'])"
    record = submit(
        jobs, "row", script, environment="rowing", install="echo made > /dev/null\npython -c 'import oarlock'"
    )
    waiting = status_when(jobs, record, lambda status: status.is_true("Queued"))
    assert waiting.queue is not None
    assert waiting.queue.reason == "environment rowing is being built"
    assert jobs.environments.get("rowing").used_by == ("default/row",)
    with pytest.raises(ConflictError, match="used by 1 of the jobs"):
        jobs.environments.delete("rowing")
    ended = status_when(jobs, record, lambda status: status.finished)
    assert ended.is_true("Succeeded"), ended.cause
    said = sorted((line.rank, line.text) for line in jobs.logs(record.job.key) if line.rank is not None)
    assert said == [(0, "forty-two True"), (1, "forty-two True")]


@pytest.mark.mpi
def test_a_job_keeps_what_it_started_with_although_the_name_means_something_else(
    jobs: LocalBackend, requirements: str, tmp_path: Path
) -> None:
    jobs.environments.put(EnvironmentWanted(name="rowing", requirements=requirements))
    before = the_end_of_the_build(jobs, "rowing").digest
    go, begun = tmp_path / "go", tmp_path / "begun"
    script = f"""
import os, pathlib, time
pathlib.Path({str(begun)!r}).touch()
while not os.path.exists({str(go)!r}): time.sleep(0.05)
import oarlock; print(oarlock.VALUE)"""
    record = submit(jobs, "row", script, environment="rowing")
    until(begun.exists)
    other = a_wheel(tmp_path, "scull", "other")
    jobs.environments.put(EnvironmentWanted(name="rowing", requirements=f"--no-index\n{other}\n"))
    assert the_end_of_the_build(jobs, "rowing").digest != before
    assert before in trees(jobs)
    go.touch()
    assert status_when(jobs, record, lambda status: status.finished).is_true("Succeeded")
    assert {line.text for line in jobs.logs(record.job.key) if line.rank is not None} == {"forty-two"}
    remove(jobs, record.job.key)
    jobs.environments.delete("rowing")
    assert trees(jobs) == []


def test_a_job_whose_environment_cannot_be_built_fails_and_says_so(jobs: LocalBackend) -> None:
    jobs.environments.put(EnvironmentWanted(name="rowing", requirements="--no-index\nno-such-thing\n"))
    record = submit(jobs, "row", "pass", environment="rowing")
    ended = status_when(jobs, record, lambda status: status.finished)
    assert ended.cause is not None
    assert re.match("environment rowing could not be built: No matching distribution", ended.cause.summary)
    failed = ended.condition("Failed")
    assert failed is not None
    assert failed.reason == "EnvironmentNotReady"


@pytest.mark.mpi
def test_install_commands_that_fail_are_the_cause_and_what_they_wrote_is_in_the_log(jobs: LocalBackend) -> None:
    record = submit(
        jobs, "row", "print('never')", install="echo fetching\nsh -c 'echo no disk >&2; exit 3'\necho never"
    )
    ended = status_when(jobs, record, lambda status: status.finished)
    assert ended.cause is not None
    assert (ended.cause.summary, ended.cause.exit_code) == ("the install commands failed", 3)
    said = [line.text for line in jobs.logs(record.job.key)]
    assert "fetching" in said
    assert "no disk" in said
    assert "never" not in said
