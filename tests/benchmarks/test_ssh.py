"""The benchmark of SSH hosts in small: it has to work when somebody wants to know. Its times are nobody's claim."""

from __future__ import annotations

import re

import pytest
from ssh_hosts.fixtures import insist_on_racks

from benchmarks.quick import quick


@pytest.mark.mpi
@pytest.mark.timeout(900)
def test_every_claim_is_measured_against_its_rival() -> None:
    insist_on_racks()
    printed = quick("ssh.py", timeout=600)
    rows = [line.strip("|").split("|") for line in printed.splitlines() if line.startswith("| ")][1:]
    assert len({row[0] + row[1] for row in rows}) == len(rows) == 15, printed
    assert all(rival.strip() and re.fullmatch(r"\s*[\d.e+-]+\s*", ratio) for _, rival, ratio in rows)
    assert "800 arrived" in printed
