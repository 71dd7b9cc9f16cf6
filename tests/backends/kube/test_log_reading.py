"""A log of a pod, which has no offsets, is read once all the same: each look goes on behind the last one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarsman.backends.base import EVERYTHING, LogPage, LogQuery
from oarsman.portal import shared
from oarsman.service import progress
from oarsman.service.progress import LogReading

from .test_log_pages import LAUNCHER, STEPS, Kubelet, follow, many, page, plain, raw


class OpenBackend:
    """The two questions about logs, put to a kubelet that is played."""

    def __init__(self, kubelet: Kubelet) -> None:
        self.kubelet = kubelet

    async def log_page(self, key: str, query: LogQuery = EVERYTHING, **given: Any) -> LogPage:
        return await asyncio.to_thread(page, self.kubelet, query, **given)

    async def log_follow(
        self, key: str, query: LogQuery = EVERYTHING, *, after: str | None = None
    ) -> AsyncGenerator[LogPage, None]:
        for found in await asyncio.to_thread(follow, self.kubelet, query, after):
            yield found


def read(log: LogReading) -> list[str]:
    return [line.text for lines in shared().iterate(log.news()) for line in lines]


def a_reading(kubelet: Kubelet) -> LogReading:
    return LogReading(OpenBackend(kubelet), "default/pi")  # type: ignore[arg-type]


@pytest.mark.parametrize("apart", [0.1, 0.0])
def test_each_look_has_what_was_written_since(apart: float) -> None:
    kubelet = Kubelet(ended=False)
    log = a_reading(kubelet)
    found: list[str] = []
    for count in (0, 1, 1, 2, 30, 700, 700, 701):
        kubelet.logs[LAUNCHER] = many(count, apart=apart)
        kubelet.pods[0]["status"]["phase"] = "Succeeded"  # so that following it ends
        found += read(log)
        assert found == plain(count)
    assert log.complete


@settings(max_examples=40, deadline=None)
@given(STEPS, st.integers(0, 3))
def test_within_the_limits_nothing_is_lost_or_doubled_however_the_clock_goes(steps: list[float], first: int) -> None:
    moments = [sum(steps[: number + 1], 1.0) for number in range(len(steps))]
    lines = [raw(moment, f"line {number}") for number, moment in enumerate(moments)]
    kubelet = Kubelet(lines[:first])
    log = a_reading(kubelet)
    with mock.patch.multiple(progress, OLDEST=60, NEWEST=60, _PAGE=7):
        found = read(log)
        kubelet.logs[LAUNCHER] = lines
        found += read(log)
    assert (found, log.complete) == (plain(len(lines)), True)


def test_of_a_longer_log_the_middle_is_left_out() -> None:
    kubelet = Kubelet(many(3))
    log = a_reading(kubelet)
    with mock.patch.multiple(progress, OLDEST=60, NEWEST=30, _PAGE=7):
        found = read(log)
        kubelet.logs[LAUNCHER] = many(500)
        found += read(log)
    assert found == plain(500)[:63] + plain(500)[-30:]
    assert not log.complete
