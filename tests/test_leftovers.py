"""A run of the tests that leaves something behind fails and names it; what others do meanwhile is not blamed on it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
QUICK = 'import leftovers\npytest_plugins = ["leftovers"]\nleftovers.PATIENCE = 0.5\n'
PREFACE = "import os, subprocess, sys, tempfile\nfrom pathlib import Path\nimport pytest\n"
TIDY = """
def test_tidy(tmp_path):
    (tmp_path / "kept by pytest").write_text("x")
    Path(tempfile.mkdtemp()).rmdir()
    subprocess.run(["sleep", "0"])
    Path(os.environ["BESIDE"], "file of another program").write_text("x")
"""
# As daemons do: nobody's child, and with its own idea of the environment. Who leaves it says its number before the test
# goes on, and in one write: two that print at once, unbuffered, mix their lines.
UNTIDY = """
DAEMON = "import os, time; n = os.fork(); n and os._exit(0 * os.write(1, b'%d ' % n)); time.sleep(600)"

@pytest.mark.parametrize("environment", [None, ["OARSMAN_STATE"], ["TMPDIR"]], ids=["all", "state", "tmpdir"])
def test_daemon(tmp_path, environment):
    own = {"OARSMAN_STATE": str(tmp_path), "TMPDIR": os.environ["TMPDIR"]}
    given = None if environment is None else {name: own[name] for name in environment}
    with open(os.environ["TOLD"], "a") as told:
        subprocess.run([sys.executable, "-c", DAEMON], stdout=told, start_new_session=True, env=given)

def test_child():
    child = subprocess.Popen(["sleep", "600"], env={})
    Path(os.environ["TOLD"]).open("a").write(f"{child.pid}\\n")

def test_file():
    Path(tempfile.mkdtemp(prefix="untidy-"), "file").write_text("x")

def test_state():
    from oarsman.store.paths import Paths
    Paths.default().make()

def test_mount(tmp_path):
    if os.geteuid() == 0:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(tmp_path)], check=True)
"""


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Path]:
    """Where untidy tests say which processes they left."""
    file = tmp_path / "told"
    yield file
    for pid in file.read_text().split() if file.exists() else ():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if (place := line.split()[4]).startswith(f"{tmp_path}/"):
            subprocess.run(["umount", place], check=True)


def outcome(tmp_path: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    for name in ("temp", "kept", "beside"):
        (tmp_path / name).mkdir()
    (tmp_path / "conftest.py").write_text(QUICK)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")  # otherwise that of a folder above, whosever it is
    (tmp_path / "test_one.py").write_text(PREFACE + text)
    dropped = ("PYTEST_", "OARSMAN_STATE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)} | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")]),
        "TMPDIR": str(tmp_path / "temp"),
        "PYTEST_DEBUG_TEMPROOT": str(tmp_path / "kept"),
        "BESIDE": str(tmp_path / "beside"),
        "TOLD": str(tmp_path / "told"),
        "OARSMAN_TEST_RUN": "another",
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, "test_one.py"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        stdin=subprocess.DEVNULL,
    )


alone_or_not = pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["alone", "xdist"])


@alone_or_not
def test_a_run_that_leaves_nothing_passes(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = outcome(tmp_path, TIDY, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left behind" not in done.stdout
    assert not list((tmp_path / "temp").iterdir())


@alone_or_not
def test_all_that_is_left_is_named_and_fails_a_run_whose_tests_passed(
    tmp_path: Path, told: Path, words: tuple[str, ...]
) -> None:
    done = outcome(tmp_path, TIDY + UNTIDY, *words)
    assert "8 passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1
    left = sorted(re.findall("^(?:process|file|mount) .*", done.stdout, re.MULTILINE))
    assert f"left behind by this run: {len(left)}" in done.stdout
    processes = {line.split()[1]: line for line in left if line.startswith("process")}
    assert set(processes) == set(told.read_text().split())
    assert sum(line.endswith("started by test_one.py::test_daemon[all]") for line in processes.values()) == 1
    folder = next((tmp_path / "temp").glob("o-*"))
    files = [line for line in left if line.startswith("file")]
    assert len(files) == 2
    assert files[0] == f"file {folder}/state"
    assert files[1].startswith(f"file {folder}/untidy-")
    mounts = [line for line in left if line.startswith("mount")]
    assert len(mounts) == (os.geteuid() == 0)
    assert all("/test_mount0" in line for line in mounts)


def test_a_failed_test_does_not_hide_what_was_left(tmp_path: Path) -> None:
    done = outcome(tmp_path, "def test_file():\n    tempfile.mkdtemp(prefix='untidy-')\n    assert False\n")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "left behind by this run: 1" in done.stdout
    assert "1 failed" in done.stdout
