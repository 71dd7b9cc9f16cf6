"""The short form of what `python -m tests.kills` does: the same seed each time, some jobs, twenty kills."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from ssh_hosts import Rack

from .crowd import Crowd, world

SEED, JOBS, KILLS = 97, 10, 20  # a seed whose first ten jobs are of every kind, on both places


@pytest.mark.mpi
@pytest.mark.timeout(1200)
def test_whatever_is_killed_every_job_ends_right_once_and_leaves_nothing(rack: Rack) -> None:
    with tempfile.TemporaryDirectory() as folder, world(Path(folder), rack, disk=True) as made:
        crowd = Crowd(made, seed=SEED, jobs=JOBS, kills=KILLS, places=("local", "ssh"))
        crowd.run()
    assert not crowd.findings, "\n\n".join(crowd.findings)
    assert crowd.troubles.killed == KILLS
    assert sum(crowd.ended.values()) == crowd.handed_in
