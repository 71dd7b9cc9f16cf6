"""A table in one test: every row is looked at, and all that are wrong are named."""

from __future__ import annotations

import pytest
from for_every import for_every


def test_all_rows_of_which_a_fact_is_not_true_are_named_with_the_reason() -> None:
    seen = []

    @for_every([1, 2, 3], "ab")
    def small_or_a(number: int, letter: str) -> None:
        seen.append((number, letter))
        assert number < 2 or letter == "a"
        if number == 3:
            with pytest.raises(KeyError):
                pass

    with pytest.raises(AssertionError) as told:
        small_or_a()
    assert len(seen) == 6
    lines = str(told.value).splitlines()
    assert lines[0] == "not true of 3 of 6:"
    assert [line for line in lines if not line.startswith(" ")][1:] == ["2, b", "3, a", "3, b"]
    assert "DID NOT RAISE" in str(told.value)
    assert "assert (3 < 2 or 'b' == 'a'" in str(told.value)


def test_a_fact_about_every_row_passes_and_keeps_its_name() -> None:
    @for_every({"a": 1}, [2])
    def a_fact(key: str, number: int) -> None:
        """Said of it."""
        assert (key, number) == ("a", 2)

    a_fact()
    assert (a_fact.__name__, a_fact.__doc__) == ("a_fact", "Said of it.")


def test_a_fact_about_nothing_is_none() -> None:
    @for_every([])
    def a_fact(row: object) -> None: ...

    with pytest.raises(AssertionError, match="the table is empty"):
        a_fact()
