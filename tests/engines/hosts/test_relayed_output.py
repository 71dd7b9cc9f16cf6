"""What ranks elsewhere wrote, handed on in pieces, is kept as they wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarsman.engines.hosts.core.launcher import RankLogs
from oarsman.engines.hosts.core.log_lines import MERGED


def merged(folder: Path) -> list[str]:
    return [line.split(" ", 1)[1] for line in (folder / MERGED).read_text().splitlines()]


def relayed(folder: Path) -> RankLogs:
    return RankLogs(str(folder), lambda rank: f"j-worker-{rank}")


def test_lines_that_come_in_pieces_are_put_together_and_bytes_stay_as_they_are(tmp_path: Path) -> None:
    log = relayed(tmp_path)
    for rank, stream, data in ((0, "out", b"on"), (1, "err", b"two\n"), (0, "out", b"e\r\nlast"), (1, "err", b"\n")):
        log.feed("1-7", rank, stream, data)
    log.finish()
    assert (tmp_path / "rank-0.out").read_bytes() == b"one\r\nlast"
    assert (tmp_path / "rank-1.err").read_bytes() == b"two\n\n"
    assert merged(tmp_path) == [
        "1 j-worker-1 err two",
        "0 j-worker-0 out one",
        "1 j-worker-1 err ",
        "0 j-worker-0 out last",
    ]


def test_lines_of_two_worlds_at_once_do_not_mix(tmp_path: Path) -> None:
    log = relayed(tmp_path)
    for world, data in (("1-7", b"first "), ("1-8", b"other "), ("1-7", b"world\n"), ("1-8", b"world\n")):
        log.feed(world, 0, "out", data)
    log.finish()
    assert merged(tmp_path) == ["0 j-worker-0 out first world", "0 j-worker-0 out other world"]


def test_any_number_of_worlds_needs_few_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = relayed(tmp_path)
    monkeypatch.setattr(log, "_most", 4)
    for number in range(20):
        log.feed(f"1-{number}", 0, "out", f"{number}\n".encode())
        assert len(log._recorders) <= 5
    log.feed("1-1", 0, "out", b"again\n")
    log.finish()
    assert merged(tmp_path) == [f"0 j-worker-0 out {word}" for word in [*range(20), "again"]]
