from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .asking import Asking, asking


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Asking]:
    with asking(tmp_path) as found:
        yield found
