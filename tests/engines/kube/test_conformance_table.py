"""docs/conformance.md names every case of upstream's, and only tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3]
TEXT = (TOP / "docs" / "conformance.md").read_text()
CASES = [f"{kind}{n}" for kind, last in zip("DVCPIE", (5, 10, 44, 25, 7, 14), strict=True) for n in range(1, last + 1)]
TABLES = TEXT.partition("## Kubernetes versions")[0]
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLES.splitlines() if line.startswith("| ")]


def test_every_case_has_one_row() -> None:
    listed = [row[0] for row in ROWS if re.fullmatch(r"[DVCPIE]\d+", row[0])]
    assert listed == CASES


def test_every_row_names_a_test_or_where_to_look() -> None:
    assert [row[0] for row in ROWS if row[0] != "case" and "tests/" not in row[2]] == []


@pytest.mark.parametrize("path", sorted({path for path, _ in NAMED}))
def test_the_tests_of_a_file_exist(path: str) -> None:
    tree = ast.parse((TOP / path).read_text())
    there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert {name for found, name in NAMED if found == path} <= there


def test_every_note_is_referred_to_and_every_reference_has_a_note() -> None:
    notes = re.findall(r"^(\d+)\. ", TEXT, flags=re.MULTILINE)
    assert notes == [str(number) for number in range(1, len(notes) + 1)]
    assert set(re.findall(r"\[(\d+)\]\(#notes\)", TEXT)) == set(notes)
