"""The merged log: whole lines in, the same lines out, from the end without reading it all."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman.engines.hosts.core.log_lines import MERGED as WRITTEN
from oarsman.engines.hosts.core.log_lines import Recorder
from oarsman.store import logs


def everything(_line: logs.LogLine) -> bool:
    return True


def read(path: Path, **options: object) -> list[logs.LogLine]:
    reader = logs.MergedLogReader(path, wanted=options.pop("wanted", everything), **options)  # type: ignore[arg-type]
    return [line for lines in reader.news() for line in lines]


def test_writer_and_reader_mean_the_same_file() -> None:
    assert WRITTEN == logs.MERGED


@given(
    chunks=st.lists(
        st.text(st.characters(blacklist_characters="\n\r", codec="utf-8")).flatmap(
            lambda text: st.sampled_from([text, text + "\n", "\n" + text])
        )
    )
)
def test_lines_come_out_as_they_went_in_however_they_were_cut(
    chunks: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    recorder = Recorder(str(folder), rank="3", host="a-worker-1", stream="out", merge=True)
    for chunk in chunks:
        if chunk:
            recorder.feed(chunk.encode())
    recorder.finish()
    whole = "".join(chunks)
    expected = whole.removesuffix("\n").split("\n") if whole else []
    found = read(folder / logs.MERGED)
    assert [line.text for line in found] == expected
    assert {(line.rank, line.host, line.stream) for line in found} <= {(3, "a-worker-1", "out")}
    assert (folder / "rank-3.out").read_bytes() == whole.encode()


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"1%\r2%\r3%\n"], ["3%"]),
        ([b"1%\r", b"2%\r", b"3%\r", b"\n", b"next\n"], ["3%", "next"]),
        ([b"\r1%", b"\r2%", b"\n"], ["2%"]),
        ([b"one\r\n", b"two\r", b"\nthree\r\r\n"], ["one", "two", "three"]),
        ([b"before\n1%\r2%"], ["before", "2%"]),
        ([b"a\0b\n"], ["a\0b"]),
    ],
)
def test_of_a_line_that_was_written_over_the_last_state_is_kept(
    tmp_path: Path, chunks: list[bytes], lines: list[str]
) -> None:
    recorder = Recorder(str(tmp_path), rank="0", host="h", stream="out", merge=True)
    for chunk in chunks:
        recorder.feed(chunk)
    recorder.finish()
    assert [line.text for line in read(tmp_path / logs.MERGED)] == lines
    assert (tmp_path / "rank-0.out").read_bytes() == b"".join(chunks)


def test_hours_of_a_progress_bar_are_one_line_and_take_no_memory(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path), rank="0", host="h", stream="err", merge=True)
    for number in range(1000):
        recorder.feed(b"\r%6d of many" % number * 100)
        assert len(recorder._partial) < 100
    recorder.finish()
    assert [line.text for line in read(tmp_path / logs.MERGED)] == ["   999 of many"]


@pytest.mark.parametrize("name", ["plm:rsh", "plm:ssh"])
def test_open_mpis_quarrel_with_its_own_child_is_not_shown(tmp_path: Path, name: str) -> None:
    said = f"[pi-launcher:00034] {name}: Warning: setpgid(39,39) failed in parent with errno=Permission denied(13)\n"
    for rank in ("-", "0"):  # a program may write what it likes
        recorder = Recorder(str(tmp_path), rank=rank, host="h", stream="err", merge=True)
        recorder.feed(said.encode())
        recorder.feed(b"before\n" + said.encode() + b"after\n")
        recorder.finish()
    texts = [(line.rank, line.text) for line in read(tmp_path / logs.MERGED)]
    warning = said.removesuffix("\n")
    assert texts == [(None, "before"), (None, "after"), (0, warning), (0, "before"), (0, warning), (0, "after")]


def test_many_writers_never_mix_their_lines(tmp_path: Path) -> None:
    children = []
    for rank in range(4):
        pid = os.fork()
        if pid == 0:
            recorder = Recorder(str(tmp_path), rank=str(rank), host="h", stream="out", merge=True)
            for step in range(500):
                recorder.feed(f"rank {rank} step {step}\n".encode() * 3)
            recorder.finish()
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    found = read(tmp_path / logs.MERGED)
    assert len(found) == 4 * 500 * 3
    assert all(line.text.startswith(f"rank {line.rank} step ") for line in found)


@pytest.mark.parametrize("tail", [0, 1, 2, 7, 1000, 30_000, 50_000])
def test_the_tail_is_found_from_the_end(tail: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_BLOCK", 1000)
    path = tmp_path / logs.MERGED
    count = 2000 if tail < 30_000 else 300
    path.write_text("".join(f"2026-11-15T04:05:06.000000Z {i % 3} h out line {i} 汉字\n" for i in range(count)))
    expected = [f"line {i} 汉字" for i in range(count)]
    assert [line.text for line in read(path, tail=tail)] == expected[len(expected) - tail if tail < count else 0 :]
    ones = [text for i, text in enumerate(expected) if i % 3 == 1]
    found = read(path, tail=tail, wanted=lambda line: line.rank == 1)
    assert [line.text for line in found] == ones[len(ones) - tail if tail < len(ones) else 0 :]


def test_a_torn_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / logs.MERGED
    path.write_bytes(
        b"2026-11-15T04:05:06.000000Z 0 h out good\ntorn\n2026-11-15T04:05:06.000000Z x h out bad rank\n\xff\n"
    )
    assert [line.text for line in read(path)] == ["good"]


def test_times_order_as_text(tmp_path: Path) -> None:
    folder = tmp_path
    recorder = Recorder(str(folder), rank="-", host="h", stream="err", merge=True)
    recorder.feed(b"one\n")
    recorder.feed(b"two\n")
    recorder.finish()
    one, two = read(folder / logs.MERGED)
    assert one.stamp <= two.stamp
    assert logs.stamp(one.time) == one.stamp
    assert (one.rank, one.stream) == (None, "err")


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read(tmp_path / "nothing") == []
    assert logs.attempts(tmp_path) == []


NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def write_at(path: Path, seconds: list[int], torn: int = 0) -> None:
    """One line for each moment; every `torn`-th one is none."""
    with open(path, "w") as file:
        for number, second in enumerate(seconds):
            whole = not torn or number % torn
            head = f"{logs.stamp(NOON + timedelta(seconds=second))} 0 host out" if whole else "torn"
            file.write(f"{head} line {number}\n")


@given(
    jitter=st.lists(st.integers(-30, 30), max_size=200),
    since=st.integers(-100, 1100),
    near=st.sampled_from([1, 100]),
    torn=st.sampled_from([0, 2, 7]),
    tail=st.sampled_from([None, 0, 5, 1000]),
)
def test_lines_since_a_time_are_the_same_as_if_all_were_read(
    jitter: list[int], since: int, near: int, torn: int, tail: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("log") / logs.MERGED
    write_at(path, [5 * number + late for number, late in enumerate(jitter)], torn)
    moment = NOON + timedelta(seconds=since)

    def wanted(line: logs.LogLine) -> bool:
        return line.stamp >= logs.stamp(moment)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "_NEAR", near)
        floor = logs.start_of(path, moment)
    assert read(path, wanted=wanted, tail=tail, floor=floor) == read(path, wanted=wanted, tail=tail)


def test_of_a_long_log_only_what_is_late_enough_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / logs.MERGED
    write_at(path, list(range(50_000)))
    parsed: list[str] = []
    real = logs.parse
    monkeypatch.setattr(logs, "parse", lambda line: parsed.append(line) or real(line))
    since = NOON + timedelta(seconds=49_990)
    found = read(path, wanted=lambda line: line.stamp >= logs.stamp(since), floor=logs.start_of(path, since))
    assert [line.text for line in found] == [f"line {number}" for number in range(49_990, 50_000)]
    assert len(parsed) < 2_500  # what lies close to it, and one line for every halving


def test_a_log_that_is_not_there_begins_at_its_beginning(tmp_path: Path) -> None:
    assert logs.start_of(tmp_path / logs.MERGED, NOON) == 0


def test_what_a_rank_writes_into_the_log_itself_holds_nobody(tmp_path: Path) -> None:
    """It has the file open. A terabyte of nothing costs it nothing, and whoever reads it as much as is asked for."""
    path = tmp_path / logs.MERGED
    now = logs.stamp(datetime.now(UTC))
    forged = (f"{now} {'9' * 5000} h out many", f"{now} 1.5 h out half", "99Z 0 h out never", f"{now} 0 h out", "")
    path.write_bytes("\n".join((f"{now} 0 h out before", *forged)).encode())
    os.truncate(path, 1 << 40)
    look = logs.Look(wanted=None, promising=lambda _: True, limit=10)
    reader = logs.MergedLogReader(path, wanted=None)
    for _, lines in zip(range(200), reader.news(), strict=False):
        assert [line.text for line in lines] in ([], ["before"])
    assert len(reader._rest) < 1 << 20
    first = logs.down(path, 0, look)
    assert [line.text for _, line in first.lines] == ["before"]
    assert first.end > logs.MOST_BYTES // 2
    last = logs.up(path, None, look)
    assert (last.lines, last.end) == ([], 1 << 40)
    assert last.start < (1 << 40) - logs.MOST_BYTES // 2
