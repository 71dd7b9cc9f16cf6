from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .console import Clock, Console


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def console(tmp_path: Path, clock: Clock) -> Iterator[Console]:
    made = Console(tmp_path / "console.db", clock)
    yield made
    made.store.close()
