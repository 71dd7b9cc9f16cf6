"""Fixtures for tests of racks; a conftest imports them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .rack import Rack, why_no_racks
from .rack import rack as make

WITHOUT = "OARSMAN_WITHOUT"  # by name: ssh


def insist_on_racks() -> None:
    """A machine that cannot have hosts is said so by a failure, never by a test that quietly did not run."""
    if "ssh" in os.environ.get(WITHOUT, "").replace(",", " ").split():
        pytest.skip(f"{WITHOUT} names ssh: tests that need hosts with an sshd were not run")
    if reason := why_no_racks():
        pytest.fail(f"{reason}\n({WITHOUT}=ssh leaves out the tests that need them)", pytrace=False)


@pytest.fixture(scope="session")
def shared_rack() -> Iterator[Rack]:
    """Four hosts, node1 to node4, for all tests of the session."""
    insist_on_racks()
    with make(4) as hosts:
        yield hosts


@pytest.fixture
def rack(shared_rack: Rack) -> Iterator[Rack]:
    """The same hosts, as they were at first; what a test planted, started or wrote on them is undone after it."""
    shared_rack.clean()  # whoever has `shared_rack` leaves copies of code
    yield shared_rack
    shared_rack.clean()
