"""Tags of mpirun, as the four MPIs really write them."""

from __future__ import annotations

import pytest

from oarsman.backends.kube.pod_log import parse
from oarsman.status.tags import Spoken, Tags


def spoken(tags: Tags, *lines: str) -> list[Spoken]:
    return [said for line in lines if (said := tags.read(line)) is not None] + list(tags.rest())


def test_open_mpi_4_and_5_differ_by_a_space() -> None:
    assert spoken(Tags(), "[1,0]<stdout>:hi", "[1,3]<stderr>:  indented", "[1,0]<stdout>:") == [
        Spoken(0, "out", "hi"),
        Spoken(3, "err", "  indented"),
        Spoken(0, "out", ""),
    ]
    assert spoken(Tags(), "[1,0]<stdout>: hi", "[1,3]<stderr>:   indented", "[1,0]<stdout>: ") == [
        Spoken(0, "out", "hi"),
        Spoken(3, "err", "  indented"),
        Spoken(0, "out", ""),
    ]


def test_a_line_written_in_pieces_is_put_together() -> None:
    lines = ["[1,1]<stdout>:x", "[1,0]<stdout>:partial[1,0]<stderr>:oops", "[1,0]<stdout>: rest"]
    assert spoken(Tags(), *lines) == [
        Spoken(1, "out", "x"),
        Spoken(0, "err", "oops"),
        Spoken(0, "out", "partial rest"),
    ]


def test_a_piece_that_never_ends_is_not_lost() -> None:
    assert spoken(Tags(), "[1,0]<stdout>:begun[1,1]<stdout>:done") == [
        Spoken(1, "out", "done"),
        Spoken(0, "out", "begun"),
    ]


@pytest.mark.parametrize("time", ["Sun Nov 15 17:37:00 2026", "[Sun Nov  5 17:37:00 2026]"], ids=["4", "5"])
def test_times_that_were_asked_for_go_with_the_tags(time: str) -> None:
    lines = [f"{time}[1,1]<stdout>:x{time}[1,0]<stderr>:oops", f"{time}[1,1]<stdout>:y"]
    assert spoken(Tags(), *lines) == [Spoken(0, "err", "oops"), Spoken(1, "out", "xy")]


MANY = f"[1,{'9' * 5000}]<stdout>:y"


@pytest.mark.parametrize("line", ["[0] text", "[info] [0]", "x [1,0]<stdout>:y", "[1,0] <stdout>", MANY, "", "["])
def test_words_that_only_look_like_tags_are_the_launchers(line: str) -> None:
    tags = Tags()
    assert spoken(tags, line) == [Spoken(None, "out", line)]
    assert not tags.seen


def test_hydra_tags_are_read_where_hydra_runs_and_the_rank_exists() -> None:
    tags = Tags(hydra=True, ranks=2)
    assert spoken(tags, "[1] hi", "[0] ", "[7] is not a rank") == [
        Spoken(1, "out", "hi"),
        Spoken(0, "out", ""),
        Spoken(None, "out", "[7] is not a rank"),
    ]
    assert tags.seen


@pytest.mark.parametrize(
    ("raw", "stamp"),
    [
        (b"2026-01-31T08:00:00.123456789Z x", "2026-01-31T08:00:00.123456789Z"),
        (b"2026-01-31T08:00:00.5Z x", "2026-01-31T08:00:00.500000000Z"),
        (b"2026-01-31T08:00:00Z x", "2026-01-31T08:00:00.000000000Z"),
        (b"2026-01-31T10:00:00.25+02:00 x", "2026-01-31T08:00:00.250000000Z"),
        (b"2026-01-31T03:00:00.25-05:00 x", "2026-01-31T08:00:00.250000000Z"),
        (b"garbage x", "1970-01-01T00:00:00.000000000Z"),
    ],
)
def test_times_are_of_one_width_whatever_the_node_writes(raw: bytes, stamp: str) -> None:
    assert parse(raw) == (stamp, "x")
