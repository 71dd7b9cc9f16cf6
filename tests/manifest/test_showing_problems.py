from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman.errors import Problem, did_you_mean
from oarsman.manifest.problems import dotted, nearest, quoted, render
from oarsman.text.sentence import visible


def problem(snippet: str, column: int, **more) -> Problem:
    return Problem(
        **{"source": "f.yaml", "line": 3, "column": column, "field": "a.b", "message": "is odd", "snippet": snippet}
        | more
    )


@pytest.mark.parametrize(
    ("snippet", "column", "shown"),
    [
        ("a: b", 4, ["    a: b", "       ^"]),
        ("        a: b", 12, ["    a: b", "       ^"]),
        ("名前: 値", 5, ["    名前: 値", "          ^"]),
        ("é: x", 4, ["    é: x", "       ^"]),
        ("e\u0301: x", 5, ["    e\u0301: x", "       ^"]),
        ("a:\tb", 4, ["    a:    b", "          ^"]),
        ("\ta: b", 2, ["    a: b", "    ^"]),
        ("a: \x1b[31mb", 4, ["    a: \\x1b[31mb", "       ^"]),
        ("a: \u202eb", 5, ["    a: \\u202eb", "             ^"]),
        ("a:", 3, ["    a:", "      ^"]),
    ],
)
def test_the_mark_stands_under_the_place(snippet: str, column: int, shown: list[str]) -> None:
    assert render(problem(snippet, column)).splitlines()[1:] == shown


def test_long_lines_are_cut_around_the_mark() -> None:
    line = "x" * 5000 + "HERE" + "y" * 5000
    _, shown, mark = render(problem(line, 5001)).splitlines()
    assert len(shown) < 120
    assert shown[mark.index("^") :].startswith("HERE")
    assert (shown[4], shown[-1]) == ("…", "…")


def test_a_line_that_is_cut_says_on_which_side() -> None:
    for line, column, shown in (
        ("x" * 100, 1, "x" * 100),
        ("x" * 101, 1, "x" * 100 + "…"),
        ("x" * 100 + "HERE", 101, "…" + "x" * 95 + "HERE"),
        ("x" * 60 + "HERE" + "y" * 60, 61, "x" * 60 + "HERE" + "y" * 36 + "…"),
        (" " * 300 + "HERE", 301, "…" + " " * 95 + "HERE"),
        ("x" * 101, 102, "…" + "x" * 99),
        ("名" * 60, 1, "名" * 50 + "…"),
    ):
        _, found, mark = render(problem(line, column)).splitlines()
        assert found == f"    {shown}"
        if "HERE" in line:
            assert mark == " " * (4 + shown.find("HERE")) + "^"


def test_the_first_line_can_be_clicked_and_the_last_gives_a_hint() -> None:
    lines = render(problem("a: b", 4, hint="did you mean 'c'?")).splitlines()
    assert (lines[0], lines[-1]) == ("f.yaml:3:4: error: a.b: is odd", "    hint: did you mean 'c'?")


def test_a_problem_without_a_place_is_one_line() -> None:
    assert render(problem("", 0, line=0, source="<document>")) == "<document>: error: a.b: is odd"


@given(st.text(), st.integers(1, 300), st.text(), st.text())
def test_nothing_that_acts_on_a_terminal_is_ever_shown(snippet: str, column: int, message: str, source: str) -> None:
    shown = render(problem(snippet, column, message=message, source=source, hint=message, field=message))
    assert not [c for c in shown if unicodedata.category(c)[0] == "C" and c != "\n"]
    assert not set(shown) & {"\u2028", "\u2029", "\x85"}


def test_visible_text_is_left_alone() -> None:
    assert visible("plain 文字 é") == "plain 文字 é"


def test_paths_read_as_users_write_them() -> None:
    for path, text in (
        (("spec", "containers", 0, "limits", "nvidia.com/gpu"), 'spec.containers[0].limits["nvidia.com/gpu"]'),
        (("a-b_c", ""), 'a-b_c[""]'),
        ((0, "x\x1b"), '[0]["x\\x1b"]'),
        ((), ""),
    ):
        assert dotted(path) == text  # type: ignore[arg-type]


def test_values_are_repeated_briefly() -> None:
    for value, text in (
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ({}, "a mapping"),
        ([1], "a list"),
        ((), "a list"),
        (3, "3"),
        (1.5, "1.5"),
        ("a", "'a'"),
        ("", "''"),
        ("a\x07", "'a\\x07'"),
        ("x" * 60, f"'{'x' * 60}'"),
        ("x" * 61, f"'{'x' * 59}…'"),
    ):
        assert quoted(value) == text


def test_what_was_meant_is_known_from_the_hint() -> None:
    hints = {None: None, did_you_mean("it's"): "it's", "quote it": None}
    assert {hint: problem("a", 1, hint=hint).meant for hint in hints} == hints
    assert did_you_mean("c") == "did you mean 'c'?"


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("worker", ["Launcher", "Worker"], "did you mean 'Worker'?"),
        ("slotPerWorker", ["slotsPerWorker", "runPolicy"], "did you mean 'slotsPerWorker'?"),
        ("zzz", ["Launcher", "Worker"], None),
    ],
)
def test_a_hint_names_the_nearest_word_if_it_is_near(word: str, known: list[str], hint: str | None) -> None:
    assert nearest(word, known) == hint
