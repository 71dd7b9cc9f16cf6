"""Lines that have not ended yet, as they are at one moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarsman.store.live_lines import LiveReader

HOSTS = {None: "l", 0: "a", 1: "b"}


def live(reader: LiveReader) -> list[tuple[int | None, str, str, str]]:
    return [(line.rank, line.host, line.stream, line.text) for line in reader.now("now", HOSTS)]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("done\nName: ", "Name: "),
        ("\r 1%\r 2%", " 2%"),
        (" 1%\r 2%\r", " 2%"),
        ("x" * 10_000 + "\r3%", "3%"),
        ("y" * 10_000, "y" * 4096),
    ],
)
def test_what_was_written_after_the_last_line_is_one(tmp_path: Path, written: str, text: str) -> None:
    (tmp_path / "rank-1.err").write_text(written, newline="")
    assert live(LiveReader(tmp_path)) == [(1, "b", "err", text)]


def test_they_come_in_the_order_of_ranks_and_go_when_they_end(tmp_path: Path) -> None:
    reader = LiveReader(tmp_path)
    for name in ("rank-1.out", "rank-0.out", "launcher.out", "rank-7.out", "merged.log"):
        (tmp_path / name).write_text("half")
    assert [rank for rank, *_ in live(reader)] == [None, 0, 1]  # where rank 7 is, nobody knows yet
    (tmp_path / "rank-0.out").write_text("half a line\n")
    assert [rank for rank, *_ in live(reader)] == [None, 1]


def test_without_a_log_there_are_none(tmp_path: Path) -> None:
    assert live(LiveReader(tmp_path / "missing")) == []
