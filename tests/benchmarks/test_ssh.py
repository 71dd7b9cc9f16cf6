"""The benchmark of SSH hosts in small: it has to work when somebody wants to know. Its times are nobody's claim."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ssh_hosts.fixtures import insist_on_racks

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.mpi
@pytest.mark.timeout(900)
def test_every_claim_is_measured_against_its_rival() -> None:
    insist_on_racks()
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "ssh.py", "--quick"], text=True, capture_output=True, check=False, timeout=880
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.strip("|").split("|") for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    assert len({row[0] + row[1] for row in rows}) == len(rows) == 15, done.stdout
    assert all(rival.strip() and re.fullmatch(r"\s*[\d.e+-]+\s*", ratio) for _, rival, ratio in rows)
    assert "800 arrived" in done.stdout
