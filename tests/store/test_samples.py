"""What hosts used over time: bounded, and nothing of it lost to a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarsman.store import samples
from oarsman.store.samples import Moment, Sample, Series


def moment(number: int, cpu: float = 50.0, memory: int = 1000) -> Moment:
    return Moment(1000.0 + 5 * number, {"pi-worker-0": Sample(cpu, memory, 1.0, 2.0)})


def test_what_was_noted_is_read_back(tmp_path: Path) -> None:
    series = Series(tmp_path, 5.0)
    for number in range(3):
        series.add(moment(number))
    assert list(samples.read(tmp_path)) == [moment(number) for number in range(3)]
    assert list(samples.read(tmp_path / "nothing")) == []


def test_a_torn_line_is_left_out_and_the_next_writer_goes_on(tmp_path: Path) -> None:
    Series(tmp_path, 5.0).add(moment(0))
    with open(tmp_path / samples.FILE, "ab") as file:
        file.write(b'[1005.0,{"pi-worker-0":[50.0,10')
    assert list(samples.read(tmp_path)) == [moment(0)]
    series = Series(tmp_path, 5.0)
    assert series.last == moment(0).time
    series.add(moment(2))
    assert list(samples.read(tmp_path)) == [moment(0), moment(2)]


@pytest.mark.parametrize("garbage", [b"", b"\n", b"[]\n", b"[1]\n", b"[1, 2]\n", b'["x", {}]\n', b"\xff\n", b"[[[\n"])
def test_garbage_is_survived(garbage: bytes, tmp_path: Path) -> None:
    (tmp_path / samples.FILE).write_bytes(garbage)
    Series(tmp_path, 5.0).add(moment(1))
    assert list(samples.read(tmp_path)) == [moment(1)]


def test_a_long_run_is_thinned_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MOST", 10)
    series = Series(tmp_path, 5.0)
    for number in range(10):
        series.add(moment(number, cpu=float(number), memory=100 - number))
    kept = list(samples.read(tmp_path))
    assert [one.time for one in kept] == [moment(number).time for number in (1, 3, 5, 7, 9)]
    assert [one.hosts["pi-worker-0"].cpu_percent for one in kept] == [0.5, 2.5, 4.5, 6.5, 8.5]
    assert [one.hosts["pi-worker-0"].memory_bytes for one in kept] == [100, 98, 96, 94, 92]
    assert series.every == Series(tmp_path, 5.0).every == 10.0
    assert not series.due(moment(10).time)
    assert series.due(moment(11).time)


def test_hosts_that_were_not_there_at_both_moments_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MOST", 2)
    series = Series(tmp_path, 5.0)
    series.add(Moment(1.0, {"a": Sample(10.0, 5, None, None, 40.0, 7)}))
    series.add(Moment(6.0, {"b": Sample(20.0, 6)}))
    assert list(samples.read(tmp_path)) == [
        Moment(6.0, {"a": Sample(10.0, 5, None, None, 40.0, 7), "b": Sample(20.0, 6)})
    ]


def test_a_clock_set_back_does_not_stop_it(tmp_path: Path) -> None:
    series = Series(tmp_path, 5.0)
    series.add(moment(100))
    assert series.due(moment(1).time)
