"""A few of the fuzzed manifests and calls, the same ones each time; `python -m tests.fuzz` sends any number."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from . import calls
from .__main__ import findings, judged
from .site import Site

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]
SEED, MANIFESTS, CALLS = 7, 100, 400


@pytest.fixture
def site() -> Iterator[Site]:
    """In a folder that jobs reach, which run as nobody: those of pytest are for their user alone."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, closing(Site(Path(folder))) as made:
        yield made


def test_whatever_is_sent_the_server_stays_unmoved(site: Site) -> None:
    # Those of Schemathesis cost seconds to make, and test_schema.py has as many.
    sent = [number for number in range(CALLS) if calls.kind_of(SEED, number) != "described"]
    names = [*(f"manifest:{number}" for number in range(MANIFESTS)), *(f"call:{number}" for number in sent)]
    verdicts = judged(site, SEED, names)
    assert not any(verdict.wrong for verdict in verdicts), findings(verdicts, SEED)
    assert {status for verdict in verdicts for status in verdict.answers} >= {101, 200, 201, 401, 403, 404, 422}
