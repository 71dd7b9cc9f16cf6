"""What one person asks keeps nobody else waiting: of each a few questions are answered at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from oarsman.console.api.streams import Turns
from oarsman.console.pages.page import PageContext
from oarsman.errors import RetryableError

from .asking import API, SITE, asking
from .memory import MemoryJobs, a_document


class SlowJobs(MemoryJobs):
    """Whether a job fits is known when somebody says so."""

    def __init__(self) -> None:
        super().__init__()
        self.known, self.asked, self.most = asyncio.Event(), 0, 0

    async def fit(self, *given: Any, **more: Any) -> Any:
        self.asked += 1
        self.most = max(self.most, self.asked)
        await self.known.wait()
        self.asked -= 1
        return await super().fit(*given, **more)


def test_of_one_person_a_few_questions_are_answered_at_the_same_time(tmp_path: Path) -> None:
    jobs = SlowJobs()
    with asking(tmp_path, jobs) as ask:

        async def run() -> None:
            transport = httpx.ASGITransport(ask.app)
            async with httpx.AsyncClient(transport=transport, base_url=SITE.address) as client:
                body = {"document": a_document("new")}

                def preview(name: str) -> asyncio.Task[httpx.Response]:
                    asked = client.post(f"{API}/preview", json=body, headers=ask.headers(name))
                    return asyncio.create_task(asked)

                many = [preview("vera") for _ in range(20)]
                while jobs.asked < 4:  # noqa: ASYNC110 - it ends by the test's own limit
                    await asyncio.sleep(0.01)
                other = preview("ada")
                while jobs.asked < 5:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                jobs.known.set()
                assert {answer.status_code for answer in await asyncio.gather(other, *many)} == {200}

        ask.portal.run(run())
    assert jobs.most == 5


def test_who_asks_for_too_much_at_once_is_told_so() -> None:
    turns = Turns()

    async def run() -> None:
        end = asyncio.Event()

        async def ask() -> None:
            async with turns.of("vera"):
                await end.wait()

        many = [asyncio.create_task(ask()) for _ in range(256)]
        await asyncio.sleep(0)
        with pytest.raises(RetryableError, match="too much at the same time"):
            await ask()
        async with turns.of("ada"):
            end.set()
        await asyncio.gather(*many)

    asyncio.run(run())
    assert not turns._gates


def test_what_is_asked_by_a_page_counts_as_well() -> None:
    turns = Turns()
    context: Any = SimpleNamespace(turn=lambda: turns.of("vera"), still_holds=lambda: True)

    async def run() -> None:
        end, asked = asyncio.Event(), 0

        async def question() -> None:
            nonlocal asked
            asked += 1
            await end.wait()

        many = [asyncio.create_task(PageContext.ask(context, question)) for _ in range(20)]
        while asked < 4:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert asked == 4
        end.set()
        await asyncio.gather(*many)

    asyncio.run(run())
