from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .machine import Machine


@pytest.fixture
def machine_with(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """Make a machine for an MPI of the set-up, by the name of its folder."""
    machines: list[Machine] = []

    def make(mpi: str = "openmpi5", **environment: str) -> Machine:
        machines.append(Machine(tmp_path / f"state-{len(machines)}", mpi, **environment))
        return machines[-1]

    yield make
    for machine in machines:
        machine.close()


@pytest.fixture
def machine(machine_with: Callable[..., Machine]) -> Machine:
    return machine_with()
