"""The asynchronous client does the same, never holds up the loop, and can be cancelled at any moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from service.memory_backend import MANIFEST, MemoryService

from oarsman.client.async_client import AsyncClient
from oarsman.client.remote import RemoteService
from oarsman.errors import ConflictError, JobFailed, ManifestError, NotFoundError
from oarsman.service.models import CauseView

from .rest import Rest

Story = Callable[[AsyncClient], Coroutine[Any, Any, None]]


@pytest.fixture
def service() -> MemoryService:
    return MemoryService()


@pytest.fixture(params=["local", "remote"])
def play(request: pytest.FixtureRequest, service: MemoryService) -> Callable[[Story], None]:
    """Run a story with a client of either kind, in a loop of its own."""

    async def told(story: Story) -> None:
        answering: Any = service
        if request.param == "remote":
            answering = RemoteService("http://127.0.0.1:1", transport=Rest(service))
        async with AsyncClient(service=answering) as client:
            await story(client)

    return lambda story: asyncio.run(told(story))


Play = Callable[[Story], None]


def test_a_job_runs_to_its_end(play: Play, service: MemoryService) -> None:
    async def story(client: AsyncClient) -> None:
        running = asyncio.create_task(client.run(MANIFEST, progress=False))
        await asyncio.to_thread(_until, service, lambda: "default/pi" in service.kept)
        service.become("default/pi", "Running")
        service.become("default/pi", "Succeeded")
        assert (await running).state == "Succeeded"

    play(story)


def _until(service: MemoryService, true: Callable[[], bool]) -> None:
    with service.change:
        assert service.change.wait_for(true, 60)


def test_a_failure_is_raised_with_rank_and_host(play: Play, service: MemoryService) -> None:
    key = service.add("pi")
    service.become(key, "Failed", cause=CauseView(summary="it broke", rank=2, host="w1"))

    async def story(client: AsyncClient) -> None:
        with pytest.raises(JobFailed, match="rank 2 on w1: it broke"):
            await (await client.job("pi")).wait()

    play(story)


def test_errors_are_those_of_the_other_client(play: Play, service: MemoryService) -> None:
    service.add("pi", "Succeeded")

    async def story(client: AsyncClient) -> None:
        with pytest.raises(ManifestError):
            await client.submit(MANIFEST.replace("replicas: 2", "replicas: none"))
        with pytest.raises(ConflictError):
            await client.submit(MANIFEST)
        with pytest.raises(NotFoundError):
            await client.job("none")
        with pytest.raises(ConflictError, match="cannot become suspended"):
            await (await client.job("pi")).wait(until="suspended")

    play(story)


def test_a_wait_has_a_time_limit(play: Play, service: MemoryService) -> None:
    service.add("pi", "Running")

    async def story(client: AsyncClient) -> None:
        with pytest.raises(TimeoutError, match="default/pi is Running after"):
            await (await client.job("pi")).wait(timeout=0.05)

    play(story)


def test_cancelling_a_run_stops_the_job(play: Play, service: MemoryService) -> None:
    async def story(client: AsyncClient) -> None:
        running = asyncio.create_task(client.run(MANIFEST, progress=False))
        await asyncio.to_thread(_until, service, lambda: "default/pi" in service.kept)
        service.become("default/pi", "Running")
        await asyncio.to_thread(_until, service, lambda: "job" in service.asked)  # the watch begins with a look
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert service.kept["default/pi"].summary.reason == "StoppedByUser"

    play(story)


def test_cancelling_what_follows_a_silent_log_neither_hangs_nor_keeps_the_loop(
    play: Play, service: MemoryService
) -> None:
    key = service.add("pi", "Running")
    before = set(threading.enumerate())

    async def story(client: AsyncClient) -> None:
        job = await client.job("pi")

        async def read() -> None:
            async for _ in job.logs(follow=True):
                pass

        reading = asyncio.create_task(read())
        await asyncio.sleep(0.05)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    play(story)
    service.become(key, "Succeeded")  # the thread left behind sees the end of what it reads
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


def test_the_loop_goes_on_while_a_job_is_waited_for(play: Play, service: MemoryService) -> None:
    key = service.add("pi", "Running")

    async def story(client: AsyncClient) -> None:
        job = await client.job("pi")
        waiting = asyncio.create_task(job.wait())
        for _ in range(10):
            await asyncio.sleep(0.001)
        assert not waiting.done()
        service.become(key, "Succeeded")
        await waiting

    play(story)


def test_logs_are_read_filtered_and_followed(play: Play, service: MemoryService) -> None:
    key = service.add("pi", "Running")
    service.say(key, "a", "b", rank=0)
    service.say(key, "c", rank=1)

    async def story(client: AsyncClient) -> None:
        job = await client.job("pi")
        assert [line.text async for line in job.logs()] == ["a", "b", "c"]
        assert [line.text async for line in job.logs(rank=1)] == ["c"]
        assert [line.text async for line in job.logs(tail=2)] == ["b", "c"]
        assert [line.text async for line in job.logs(search="nothing")] == []
        lines = job.logs(follow=True, tail=1)
        assert (await anext(lines)).text == "c"
        service.say(key, "d")
        assert (await anext(lines)).text == "d"
        service.become(key, "Succeeded")
        assert [line async for line in lines] == []

    play(story)


def test_everything_else_answers_too(play: Play, service: MemoryService) -> None:
    for number in range(250):
        service.add(f"job-{number}", "Succeeded")

    async def story(client: AsyncClient) -> None:
        assert len([job async for job in client.jobs()]) == 250
        assert await anext(job.name async for job in client.jobs(search="job-24")) == "job-24"
        job = await client.job("job-1")
        clone = await job.clone("copy", workers=3)
        assert clone.summary.workers == 3
        assert (await clone.scale(4)).summary.workers == 4
        assert (await clone.suspend()).state == "Suspended"
        assert (await clone.resume()).state == "Running"
        assert (await clone.stop()).state == "Stopped"
        assert (await clone.rerun()).state == "Pending"
        await clone.delete()
        await client.delete("job-0")
        assert (await job.events())[0].reason == "Created"
        assert len(await job.usage()) == 3
        assert (await job.progress()).series[0].name == "loss"
        assert (await client.hosts())[0].state == "ready"
        assert (await client.queue())[0].position == 1
        assert (await client.overview()).states == {"Running": 1}
        assert (await client.templates())[0].name == "hello"
        assert (await client.preview(MANIFEST)).ranks == 2
        assert (await client.convert(MANIFEST, "v1"))[0]
        changes = [change async for change in client.changes()]
        assert changes[0].reset

    play(story)


def test_a_job_that_is_gone_ends_the_wait_for_its_deletion(play: Play, service: MemoryService) -> None:
    service.add("pi", "Running")

    async def story(client: AsyncClient) -> None:
        job = await client.job("pi")
        waiting = asyncio.create_task(job.wait(until="deleted"))
        await job.delete()
        await waiting

    play(story)
