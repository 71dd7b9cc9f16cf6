from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest

from .machine import Machine


@pytest.fixture
def machine_with(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """Make a machine for an MPI of the set-up, by the name of its folder."""
    numbers = count()
    with ExitStack() as ending:  # each is closed, also if another cannot be

        def make(mpi: str = "openmpi5", **environment: str) -> Machine:
            return ending.enter_context(closing(Machine(tmp_path / f"state-{next(numbers)}", mpi, **environment)))

        yield make


@pytest.fixture
def machine(machine_with: Callable[..., Machine]) -> Machine:
    return machine_with()
