"""Where streams about jobs get their events from: the job index."""

from __future__ import annotations

from contextlib import aclosing

from oarsman.console.api.sse import HEARTBEAT_SECONDS, STILL_HERE, Events, event
from oarsman.errors import NotFoundError
from oarsman.service import JobService
from oarsman.service.job_index import JobIndex
from oarsman.service.listing import ToldJobs
from oarsman.service.models import JobQuery

_AT_ONCE = 200  # events in one block: a reset of ten thousand jobs must not hold up everybody else


async def job_changes(service: JobService, job_index: JobIndex, query: JobQuery) -> Events:
    told = ToldJobs(job_index, service.wanted(query))
    async with aclosing(job_index.changes(HEARTBEAT_SECONDS)) as changes:
        async for news in changes:
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
    async with aclosing(job_index.changes(HEARTBEAT_SECONDS)) as changes:
        async for news in changes:
            if news is None:
                yield STILL_HERE
                continue
            if key not in news.keys and not news.reset:
                continue
            try:
                job = await service.job(key)
            except NotFoundError:
                return
            if uid and job.summary.uid != uid:  # another one of the same name
                return
            uid = job.summary.uid
            text = job.model_dump_json(by_alias=True)
            if text != last:
                last = text
                yield event(text)
