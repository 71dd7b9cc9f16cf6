"""Lines that come through a launcher elsewhere are kept as those of the rank that wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarsman.engines.hosts.core.launcher import TaggedRecorder
from oarsman.engines.hosts.core.log_lines import MERGED


def recorded(folder: Path, *chunks: bytes, stream: str = "out", hydra: bool = False) -> dict[str, str]:
    recorder = TaggedRecorder(str(folder), host="j-launcher", stream=stream, host_of=lambda rank: f"j-worker-{rank}")
    if hydra:
        recorder.by_hydra = True
    for chunk in chunks:
        recorder.feed(chunk)
    recorder.finish()
    merged = [line.split(" ", 1)[1] for line in (folder / MERGED).read_text().splitlines()]
    files = {file.name: file.read_text() for file in folder.iterdir() if file.name != MERGED and file.stat().st_size}
    return files | {"merged": "\n".join(merged)}


def test_each_line_goes_to_its_rank_and_its_stream(tmp_path: Path) -> None:
    found = recorded(tmp_path, b"[1,0]<stdout>:zero\n[1,1]<stderr>:one\nmpirun says\n")
    assert found == {
        "rank-0.out": "zero\n",
        "rank-1.err": "one\n",
        "launcher.out": "mpirun says\n",
        "merged": "0 j-worker-0 out zero\n1 j-worker-1 err one\n- j-launcher out mpirun says",
    }


@pytest.mark.parametrize("cut", range(1, 20))
def test_it_does_not_matter_where_the_output_is_cut_into_pieces(tmp_path: Path, cut: int) -> None:
    text = b"[1,3]<stdout>:hello\n"
    assert recorded(tmp_path, text[:cut], text[cut:])["rank-3.out"] == "hello\n"


def test_what_ends_without_a_new_line_is_kept(tmp_path: Path) -> None:
    assert recorded(tmp_path, b"[1,0]<stdout>:last words")["rank-0.out"] == "last words\n"


def test_brackets_of_a_program_are_no_tags(tmp_path: Path) -> None:
    for written in ("[2] a list\n", f"[1,{'9' * 5000}]<stdout>: x\n"):
        (folder := tmp_path / written[1]).mkdir()
        assert recorded(folder, written.encode(), hydra="]<" in written)["launcher.out"] == written


def test_hydra_tags_say_the_rank_and_the_pipe_says_the_stream(tmp_path: Path) -> None:
    assert recorded(tmp_path, b"[1,2]<stdout>: trouble\n", stream="err", hydra=True)["rank-2.err"] == "trouble\n"


def test_pieces_that_hydra_hands_on_are_there_before_their_line_ends(tmp_path: Path) -> None:
    recorder = TaggedRecorder(str(tmp_path), host="l", stream="err", host_of=str)
    recorder.by_hydra = True

    def now(chunk: bytes) -> tuple[bytes, ...]:
        recorder.feed(chunk)
        return tuple(file.read_bytes() for file in sorted(tmp_path.glob("rank-*.err")))

    assert now(b"[1,0]<stdout>: \r1%") == (b"\r1%",)
    assert now(b"[1,1]<stdout>: [#  ]") == (b"\r1%", b"[#  ]")
    assert now(b"[1,0]<stdo") == (b"\r1%", b"[#  ]")
    assert now(b"ut>: \r2%") == (b"\r1%\r2%", b"[#  ]")
    assert now(b"[1,0]<stdout>: \nmpiexec says\n") == (b"\r1%\r2%\n", b"[#  ]")
    assert now(b"[1,1]<stdout>:  [") == (b"\r1%\r2%\n", b"[#  ] ")
    recorder.finish()
    assert (tmp_path / "rank-1.err").read_bytes() == b"[#  ] ["
    merged = [line.split(" ", 1)[1] for line in (tmp_path / MERGED).read_text().splitlines()]
    assert merged == ["0 0 err 2%", "- l err mpiexec says", "1 1 err [#  ] ["]


@pytest.mark.parametrize("cut", range(1, 32))
def test_it_does_not_matter_where_the_pieces_of_hydra_are_cut(tmp_path: Path, cut: int) -> None:
    text = b"[1,31]<stdout>: [1\n[1,4]<stdout>: b"
    found = recorded(tmp_path, text[:cut], text[cut:], hydra=True)
    assert (found["rank-31.out"], found["rank-4.out"]) == ("[1\n", "b")


def test_bytes_that_are_no_text_come_through(tmp_path: Path) -> None:
    recorder = TaggedRecorder(str(tmp_path), host="l", stream="out", host_of=str)
    recorder.feed(b"[1,0]<stdout>:\xff\xfe\n")
    recorder.finish()
    assert (tmp_path / "rank-0.out").read_bytes() == b"\xff\xfe\n"


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    recorder = TaggedRecorder(str(tmp_path), host="l", stream="out", host_of=str)
    for _ in range(10):
        recorder.feed(b"x" * 50_000)
    assert len(recorder._partial) <= 1 << 16
    recorder.finish()
    assert (tmp_path / "launcher.out").read_bytes().count(b"x") == 500_000
