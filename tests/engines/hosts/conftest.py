from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest

from .machine import Machine


@pytest.fixture(scope="module")
def shared_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One for the tests of a module: a supervisor takes a second of a core to start, more than most of their jobs."""
    state = tmp_path_factory.mktemp("shared") / "state"
    yield state
    Machine(state).close()


@pytest.fixture
def own_machine_with(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """Make a machine with a state and a supervisor of its own, for an MPI of the set-up, by the name of its folder."""
    numbers = count()
    with ExitStack() as ending:  # each is closed, also if another cannot be

        def make(mpi: str = "openmpi5", **environment: str) -> Machine:
            return ending.enter_context(closing(Machine(tmp_path / f"state-{next(numbers)}", mpi, **environment)))

        yield make


@pytest.fixture
def own_machine(own_machine_with: Callable[..., Machine]) -> Machine:
    return own_machine_with()


@pytest.fixture
def machine_with(tmp_path: Path, shared_state: Path) -> Iterator[Callable[..., Machine]]:
    """Make a machine whose supervisor has served the tests before, if none of them has killed it. No job is there, and
    variables are those of jobs and commands."""
    with ExitStack() as ending:

        def make(mpi: str = "openmpi5", **environment: str) -> Machine:
            made = Machine(shared_state, mpi, folder=tmp_path / "work", **environment)
            ending.callback(made.clear)
            return made

        yield make


@pytest.fixture
def machine(machine_with: Callable[..., Machine]) -> Machine:
    return machine_with()
