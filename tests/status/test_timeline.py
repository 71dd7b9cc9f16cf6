from __future__ import annotations

from oarsman.status.timeline import mark
from tests.builders import at


def test_the_first_time_of_a_step_is_kept() -> None:
    once = mark({}, "launched", at(1))
    assert once == {"launched": at(1)}
    assert mark(once, "launched", at(2)) is once
    assert mark(once, "ended", None) is once
    assert mark(once, "ended", at(3)) == {"launched": at(1), "ended": at(3)}
