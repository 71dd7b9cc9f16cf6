"""How sentences are recognised: whole ones, parts within them, and everything else left alone."""

from __future__ import annotations

import string

import pytest
from for_every import for_every
from hypothesis import given
from hypothesis import strategies as st

from oarsman.service.spoken import in_chinese
from oarsman.service.spoken.speaking import _BOOKS, KINDS, SENTENCES

PHRASES = {**SENTENCES, **{english: said for book in _BOOKS.values() for english, said in book.items()}}
KEPT = {"", "word", "n", "plain"}


def gaps(phrase: str) -> dict[str, str]:
    return {name: (kind or "").rstrip("?") for _, name, kind, _ in string.Formatter().parse(phrase) if name}


@for_every(PHRASES)
def test_a_phrase_has_the_same_gaps_in_both_languages(english: str) -> None:
    assert set(gaps(PHRASES[english])) == set(gaps(english))
    assert set(gaps(english).values()) <= KEPT | set(KINDS)


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        " ",
        "hello",
        "mpirun was not found",
        "MPIJob",
        "rank 1 did something else",
        "已经是中文了",
        "needs 2 bananas and more, 1 of 2 are eaten",
        "is running: {key}",
        "{key:word}",
        "a; b; c",
        pytest.param("MPIJob x is running." + " " * 5000, id="longer than anything we write"),
    ],
)
def test_what_is_not_known_stays_as_it_is(sentence: str) -> None:
    assert in_chinese(sentence) == sentence


@pytest.mark.parametrize(
    ("sentence", "chinese"),
    [
        ("rank 1 on h exited with code 3: it vanished", "h 上的进程 1 以退出码 3 结束：it vanished"),
        ("rank 1 on h exited with code 3: {0} %s {key}", "h 上的进程 1 以退出码 3 结束：{0} %s {key}"),
        ("rank 1 on h exited with code 3: 错误 在这里", "h 上的进程 1 以退出码 3 结束：错误 在这里"),
        ("environment x could not be built: No match; see", "环境 x 构建失败：No match; see"),
        (
            "not started: x-worker-1 was lost: it was evicted: The node was low on memory.",
            "没有启动：x-worker-1 失联：它被驱逐了：The node was low on memory.",
        ),
    ],
)
def test_foreign_text_is_kept_letter_by_letter(sentence: str, chinese: str) -> None:
    assert in_chinese(sentence) == chinese


@pytest.mark.parametrize("piece", ["a: ", "x was lost: ", "; ", "MPIJob x has failed: ", " of ", "needs 1 CPU, ", " ("])
def test_no_text_keeps_it_busy(piece: str) -> None:
    """The time limit of every test is the measure: a search that goes back and forth would not end."""
    for start in ("", "needs ", "rank 1 on x exited with code 1", "not started: "):
        in_chinese((start + piece * 4096)[:4000])


@given(st.text(max_size=200))
def test_any_text_comes_back(text: str) -> None:
    assert isinstance(in_chinese(text), str)
