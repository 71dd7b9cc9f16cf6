"""The shell script that starts a rank on an SSH host."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from oarsman.engines.hosts.ssh.scripts import script


def test_whoever_looks_at_the_library_of_a_rank_ends_with_it_however_short_that_is(tmp_path: Path) -> None:
    """It has the rank's streams open, and mpirun waits until they are closed."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run/own").touch()
    rank = tmp_path / "rank.sh"
    rank.write_text("slots=1 runs=''\n" + script("rank"))
    environment = {"OARSMAN_RUN": str(tmp_path / "run"), "PATH": os.defpath}

    def one(_number: int) -> int:
        words = ["/bin/sh", str(rank), "1:1:0", "input=none", "here", "1", "true"]
        return subprocess.run(words, env=environment, stdin=subprocess.DEVNULL).returncode

    with ThreadPoolExecutor(12) as many:
        assert {*many.map(one, range(400))} == {0}
    left = [process for process in psutil.process_iter(["cmdline"]) if str(rank) in (process.info["cmdline"] or ())]
    _, alive = psutil.wait_procs(left, timeout=15)  # it looks after 5 s, and once more after 20
    assert alive == []
