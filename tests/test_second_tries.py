"""A test that failed is tried again with new servers and machines, which end with its module, and its cause is kept."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFTEST = """
import pytest
from second_tries import pytest_runtest_teardown, pytest_terminal_summary

TRIES = []

@pytest.fixture(scope="package")
def cluster():
    TRIES.append(1)
    assert len(TRIES) > 1, "no cluster at the first try"
    yield
    print("the cluster ends")

@pytest.fixture(scope="module")
def server(request, cluster):
    print("a server for", request.node.name)
    yield []
    print("it ends")
"""
ONE = """
import pytest

TRIES = []

def test_starting(server):
    server.append("job")

def test_twice(server):
    TRIES.append(1)
    print("what", "it printed")
    server.append("job")
    assert server == ["job"] and len(TRIES) > 1

@pytest.fixture
def untidy(server):
    yield
    TRIES.append(1)
    assert len(TRIES) > 3

def test_ending(server, untidy):
    pass
"""
OTHER = """
def test_last(server):
    pass
"""
STORY = """
a server for test_one.py, it ends
a server for test_one.py, it ends
a server for test_one.py, it ends
a server for test_other.py, it ends
the cluster ends
"""


@pytest.mark.parametrize("options", [("-s",), ("-n", "1")], ids=["alone", "xdist"])
def test_a_second_try_has_everything_new_and_why_the_first_failed_is_kept(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    for name, text in (("__init__", ""), ("conftest", CONFTEST), ("test_one", ONE), ("test_other", OTHER)):
        (package / f"{name}.py").write_text(text)
    (tmp_path / "pytest.ini").touch()  # the root, in which the causes are kept
    old = tmp_path / "build" / "second-tries" / "of an earlier run.txt"
    old.parent.mkdir(parents=True)
    old.touch()
    mine = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = ["-q", "--reruns=1", "--basetemp", str(tmp_path / "kept"), "-p", "no:randomly", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *words, *options, str(package)]
    environment = {**mine, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 3 rerun " in done.stdout
    if "-s" in options:
        told = [line for line in STORY.replace(", ", "\n").splitlines() if line]
        assert [line.lstrip("R.") for line in done.stdout.splitlines() if line.endswith((".py", "ends"))] == told
    assert "warning: 3 second tries" in done.stdout
    tries = re.findall(r"^SECOND TRY (\S+) - (.*); all of it: (\S+)$", done.stdout, re.MULTILINE)
    assert [tuple(each[:2]) for each in tries] == [
        ("package/test_one.py::test_starting", "AssertionError: no cluster at the first try"),
        ("package/test_one.py::test_twice", "AssertionError: assert (['job', 'job'] == ['job']"),
        ("package/test_one.py::test_ending", "assert 3 > 3"),
    ]
    files = [tmp_path / file for _, _, file in tries]
    assert sorted(old.parent.iterdir()) == sorted(files)
    for (test, cause, _), file in zip(tries, files, strict=True):
        assert test in file.read_text()
        assert cause in file.read_text()
    assert ("what it printed" in files[1].read_text()) == ("-s" not in options)


def test_a_second_try_has_a_time_limit_too(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from second_tries import pytest_runtest_setup")
    (tmp_path / "test_long.py").write_text("import time\n\ndef test_long():\n    time.sleep(3600)\n")
    (tmp_path / "pytest.ini").touch()
    words = [sys.executable, "-m", "pytest", "-p", "no:randomly", "--reruns", "1", "--timeout", "1", "-ra"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=200
    )
    assert "1 failed, 1 rerun" in done.stdout, done.stdout + done.stderr
