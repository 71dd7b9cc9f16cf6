"""The squares of a host: each holder has as much of them as it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman.console.parts.charts import Cell, colours, squares


@pytest.mark.parametrize(
    ("total", "amounts", "cells"),
    [
        pytest.param(4, [2, 1, 1], [[(0, 1)], [(0, 1)], [(1, 1)], [(2, 1)]], id="whole ones"),
        pytest.param(2, [0.5, 1, 0.5], [[(0, 0.5), (1, 0.5)], [(1, 0.5), (2, 0.5)]], id="halves"),
        pytest.param(1.5, [1.5], [[(0, 1)], [(0, 1)]], id="a part of one is drawn as large as the others"),
        pytest.param(2, [5, 1], [[(0, 1)], [(0, 1)]], id="more than there is"),
        pytest.param(0, [1], [], id="nothing there"),
    ],
)
def test_holders_come_one_after_the_other(total: float, amounts: list[float], cells: list[Cell]) -> None:
    assert squares(total, amounts) == cells


@given(st.integers(1, 4000), st.lists(st.floats(0, 500), max_size=8))
def test_every_square_is_full_and_everybody_has_their_share(total: int, held: list[float]) -> None:
    amounts, left = [], float(total)
    for amount in held:
        amounts.append(min(amount, left))
        left -= amounts[-1]
    cells = squares(total, [*amounts, left])
    assert len(cells) == min(total, 64)
    assert [sum(share for _, share in cell) for cell in cells] == pytest.approx([1.0] * len(cells), abs=0.01)
    size = total / len(cells)
    for number, amount in enumerate([*amounts, left]):
        drawn = sum(share * size for cell in cells for holder, share in cell if holder == number)
        assert drawn == pytest.approx(amount, abs=0.01 * total)


def test_jobs_have_colours_of_their_own_and_keep_them() -> None:
    keys = [f"default/job-{n}" for n in range(8)]
    assert len(set(colours(keys).values())) == 8
    assert colours(["default/job-3"]) == colours(["default/job-3", "default/job-3"])
    assert set(colours([f"default/{n}" for n in range(50)]).values()) == {f"job-{n}" for n in range(10)}
