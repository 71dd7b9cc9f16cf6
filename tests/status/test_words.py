"""A job in a few words."""

from __future__ import annotations

import pytest

from oarsman import names
from oarsman.job.state import QueuePlace, Status
from oarsman.status.words import message, reason, state
from tests.builders import a_condition, a_status

ENDED = a_status(true=(names.CREATED, names.SUCCEEDED))
STOPPED = Status(conditions=(a_condition(names.FAILED, reason=names.REASON_STOPPED),))


@pytest.mark.parametrize(
    ("status", "asked", "word"),
    [
        (Status(), {}, "Pending"),
        (a_status(), {}, "Pending"),
        (a_status(true=(names.CREATED, names.RUNNING)), {}, "Running"),
        (a_status(true=(names.CREATED, names.RUNNING)), {"stop_requested": True}, "Stopping"),
        (a_status(true=(names.CREATED, names.RUNNING)), {"stop_requested": True, "deleting": True}, "Deleting"),
        (a_status(true=(names.CREATED, names.FAILED)), {}, "Failed"),
        (STOPPED, {}, "Stopped"),
        (STOPPED, {"stop_requested": True}, "Stopped"),
        (ENDED, {}, "Succeeded"),
        (ENDED, {"stop_requested": True}, "Succeeded"),
        (ENDED, {"deleting": True}, "Deleting"),
    ],
)
def test_a_job_has_one_word_and_what_was_asked_for_comes_first(
    status: Status, asked: dict[str, bool], word: str
) -> None:
    assert state(status, **asked) == word


def test_the_reason_is_that_of_the_state() -> None:
    assert (reason(ENDED), message(ENDED)) == ("MPIJobSucceeded", "said before")
    assert reason(STOPPED) == names.REASON_STOPPED
    assert (reason(Status()), message(Status())) == ("", "")


def test_a_job_in_a_queue_says_what_it_waits_for() -> None:
    assert message(a_status(queue=QueuePlace(position=1, reason="needs 4 CPUs"))) == "needs 4 CPUs"
