"""What a job used over time, on a cluster: measured while somebody looks. The metrics server is played."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from oarsman import names
from oarsman.backends.base import Amounts, JobRecord
from oarsman.backends.kube import usage as series
from oarsman.backends.kube.backend import KubeBackend, nodes
from oarsman.backends.kube.usage import PodSampler
from oarsman.engines.kube.client import Unavailable
from oarsman.manifest import job_from_document

from .played import a_document
from .test_backend import a_status, submit

T0 = datetime(2026, 1, 1, 8, tzinfo=UTC)


class Measuring:
    """A metrics server whose clock goes on with every question."""

    def __init__(self, *, there: bool = True, fails: bool = False) -> None:
        self.there, self.fails = there, fails
        self.asked: list[str] = []
        self.more = asyncio.Condition()
        self.stands_still = False

    async def has(self, resource: Any) -> bool:
        return self.there

    async def list(self, resource: Any, namespace: str | None = None, *, labels: str = "") -> list[dict[str, Any]]:
        async with self.more:
            self.asked.append(labels)
            self.more.notify_all()
        if self.fails:
            raise Unavailable("list", "away")
        if resource is nodes.METRICS:
            return [{"metadata": {"name": "n1"}, "usage": {"cpu": "1500m", "memory": "2Gi"}}]
        moment = T0 + timedelta(seconds=15 * (1 if self.stands_still else len(self.asked)))
        usage = {"cpu": "250m", "memory": "64Mi"}
        return [
            {
                "metadata": {"name": name},
                "timestamp": f"{moment:%Y-%m-%dT%H:%M:%SZ}",
                "containers": [{"usage": usage}, {"usage": usage}],
            }
            for name in ("pi-launcher-abc", "pi-worker-0")
        ]

    async def until(self, count: int) -> None:
        async with self.more:
            await self.more.wait_for(lambda: len(self.asked) >= count)


def a_record(*true: str, name: str = "pi") -> JobRecord:
    job = replace(job_from_document(a_document(name=name)), uid=f"uid-{name}")
    return JobRecord(job=job, status=a_status(*true), created_at=T0, owner="", folder=None, engine="kube")


def story(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "EVERY_SECONDS", 0.001)


def test_a_running_job_is_measured_on_and_on_and_remembered_after_its_end() -> None:
    async def work() -> None:
        kube, sampler = Measuring(), PodSampler()
        first = await sampler.of(kube, a_record(names.RUNNING), None)  # type: ignore[arg-type]
        assert [(one.host, one.cpu_percent, one.memory_bytes) for one in first] == [
            ("pi-launcher", 50.0, 2**27),
            ("pi-worker-0", 50.0, 2**27),
        ]
        assert {(one.gpu_percent, one.received_bytes_per_second) for one in first} == {(None, None)}
        await kube.until(4)
        found = await sampler.of(kube, a_record(names.SUCCEEDED), None)  # type: ignore[arg-type]
        assert len(found) >= 6
        assert [one.time for one in found] == sorted(one.time for one in found)
        later = await sampler.of(kube, a_record(names.SUCCEEDED), first[0].time)  # type: ignore[arg-type]
        assert [one for one in found if one.time > first[0].time] == later[: len(found) - 2]
        await sampler.close()

    story(work())


def test_nobody_is_asked_about_a_job_that_ended_or_that_nobody_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        kube, sampler = Measuring(), PodSampler()
        assert await sampler.of(kube, a_record(names.SUCCEEDED), None) == []  # type: ignore[arg-type]
        assert (kube.asked, sampler._task) == ([], None)
        monkeypatch.setattr(series, "WATCHED_SECONDS", -1.0)
        await sampler.of(kube, a_record(names.RUNNING, name="other"), None)  # type: ignore[arg-type]
        assert sampler._task is not None
        await sampler._task  # ends by itself
        assert len(kube.asked) == 1

    story(work())


def test_a_moment_that_was_measured_already_is_not_told_twice() -> None:
    async def work() -> None:
        kube, sampler = Measuring(), PodSampler()
        kube.stands_still = True
        await sampler.of(kube, a_record(names.RUNNING), None)  # type: ignore[arg-type]
        await kube.until(4)
        assert len(await sampler.of(kube, a_record(names.RUNNING), None)) == 2  # type: ignore[arg-type]
        await sampler.close()

    story(work())


def test_a_metrics_server_that_is_away_or_not_there_costs_no_error() -> None:
    async def work() -> None:
        for kube in (Measuring(fails=True), Measuring(there=False)):
            sampler = PodSampler()
            assert await sampler.of(kube, a_record(names.RUNNING), None) == []  # type: ignore[arg-type]
            await sampler.close()
            assert await nodes._used(kube) == {}  # type: ignore[arg-type]

    story(work())


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "_MOST_JOBS", 2)

    async def work() -> None:
        kube, sampler = Measuring(), PodSampler()
        for name in ("a", "b", "c", "a"):
            await sampler.of(kube, a_record(names.RUNNING, name=name), None)  # type: ignore[arg-type]
        assert list(sampler._jobs) == ["default/c", "default/a"]
        assert all(one.samples.maxlen for one in sampler._jobs.values())
        await sampler.close()

    story(work())


def test_nodes_show_what_is_really_used_where_that_is_measured() -> None:
    async def work() -> None:
        assert await nodes._used(Measuring()) == {"n1": Amounts(cpus=1.5, memory_bytes=2**31)}  # type: ignore[arg-type]

    story(work())


def test_without_a_metrics_server_there_is_no_series_and_no_error(jobs: KubeBackend) -> None:
    assert list(jobs.usage_series(submit(jobs).job.key)) == []
