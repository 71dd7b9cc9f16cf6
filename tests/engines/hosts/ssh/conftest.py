from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_hosts import Rack
from ssh_hosts.fixtures import rack, shared_rack  # noqa: F401

from .copied import code  # noqa: F401
from .ssh_machine import SshMachine


@pytest.fixture
def machine(tmp_path: Path, rack: Rack, shared_state: Path) -> Iterator[SshMachine]:  # noqa: F811
    """With an inventory of its own: what the supervisor learned of the hosts before a test counts no more."""
    machine = SshMachine(shared_state, rack, folder=tmp_path / "work")
    yield machine
    rack.repair()
    machine.clear()
