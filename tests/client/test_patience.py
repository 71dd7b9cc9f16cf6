"""Whoever follows something outlasts a server that is started anew, also where that takes its time."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from service.memory_backend import NOON

from oarsman import errors
from oarsman.backoff import Backoff
from oarsman.client import http
from oarsman.client.remote import RemoteService
from oarsman.service import models

from .rest import EVENT_STREAM, event

END = b"event: end\ndata: {}\n\n"
KEY = "default/pi"


class Restarting:
    """Tells of a first line and is gone; after being asked so often in vain it tells the rest."""

    def __init__(self, in_vain: int) -> None:
        self._in_vain = in_vain
        self.asked = 0

    def __call__(self, _: httpx.Request) -> httpx.Response:
        self.asked += 1
        if self.asked == 1:
            return httpx.Response(200, headers=EVENT_STREAM, content=event(page(1)))
        if self.asked <= 1 + self._in_vain:
            raise httpx.ConnectError("refused")
        return httpx.Response(200, headers=EVENT_STREAM, content=event(page(2)) + END)


def page(number: int) -> models.LogPageView:
    line = models.LogLineView(after=str(number), time=NOON, rank=0, host="w", stream="out", text=f"line {number}")
    return models.LogPageView(lines=[line], before=None, after=str(number), attempt=1)


def read(server: Restarting) -> list[str]:
    service: Any = RemoteService("http://127.0.0.1:1", transport=httpx.MockTransport(server))

    async def lines() -> list[str]:
        return [line.text async for found in service.follow_log(KEY) for line in found.lines]

    return asyncio.run(lines())


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_BACKOFF", Backoff(0.0, 0.0))


def test_a_log_goes_on_after_a_server_was_away_for_long() -> None:
    assert read(Restarting(in_vain=5 * http.TRIES)) == ["line 1", "line 2"]


def test_a_server_that_never_comes_back_is_given_up() -> None:
    gone = Restarting(in_vain=10**6)
    with pytest.raises(errors.RetryableError, match="cannot be reached"):
        read(gone)
    assert gone.asked == http.TRIES_OF_FOLLOWERS
