from __future__ import annotations

from oarsman.job.observed import Observed
from oarsman.job.state import Status
from oarsman.plan.turn import Turn
from tests.builders import a_job, at


def test_the_first_time_of_a_step_is_kept() -> None:
    turn = Turn(job=a_job(), seen=Observed(), now=at(0), status=Status())
    once = turn.mark("launched", at(1))
    assert once.status.timeline == {"launched": at(1)}
    assert once.mark("launched", at(2)) is once
    assert once.mark("ended", None) is once
    assert once.mark("ended", at(3)).status.timeline == {"launched": at(1), "ended": at(3)}
