"""The way of a job through the house, as CONTRIBUTING tells it, is the way that a job really takes.

One runs on a copy of the package, whose processes write down who calls whom: the command, the supervisor, the job agent
and the shims, which take no modules from elsewhere.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from engines.hosts.machine import ROOT, Machine, mpijob

pytestmark = pytest.mark.mpi

PROCESSES = {  # as the table calls them: how their command lines are known
    "command": "oarsman.cli run",
    "supervisor": "oarsman.control.supervisor",
    "job agent": "start.py job-agent",
    "mpirun": "start.py mpirun",
    "ssh": "start.py ssh",
    "rank": "start.py rank",
}
TRACER = """
import os, sys, threading

_package = {package!r}
_name = os.urandom(8).hex()  # process numbers are those of a host, and come more than once
_notes = os.open({notes!r} + "/" + _name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
_known = set()


def _called(frame, *_):
    if not frame.f_code.co_filename.startswith(_package):
        return
    stack = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_package) and code.co_name != "<module>":
            stack.append(code.co_filename[len(_package):] + " " + code.co_qualname)
        frame = frame.f_back
    if stack and (tuple(stack) not in _known or stack[0] == "manifest/build.py build_job"):
        _known.add(tuple(stack))
        os.write(_notes, (" < ".join(stack) + "\\n").encode())


os.write(_notes, (" ".join(sys.orig_argv).replace("\\n", " ") + "\\n").encode())
threading.settrace(_called)  # which hears of calls alone, while a profile hears of every return, too
sys.settrace(_called)
"""
Calls = dict[str, list[list[str]]]  # process -> stacks, the innermost function first


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calls]:
    folder = tmp_path_factory.mktemp("steps")
    package, notes = folder / "site" / "oarsman", folder / "notes"
    notes.mkdir()
    shutil.copytree(ROOT / "src" / "oarsman", package, ignore=shutil.ignore_patterns("__pycache__"))
    tracer = TRACER.format(package=f"{package}/", notes=str(notes))
    (package.parent / "sitecustomize.py").write_text(tracer)
    start = package / "engines/hosts/core/shims/start.py"
    start.write_text(tracer + start.read_text())
    with closing(Machine(folder / "state", PYTHONPATH=str(package.parent))) as machine:
        (machine.folder / "way.yaml").write_text(json.dumps(mpijob("way", ["mpirun", "-n", "2", "hostname"])))
        subprocess.run(
            [sys.executable, "-m", "oarsman.cli", "run", "way.yaml"],
            env=machine.environment,
            cwd=machine.folder,
            check=True,
            timeout=300,
            capture_output=True,
        )
        yield dict(_read(notes))


def _read(notes: Path) -> Iterator[tuple[str, list[list[str]]]]:
    for file in sorted(notes.iterdir(), key=lambda file: file.stat().st_mtime):
        line, *stacks = file.read_text().splitlines()
        for process, known_by in PROCESSES.items():
            if known_by in line:
                yield process, [stack.split(" < ") for stack in stacks]


def table() -> list[tuple[str, str]]:
    """Process and function of each step."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    part = text.partition("### The way of a job")[2].partition("\n### ")[0]
    return re.findall(r"^\| ([a-z ]+) \| `(\S+ \S+)` \|", part, re.MULTILINE)


def test_every_step_of_the_table_is_taken(calls: Calls) -> None:
    missing = [step for step in table() if step[1] not in {stack[0] for stack in calls[step[0]]}]
    assert missing == []
    assert len(table()) > 30


def test_between_two_steps_there_is_no_file_that_the_table_leaves_out(calls: Calls) -> None:
    """Of every step, whoever called it, by one of the ways that lead there."""
    files = {step.partition(" ")[0] for _, step in table()}
    hidden = {}
    for process, step in table():
        ways = [{frame.partition(" ")[0] for frame in stack} for stack in calls[process] if stack[0] == step]
        hidden[step] = sorted(min((way - files for way in ways), key=len))
    assert {step: left_out for step, left_out in hidden.items() if left_out} == {}


def test_the_figures_are_those_of_the_table() -> None:
    files = {step.partition(" ")[0] for _, step in table()}
    assert f"{len(table())} steps in {len(files)} files" in (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("process", ["command", "supervisor"])
def test_a_manifest_becomes_a_job_once(calls: Calls, process: str) -> None:
    built = [stack for stack in calls[process] if stack[0] == "manifest/build.py build_job"]
    assert len(built) == 1, built


@pytest.mark.parametrize("process", ["job agent", "mpirun", "ssh", "rank"])
def test_what_runs_a_job_never_sees_its_manifest(calls: Calls, process: str) -> None:
    assert not [stack for stack in calls[process] if stack[0].startswith("manifest/")]
