"""Whether there are buttons: asked of the place itself, not too often, and never at the cost of a page."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from waiting import waiting

from console.api.memory import MemoryJobs
from oarsman.console.console import RightsThere
from oarsman.errors import RetryableError


class Place:
    """A cluster that lets jobs be changed in some namespaces."""

    def __init__(self, *allowed: str | None) -> None:
        self.allowed = allowed
        self.asked: list[Sequence[str | None]] = []
        self.passed = 0.0
        self.away = False
        self.rights = waiting(RightsThere(self, lambda: ["a", "b"], lambda: self.passed))

    async def may_change(self, namespaces: Sequence[str | None]) -> bool:
        if self.away:
            raise RetryableError("the cluster does not answer")
        self.asked.append(namespaces)
        return any(namespace in self.allowed for namespace in namespaces)


def test_a_place_that_decides_nothing_leaves_it_to_the_roles() -> None:
    assert RightsThere(MemoryJobs(), list).may_change("anywhere")


def test_an_answer_counts_for_a_minute_and_is_shown_for_longer() -> None:
    place = Place("a")
    assert [place.rights.look("a"), place.rights.look("b"), place.rights.look("a")] == [True, False, True]
    assert place.asked == [["a"], ["b"]]
    place.allowed = ()
    place.passed = 61.0
    assert place.rights.may_change("a")  # a page that is open is not drawn slower for it
    assert not place.rights.look("a")
    assert not place.rights.may_change("a")


def test_anywhere_is_everywhere_or_where_there_are_jobs() -> None:
    assert Place(None).rights.look()
    assert Place("b").rights.look()
    place = Place("c")
    assert not place.rights.look()
    assert place.asked == [[None, "a", "b"]]


def test_without_an_answer_nothing_can_be_changed() -> None:
    place = Place("a")
    place.away = True
    with pytest.raises(RetryableError):
        place.rights.look("a")
    assert not place.rights.may_change("a")
