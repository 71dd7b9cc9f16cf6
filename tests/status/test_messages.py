from __future__ import annotations

from datetime import timedelta

from oarsman.status import messages


def test_sentences_say_no_more_than_is_known() -> None:
    for said, sentence in (
        (messages.failed("a/b"), "MPIJob a/b has failed"),
        (messages.failed("a/b", "why"), "MPIJob a/b has failed: why"),
        (messages.queued(0, ""), "in the queue"),
        (messages.queued(2, ""), "number 2 in the queue"),
        (messages.queued(0, "full"), "in the queue: full"),
        (messages.restarting(2, "boom", 20, 5), "attempt 2 failed: boom; the next try starts in 20 s, 5 left"),
    ):
        assert said == sentence


def test_whole_minutes_are_minutes() -> None:
    spans = {0: "0 s", 1: "1 s", 59: "59 s", 60: "1 min", 61: "61 s", 300: "5 min", 0.5: "0 s"}
    assert {seconds: messages.duration(timedelta(seconds=seconds)) for seconds in spans} == spans


def test_what_is_too_long_ends_in_dots() -> None:
    assert messages.cut("x" * 1024) == "x" * 1024
    assert messages.cut("x" * 1025) == "x" * 1021 + "..."
    assert messages.cut("abcdef", 5) == "ab..."
