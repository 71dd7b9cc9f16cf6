"""SECURITY.md promises nothing without a test: each promise names those that would fail if it were broken."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROMISES = (ROOT / "SECURITY.md").read_text("utf-8").partition("## What is promised")[2].partition("\n## ")[0]
NAMED = re.compile(r"`([\w/]+)::(\w+)`")


@cache
def functions_of(file: str) -> frozenset[str]:
    """Nothing is imported: some of these files start a cluster."""
    tree = ast.parse((ROOT / "tests" / f"{file}.py").read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def rows() -> list[list[str]]:
    """Promise and tests of each row of a table; a `|` within code is written `\\|`."""
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in PROMISES.splitlines() if line.startswith("|")]
    return [row for row in cells if not set(row[0]) <= {"-", " "} and row[0].strip() != "promise"]


def test_every_promise_names_a_test_that_there_is() -> None:
    assert len(rows()) > 20
    broken = {}
    for promise, *_, tests in rows():
        named = NAMED.findall(tests)
        missing = [f"{file}::{test}" for file, test in named if test not in functions_of(file)]
        if missing or not named or NAMED.sub("", tests).strip(" ,"):
            broken[promise.strip()] = missing or tests
    assert broken == {}


def test_whatever_is_promised_is_in_a_table() -> None:
    """A sentence between the tables could promise something that nothing holds to it."""
    loose = [line for line in PROMISES.splitlines() if line and not line.startswith(("|", "### "))]
    assert loose == []
