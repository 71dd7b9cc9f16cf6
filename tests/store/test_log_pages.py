"""Pages of a log: whichever way one turns them, every line is met once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman.store import logs

HEAD = b"2026-11-15T04:05:06.000000Z 0 h out "
# Lines as programs write them: broken UTF-8, carriage returns, nothing at all, and more than a block.
TEXTS = st.lists(
    st.one_of(st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b"")), st.just(b"x" * 300), st.just(b"bar\r")),
    max_size=60,
)


def look(
    limit: int = 500, wanted: logs.Wanted = lambda _line: True, promising: logs.Promising = lambda _block: True
) -> logs.Look:
    return logs.Look(wanted=wanted, promising=promising, limit=limit)


def written(path: Path, texts: list[bytes], end: bytes = b"") -> list[str]:
    path.write_bytes(b"".join(HEAD + text + b"\n" for text in texts) + end)
    return [text.decode(errors="replace").rstrip("\r") for text in texts]


def all_down(path: Path, limit: int, **given: object) -> list[str]:
    texts, offset = [], 0
    while True:
        found = logs.down(path, offset, look(limit, **given))  # type: ignore[arg-type]
        assert found.start == offset
        assert logs.is_place(path, found.end)
        assert all(logs.is_place(path, after) for after, _ in found.lines)
        if found.end == offset:
            return texts
        texts += [line.text for _, line in found.lines]
        offset = found.end


def all_up(path: Path, limit: int, **given: object) -> list[str]:
    texts: list[str] = []
    offset: int | None = None
    while offset != 0:
        found = logs.up(path, offset, look(limit, **given))  # type: ignore[arg-type]
        assert logs.is_place(path, found.start)
        texts = [line.text for _, line in found.lines] + texts
        assert offset is None or found.start < offset
        offset = found.start
    return texts


@given(texts=TEXTS, limit=st.integers(1, 70), torn=st.sampled_from([b"", b"2026-11-15T04:05:06.0", HEAD + b"not yet"]))
def test_every_line_is_met_once_in_both_directions(
    texts: list[bytes], limit: int, torn: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("log") / "merged.log"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "_BLOCK", 100)
        expected = written(path, texts, torn)
        assert all_down(path, limit) == expected
        assert all_up(path, limit) == expected


@pytest.mark.parametrize("walk", [all_down, all_up])
def test_a_search_goes_on_from_where_it_gave_up(
    walk: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_BLOCK", 200)
    monkeypatch.setattr(logs, "MOST_BYTES", 1000)
    path = tmp_path / "merged.log"
    written(path, [b"needle %d" % n if n % 50 == 7 else b"hay %d" % n for n in range(200)])
    search = logs.Search("needle")
    found = walk(path, 500, wanted=lambda line: search(line.text), promising=search.in_block)
    assert found == ["needle 7", "needle 57", "needle 107", "needle 157"]


def test_a_search_looks_at_a_bounded_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_BLOCK", 200)
    monkeypatch.setattr(logs, "MOST_BYTES", 1000)
    path = tmp_path / "merged.log"
    written(path, [b"hay"] * 500)
    found = logs.down(path, 0, look(wanted=lambda _line: False))
    assert found.lines == []
    assert 800 <= found.end <= 1200
    size = path.stat().st_size
    found = logs.up(path, None, look(wanted=lambda _line: False))
    assert size - 1200 <= found.start <= size - 800


def test_the_end_of_a_long_log_costs_one_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "merged.log"
    with open(path, "wb") as file:
        file.truncate(1 << 40)  # a hole: to read it all would take hours
        file.seek(0, 2)
        file.write(b"\n" + (HEAD + b"line\n") * 20_000)
    found = logs.up(path, None, look(100))
    assert [line.text for _, line in found.lines] == ["line"] * 100
    assert found.end == path.stat().st_size


def test_no_log_is_an_empty_log(tmp_path: Path) -> None:
    path = tmp_path / "merged.log"
    assert logs.up(path, None, look()) == logs.down(path, 0, look()) == ([], 0, 0)
    assert logs.is_place(path, 0)
    assert not logs.is_place(path, 7)


@pytest.mark.parametrize(
    ("wanted", "text", "there"),
    [
        ("error", "An ERROR here", True),
        ("Error", "An ERROR here", True),
        ("Error", "an err", False),
        ("größe", "GRÖSSE Größe", True),
        ("x", "", False),
        ("错误", "有错误", True),
    ],
)
def test_a_search_ignores_case(wanted: str, text: str, there: bool) -> None:
    assert logs.Search(wanted)(text) is there
    assert logs.Search(wanted).in_block(text.encode() + b"\n") is there


def test_nothing_above_the_floor_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_BLOCK", 100)
    path = tmp_path / "merged.log"
    written(path, [b"old"] * 50 + [b"new %d" % number for number in range(10)])
    floor = 50 * len(HEAD + b"old\n")
    seen: list[bytes] = []
    looking = logs.Look(
        wanted=lambda _line: True, promising=lambda block: seen.append(block) is None, limit=6, floor=floor
    )
    last = logs.up(path, None, looking)
    assert [line.text for _, line in last.lines] == [f"new {number}" for number in range(4, 10)]
    first = logs.up(path, last.start, looking)
    assert ([line.text for _, line in first.lines], first.start) == ([f"new {number}" for number in range(4)], 0)
    below = logs.down(path, 0, looking)
    assert [line.text for _, line in below.lines] == [f"new {number}" for number in range(6)]
    assert b"old" not in b"".join(seen)
