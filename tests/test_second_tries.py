"""A test that failed is tried again with new servers and machines, and those end with its module, as all others do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONFTEST = """
import pytest
from tests.conftest import pytest_runtest_teardown

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


def test_a_second_try_has_new_servers_and_they_end_with_their_module(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    for name, text in (("__init__", ""), ("conftest", CONFTEST), ("test_one", ONE), ("test_other", OTHER)):
        (package / f"{name}.py").write_text(text)
    found = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    mine = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = ["-q", "-s", "--reruns=1", "-p", "no:randomly", "-p", "no:cacheprovider", str(package)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        env={**mine, "PYTHONPATH": found},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 3 rerun " in done.stdout
    told = [line for line in STORY.replace(", ", "\n").splitlines() if line]
    assert [line.lstrip("R.") for line in done.stdout.splitlines() if line.endswith((".py", "ends"))] == told
