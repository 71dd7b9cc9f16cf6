from __future__ import annotations

from oarsman.status.conditions import cut, failed, latest_time, lower, put, queued, restarting
from tests.builders import a_condition, at

HERE = (a_condition("Created"), a_condition("Running"))


def test_what_already_stands_is_left_alone() -> None:
    assert put(HERE, "Created", True, reason="MPIJobCreated", message="other words", at=at(9)) is HERE


def test_a_refresh_renews_the_message_but_not_the_transition() -> None:
    changed = put(HERE, "Created", True, reason="MPIJobCreated", message="other words", at=at(9), refresh=True)
    assert changed[-1].message == "other words"
    assert (changed[-1].last_update_time, changed[-1].since) == (at(9), at(0))
    again = put(changed, "Created", True, reason="MPIJobCreated", message="other words", at=at(10), refresh=True)
    assert again is changed


def test_a_new_reason_keeps_the_time_of_the_transition_and_moves_to_the_end() -> None:
    changed = put(HERE, "Created", True, reason="Other", message="m", at=at(9))
    assert [c.type for c in changed] == ["Running", "Created"]
    assert (changed[-1].last_update_time, changed[-1].since) == (at(9), at(0))


def test_a_new_status_is_a_transition() -> None:
    changed = put(HERE, "Created", False, reason="Other", message="m", at=at(9))
    assert changed[-1].since == at(9)


def test_lowering_says_why_and_leaves_the_unsaid_unsaid() -> None:
    lowered = lower(HERE, "Running", reason="MPIJobSucceeded", message="finished", at=at(9))
    assert (lowered[-1].status, lowered[-1].reason, lowered[-1].since) == (
        False,
        "MPIJobSucceeded",
        at(9),
    )
    assert lower(HERE, "Restarting", reason="x", message="y", at=at(9)) is HERE
    assert lower(lowered, "Running", reason="x", message="y", at=at(10)) is lowered


def test_the_latest_time_of_nothing_is_none() -> None:
    assert latest_time(()) is None
    assert latest_time(HERE) == at(0)
    assert latest_time((a_condition("A", when=5), *HERE)) == at(5)
    renewed = put(HERE, "Created", True, reason="Other", message="m", at=at(9))
    assert latest_time(renewed) == at(9)


def test_what_came_to_an_end_stays_where_it_is() -> None:
    lowered = lower(HERE, "Created", reason="Other", message="m", at=at(9))
    assert [(c.type, c.status) for c in lowered] == [("Created", False), ("Running", True)]


def test_sentences_say_no_more_than_is_known() -> None:
    for said, sentence in (
        (failed("a/b"), "MPIJob a/b has failed"),
        (failed("a/b", "why"), "MPIJob a/b has failed: why"),
        (queued(0, ""), "in the queue"),
        (queued(2, ""), "number 2 in the queue"),
        (queued(0, "full"), "in the queue: full"),
        (restarting(2, "boom", 20, 5), "attempt 2 failed: boom; retrying in 20 s, 5 left"),
    ):
        assert said == sentence


def test_a_message_that_is_too_long_ends_in_dots() -> None:
    assert cut("x" * 1024) == "x" * 1024
    assert cut("x" * 1025) == "x" * 1021 + "..."
