"""Where streams get their events from: the job index and the shared followers of logs. No thread waits per client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from starlette.concurrency import run_in_threadpool

from oarsman.console.api.sse import HEARTBEAT_SECONDS, STILL_HERE, Events, event
from oarsman.errors import NotFoundError
from oarsman.service import JobService
from oarsman.service.job_index import IndexChanges, JobIndex
from oarsman.service.models import JobQuery

_AT_ONCE = 200  # events in one block: a reset of ten thousand jobs must not hold up everybody else


async def job_changes(service: JobService, job_index: JobIndex, query: JobQuery) -> Events:
    told = service.told(query, job_index)
    async for news in _news(job_index):
        if news is None:
            yield STILL_HERE
            continue
        block: list[bytes] = []
        for change in told.changes(news):
            block.append(event(change.model_dump_json(by_alias=True, exclude_none=True)))
            if len(block) == _AT_ONCE:
                yield b"".join(block)
                block = []
        if block:
            yield b"".join(block)


async def one_job(service: JobService, job_index: JobIndex, key: str) -> Events:
    """The job now, and whenever its row changes; ends when it is gone."""
    last: str | None = None
    uid = ""
    async for news in _news(job_index):
        if news is None:
            yield STILL_HERE
            continue
        if key not in news.keys and not news.reset:
            continue
        try:
            job = await run_in_threadpool(service.job, key)
        except NotFoundError:
            return
        if uid and job.summary.uid != uid:  # another one of the same name
            return
        uid = job.summary.uid
        text = job.model_dump_json(by_alias=True)
        if text != last:
            last = text
            yield event(text)


async def _news(job_index: JobIndex) -> AsyncGenerator[IndexChanges | None, None]:
    """What changes; None: nothing did for a while. Raises what keeps the job index from knowing."""
    loop = asyncio.get_running_loop()
    awake = asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop is gone; so is whoever waited
            loop.call_soon_threadsafe(awake.set)

    subscription = job_index.subscribe(wake)
    try:
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await awake.wait()
            except TimeoutError:
                yield None
                continue
            awake.clear()
            if job_index.error is not None:
                raise job_index.error
            news = subscription.take() if job_index.known else None
            if news is not None:
                yield news
    finally:
        subscription.close()
