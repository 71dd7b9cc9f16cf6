from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oarsman.backoff import Backoff

many = st.integers(1, 10_000)


def test_delays_double_up_to_the_longest() -> None:
    assert [Backoff(0.5, 3.0).after(failures) for failures in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


@given(many, st.floats(0.5, 1.0))
def test_a_delay_is_shortened_by_half_at_most(failures: int, part: float) -> None:
    whole = Backoff(0.1, 15.0).after(failures)
    assert whole / 2 <= Backoff(0.1, 15.0, lambda least, most: part).after(failures) <= whole


@given(many)
def test_no_number_of_failures_is_too_large(failures: int) -> None:
    assert Backoff(0.05, 60.0).after(failures) <= 60.0
