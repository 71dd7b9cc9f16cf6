from __future__ import annotations

from oarsman.status import messages


def test_a_job_that_was_over_before_it_was_seen_running_is_not_told_like_a_fault() -> None:
    assert messages.never_ran("default/pi") == "MPIJob default/pi is finished; it was over before it was seen running."
