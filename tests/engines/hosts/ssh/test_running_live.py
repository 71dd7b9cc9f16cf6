"""A line that a rank on an SSH host has not ended yet, such as a progress bar, is seen while it is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from ssh_hosts import Rack

from oarsman.backends.base import LogQuery

from ..machine import mpijob
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]

# A bar on each stream, which moves on when it was seen; it does not wait for ever.
BAR = r"""
shows() { printf '\r%s' "$1 of out"; printf '\r%s' "$1 of err" >&2; }
seen() { tries=0; until [ -e "$1" ] || [ $((tries += 1)) -gt 600 ]; do sleep 0.1; done; }
shows 1% && seen "$1-1%" && shows 2% && seen "$1-2%" && echo && echo >&2
"""


@pytest.fixture(scope="module")
def submitter(shared_rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachine]:
    with closing(SshMachine(tmp_path_factory.mktemp("live") / "state", shared_rack)) as machine:
        yield machine


@pytest.mark.parametrize("mpi", ["debian", "openmpi4", "mpich"])
def test_progress_bars_of_ranks_move(mpi: str, submitter: SshMachine) -> None:
    signs = submitter.rack.shared / mpi
    command = ["mpirun", "-n", "2", "sh", "-c", BAR, "bar", str(signs)]
    annotations = {"oarsman.dev/inventory": str(submitter.inventory_with(mpi))}
    key = submitter.submit(mpijob(f"bar-{mpi}", command, annotations=annotations))
    states = ["1%", "2%"]
    for page in submitter.jobs.log_follow(key, LogQuery(live=True)):
        wanted = {
            (rank, f"{state} of {stream}") for state in states[:1] for rank in (0, 1) for stream in ("out", "err")
        }
        if wanted and {(line.rank, line.text) for line in page.live or ()} == wanted:
            signs.with_name(f"{mpi}-{states.pop(0)}").touch()
    assert not states, "these were never seen"
    submitter.until_finished(key)
    found = [(line.rank, line.stream, line.text) for line in submitter.jobs.logs(key) if line.rank is not None]
    assert sorted(found) == [(rank, stream, f"2% of {stream}") for rank in (0, 1) for stream in ("err", "out")]
