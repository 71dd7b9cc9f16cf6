"""Who is behind the others: by steps, by silence, and the many cases in which nobody is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oarsman.status.stragglers import Pace, behind

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def stepping(*steps: float | None, rounds: tuple[int, ...] = ()) -> dict[int, Pace]:
    return {rank: Pace(step=step, round=rounds[rank] if rounds else 0) for rank, step in enumerate(steps)}


@pytest.mark.parametrize(
    ("paces", "reasons"),
    [
        (stepping(180, 120, 180), {1: "at step 120, the others at 180"}),
        (stepping(180, 120), {1: "at step 120, the others at 180"}),
        (stepping(10, 10, 10, 7), {3: "at step 7, the others at 10"}),
        (stepping(1_000_000, 500_000), {1: "at step 500000, the others at 1000000"}),
        (stepping(100, 20, 100, 30, 100), {1: "at step 20, the others at 100", 3: "at step 30, the others at 100"}),
        ({0: Pace(step=5), 1: Pace(step=5, round=2)}, {0: "2 rounds of steps behind the others"}),
        # not enough behind
        (stepping(180, 150, 180), {}),
        (stepping(10, 8, 10), {}),
        (stepping(2, 0, 2), {}),
        (stepping(5, 5), {}),
        (stepping(180, 144, 180), {}),
        (stepping(180, 143, 180), {1: "at step 143, the others at 180"}),
        (stepping(10, 7.5), {1: "at step 7.5, the others at 10"}),
        (stepping(2.5, 0), {1: "at step 0, the others at 2.5"}),
        # one that is ahead makes nobody late
        (stepping(100, 500, 100, 100), {}),
        # nobody to compare with
        (stepping(5), {}),
        ({}, {}),
        (stepping(180, None), {}),
        (stepping(None, None, None), {}),
        # in another round the steps count anew
        (stepping(5, 180, 5, rounds=(1, 0, 1)), {}),
        (stepping(5, 100, 5, rounds=(1, 1, 1)), {}),
        (stepping(5, 180, 5, rounds=(3, 1, 3)), {1: "2 rounds of steps behind the others"}),
        (stepping(5, 180, rounds=(4, 1)), {1: "3 rounds of steps behind the others"}),
        (stepping(1, 100, 9, 9, 9, rounds=(0, 0, 1, 1, 1)), {}),  # most of them are elsewhere
        (stepping(1, 100, 9, rounds=(0, 0, 1)), {0: "at step 1, the others at 100"}),
        (stepping(100, 10, 100, 5, rounds=(1, 1, 1, 2)), {1: "at step 10, the others at 100"}),
    ],
)
def test_a_rank_is_slow_when_its_step_is_well_behind_the_others(
    paces: dict[int, Pace], reasons: dict[int, str]
) -> None:
    assert behind(paces, NOW) == reasons


def writing(*ago: float, every: float = 2.0, beats: int = 20, longest_gap: float = 4.0) -> dict[int, Pace]:
    """Ranks that wrote that many seconds ago for the last time, and regularly until then."""
    paces = {}
    for rank, seconds in enumerate(ago):
        last = NOW - timedelta(seconds=seconds)
        first = last - timedelta(seconds=every * (beats - 1))
        paces[rank] = Pace(first=first, last=last, beats=beats, longest_gap=longest_gap)
    return paces


@pytest.mark.parametrize(
    ("paces", "reasons"),
    [
        (writing(2, 95, 2), {1: "silent for 95 s, the others wrote 2 s ago"}),
        (writing(95, 2), {0: "silent for 95 s, the others wrote 2 s ago"}),
        # too short, or no longer than is usual
        (writing(2, 29, 2), {}),
        (writing(2, 95, 2, every=20), {}),
        (writing(2, 95, 2, longest_gap=60), {}),
        (writing(2, 30, 2), {}),
        (writing(2, 31, 2), {1: "silent for 31 s, the others wrote 2 s ago"}),
        (writing(2, 50, 2, every=10), {}),
        (writing(2, 51, 2, every=10), {1: "silent for 51 s, the others wrote 2 s ago"}),
        (writing(2, 32, 2, longest_gap=16), {}),
        (writing(2, 33, 2, longest_gap=16), {1: "silent for 33 s, the others wrote 2 s ago"}),
        (writing(15, 95, 15), {1: "silent for 95 s, the others wrote 15 s ago"}),
        (writing(16, 95, 16), {}),
        (writing(2, 95, beats=4), {1: "silent for 95 s, the others wrote 2 s ago"}),
        # all of them wait for something
        (writing(95, 95, 95), {}),
        (writing(90, 95, 90), {}),
        (writing(2, 95, 95), {}),
        # nobody knows what is usual
        (writing(2, 95, 2, beats=3), {}),
        (writing(95), {}),
        ({**writing(2, 95), 2: Pace()}, {}),
        # clocks that differ
        (writing(-5, 95, -5), {1: "silent for 95 s, the others wrote 0 s ago"}),
    ],
)
def test_a_rank_is_silent_only_while_the_others_go_on(paces: dict[int, Pace], reasons: dict[int, str]) -> None:
    assert behind(paces, NOW) == reasons


def test_many_ranks_are_compared_at_once() -> None:
    paces = {rank: Pace(step=100.0 if rank % 1000 else 10.0) for rank in range(20_000)}
    assert list(behind(paces, NOW)) == list(range(0, 20_000, 1000))


def test_a_rank_that_says_nothing_of_rounds_is_in_the_first() -> None:
    paces = {0: Pace(step=180), 1: Pace(step=120, round=0), 2: Pace(step=180)}
    assert behind(paces, NOW) == {1: "at step 120, the others at 180"}


def test_how_often_most_ranks_write_decides_how_long_is_silent() -> None:
    def rank(ago: float, every: float) -> Pace:
        return writing(ago, every=every)[0]

    for ago, reasons in ((40, {}), (51, {1: "silent for 51 s, the others wrote 2 s ago"})):
        assert behind({0: rank(2, 2), 1: rank(ago, 10), 2: rank(2, 100)}, NOW) == reasons
    # of two, the one that writes more often
    assert behind({0: rank(2, 2), 1: rank(40, 10)}, NOW) == {1: "silent for 40 s, the others wrote 2 s ago"}


def test_of_two_reasons_the_step_is_told() -> None:
    silent = writing(2, 95)
    both = {
        rank: Pace(step=step, first=silent[rank].first, last=silent[rank].last, beats=20)
        for rank, step in ((0, 180.0), (1, 120.0))
    }
    assert behind(both, NOW) == {1: "at step 120, the others at 180"}


@pytest.mark.parametrize(
    ("steps", "rounds", "reasons"),
    [
        ((180, 120, 125), (0, 0, 0), {}),  # it waits for them, perhaps
        ((180, 120), (0, 0), {1: "at step 120, the others at 180"}),
        ((5, 120, 125), (1, 0, 0), {}),
        ((125, 125, 125), (0, 0, 0), {0: "silent for 95 s, the others wrote 2 s ago"}),
        ((124, 125, 125), (0, 0, 0), {0: "silent for 95 s, the others wrote 2 s ago"}),
        ((180, None, None), (0, 0, 0), {0: "silent for 95 s, the others wrote 2 s ago"}),
    ],
)
def test_a_silent_rank_is_not_accused_of_being_ahead(
    steps: tuple[float | None, ...], rounds: tuple[int, ...], reasons: dict[int, str]
) -> None:
    silent = writing(95, *[2] * (len(steps) - 1))
    paces = {
        rank: replace(silent[rank], step=step, round=round)
        for rank, (step, round) in enumerate(zip(steps, rounds, strict=True))
    }
    assert behind(paces, NOW) == reasons


PACES = st.builds(
    Pace,
    step=st.none() | st.floats(0, 1e12),
    round=st.integers(0, 9),
    beats=st.integers(0, 50),
    first=st.none() | st.datetimes(timezones=st.just(UTC)),
    last=st.none() | st.datetimes(timezones=st.just(UTC)),
    longest_gap=st.floats(0, 1e6),
)


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 9), PACES, max_size=9))
@example({0: Pace(step=0, last=NOW, beats=4), 1: Pace(step=0, round=2, last=NOW - timedelta(days=1), beats=4)})
def test_never_are_all_of_them_behind(paces: dict[int, Pace]) -> None:
    found = behind(paces, NOW)
    assert not paces or len(found) < len(paces)
    assert all(found.values())


@settings(deadline=None)
@given(PACES, st.integers(2, 9))
def test_ranks_that_do_the_same_are_never_told_apart(pace: Pace, ranks: int) -> None:
    assert behind(dict.fromkeys(range(ranks), pace), NOW) == {}
