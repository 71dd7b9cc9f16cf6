"""What runs for a job of somebody else before the job has a host, by real namespaces."""

from __future__ import annotations

import os
import pty
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
