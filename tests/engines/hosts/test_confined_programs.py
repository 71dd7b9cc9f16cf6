"""What runs for a job of somebody else before the job has a host, by real namespaces."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from oarsman.engines.hosts.core import confine, installed_mpi, linux
from oarsman.engines.hosts.core.job_spec import Confinement

pytestmark = pytest.mark.skipif(not linux.probe().confines, reason="this machine cannot confine")


def test_a_program_gets_nothing_of_the_terminal_that_the_server_was_started_on(tmp_path: Path) -> None:
    """It could type there, and read what is typed."""
    told, launcher = tmp_path / "told", tmp_path / "mpirun"
    reach = f"for way in 0 /dev/tty; do if (test -t 0 && test $way = 0) || (: <$way); then echo $way; fi; done >{told}"
    launcher.write_text(f"#!/bin/sh\n{reach} 2>/dev/null\necho 'mpirun (Open MPI) 5.0.0'\n")
    launcher.chmod(0o755)
    before = tuple(confine.words(Confinement([], sealed=False)))
    pid, terminal = pty.fork()
    if pid == 0:
        found = installed_mpi._identify(str(launcher), 0, before)
        os._exit(0 if found is not None else 1)
    assert os.waitpid(pid, 0)[1] == 0
    os.close(terminal)
    assert told.read_text() == ""


# With a word it holds a key and asks, without one it looks for it.
KEYS = """
import ctypes, os, subprocess, sys
kernel = ctypes.CDLL(None, use_errno=True)
def ask(number, *words):
    return kernel.syscall(ctypes.c_long(number), *(ctypes.c_long(w) if isinstance(w, int) else w for w in words))
ADD, ASK, SESSION, JOIN, SEARCH = 248, 250, -3, 1, 10
if len(sys.argv) > 1:
    assert ask(ASK, JOIN, None) > 0
    assert ask(ADD, b"user", b"of-the-server", b"s3cret", 6, SESSION) > 0
    assert ask(ASK, SEARCH, SESSION, b"user", b"of-the-server", 0) > 0
    os.execvp(sys.argv[1], sys.argv[1:])
print(ask(ASK, SEARCH, SESSION, b"user", b"of-the-server", 0))
"""


@pytest.mark.skipif(
    os.uname().machine != "x86_64" or not os.path.exists("/proc/keys"), reason="knows the call on x86_64 alone"
)
def test_a_program_has_none_of_the_keys_that_the_kernel_holds_for_the_server() -> None:
    before = confine.words(Confinement([], sealed=False))
    words = [sys.executable, "-c", KEYS, *before, sys.executable, "-c", KEYS]
    asked = subprocess.run(words, capture_output=True, text=True)
    assert (asked.stdout, asked.stderr) == ("-1\n", "")
