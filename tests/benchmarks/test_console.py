"""The console's benchmark in small: it has to work on the day somebody wants to know. Its times are nobody's claim."""

from __future__ import annotations

import re
import sys

import pytest

from benchmarks.quick import BENCHMARKS, quick


@pytest.mark.timeout(600)
def test_every_claim_is_measured_against_its_rival() -> None:
    printed = quick("console.py", timeout=500)
    rows = [line.strip("|").split("|") for line in printed.splitlines() if line.startswith("| ")]
    claims = {row[0].strip().split(":")[0]: row for row in rows[1:]}
    assert len(claims) == len(rows) - 1 == 27, printed
    assert all(rival.strip() and re.fullmatch(r"\s*[\d.e+-]+\s*", ratio) for _, rival, ratio in claims.values())


def test_every_benchmark_is_run_by_the_one_that_runs_all() -> None:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import all as everything
    finally:
        sys.path.remove(str(BENCHMARKS))
    claims = {path.stem for path in BENCHMARKS.glob("*.py") if "\ndef main()" in path.read_text()} - {"all"}
    assert claims == set(everything.CLAIMS)
