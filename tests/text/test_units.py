from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from oarsman.text.units import age, duration, number, quantity, ranges, size, took

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (0, "0s"),
        (0.04, "0s"),
        (0.42, "0.4s"),
        (3, "3s"),
        (9.96, "10s"),
        (59.7, "1m"),
        (185, "3m5s"),
        (3600, "1h"),
        (7800, "2h10m"),
        (270_000, "3d3h"),
    ],
)
def test_durations_are_written(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [(None, ""), (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (10 << 20, "10 MiB"), (5 << 40, "5.0 TiB")],
)
def test_sizes_are_written(amount: int | None, text: str) -> None:
    assert size(amount) == text


def test_what_has_ended_is_told_in_tenths_and_what_goes_on_in_whole_seconds() -> None:
    later = NOON + timedelta(seconds=3.56)
    assert took(NOON, later, NOON + timedelta(hours=1)) == "3.6s"
    assert took(NOON, None, later) == age(NOON, later) == "3s"


def test_what_has_not_started_has_no_duration() -> None:
    assert took(None, None, NOON) == took(None, NOON, NOON) == age(None, NOON) == ""


@pytest.mark.parametrize(("amount", "text"), [(4.0, "4"), (0.25, "0.2"), (1234.56, "1234.6")])
def test_processors_are_counted_in_tenths_at_most(amount: float, text: str) -> None:
    assert number(amount) == text


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([2, 0, 1, 7, 9, 8], "0-2, 7-9"), ([0, 2, 4], "0, 2, 4")]
)
def test_ranks_on_a_host_are_told_in_ranges(numbers: Sequence[int], text: str) -> None:
    assert ranges(numbers) == text


@pytest.mark.parametrize("text", ["1", "300Mi", "1536Mi", "2Gi", "3Ti", "512Ki", "500M", "2k", "1000001", "0"])
def test_amounts_are_written_as_in_a_manifest(text: str) -> None:
    from oarsman.manifest.quantity import parse

    assert quantity(int(parse(text))) == text
