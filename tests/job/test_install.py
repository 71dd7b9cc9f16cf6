"""Commands that are run before the launcher."""

from __future__ import annotations

import subprocess

import pytest

from oarsman.job.environment import FAILED, with_install


@pytest.mark.parametrize("commands", ["", " \n"])
def test_without_install_commands_the_launcher_is_as_it_was(commands: str) -> None:
    assert with_install(commands, ["mpirun", "x"]) == ["mpirun", "x"]


@pytest.mark.parametrize(
    ("commands", "code", "out", "err"),
    [
        ("echo ready", 0, "ready\nthe job's words: 'quoted'\n", ""),
        ("echo begun\nfalse\necho never", 1, "begun\n", f"{FAILED} 1\n"),
        ("exit 7", 7, "", f"{FAILED} 7\n"),
        ("if then", 2, "", f"{FAILED} 2\n"),
        ('echo "$0 $# $HOME"', 0, "/bin/sh 0 /h\nthe job's words: 'quoted'\n", ""),
    ],
)
def test_install_commands_run_before_the_job_which_needs_all_of_them(
    commands: str, code: int, out: str, err: str
) -> None:
    words = with_install(commands, ["echo", "the job's words:", "'quoted'"])
    done = subprocess.run(words, capture_output=True, text=True, env={"HOME": "/h", "PATH": "/usr/bin:/bin"})
    assert (done.returncode, done.stdout) == (code, out)
    assert done.stderr.endswith(err)
