"""What pods used over time, measured while somebody looks: the metrics server itself remembers nothing."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from oarsman import names
from oarsman.engines.kube.client import ApiError, Kube
from oarsman.errors import AccessError
from oarsman.manifest.quantity import parse
from oarsman.runtime.cluster.usage import METRICS
from oarsman.runtime.jobs import JobRecord, UsageSample

EVERY_SECONDS: Final = 15.0
WATCHED_SECONDS: Final = 300.0  # after the last question
_MOST_JOBS: Final = 100
_MOST_SAMPLES: Final = 10_000  # of one job


@dataclass(slots=True)
class _Series:
    uid: str
    asked: float = 0.0
    running: bool = True
    samples: deque[UsageSample] = field(default_factory=lambda: deque(maxlen=_MOST_SAMPLES))
    newest: dict[str, datetime] = field(default_factory=dict)  # by host


class Sampler:
    """Lives in the event loop: one task, and only while somebody has asked lately about a job that runs."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Series] = {}
        self._task: asyncio.Task[None] | None = None

    async def of(self, kube: Kube, record: JobRecord, since: datetime | None) -> Sequence[UsageSample]:
        with suppress(ApiError):  # one who may not see use sees none
            if not await kube.has(METRICS):
                return []
        key = record.job.key
        series = self._jobs.pop(key, None)
        if series is None or series.uid != record.job.uid:
            series = _Series(record.job.uid)
        self._jobs[key] = series
        while len(self._jobs) > _MOST_JOBS:
            del self._jobs[next(iter(self._jobs))]  # not asked about for longest
        first = not series.asked
        series.asked, series.running = time.monotonic(), not record.status.finished
        if series.running:
            if first:
                await _measure(kube, key, series)
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._sample(kube))
        return [one for one in series.samples if since is None or one.time > since]

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _sample(self, kube: Kube) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            lately = time.monotonic() - WATCHED_SECONDS
            due = [(key, series) for key, series in self._jobs.items() if series.running and series.asked > lately]
            if not due:
                return
            await asyncio.gather(*(_measure(kube, key, series) for key, series in due))


async def _measure(kube: Kube, key: str, series: _Series) -> None:
    namespace, _, name = key.partition("/")
    try:
        found = await kube.list(METRICS, namespace, labels=f"{names.LABEL_JOB}={name}")
    except (ApiError, AccessError):  # this moment is lost; the next one may be had
        return
    for item in sorted(found, key=lambda item: str(item["metadata"]["name"])):
        sample = _read(name, item)
        if sample.time > series.newest.get(sample.host, datetime.fromtimestamp(0, UTC)):
            series.newest[sample.host] = sample.time
            series.samples.append(sample)


def _read(job: str, item: Mapping[str, Any]) -> UsageSample:
    pod = str(item["metadata"]["name"])
    launcher = names.launcher_name(job)
    uses = [container.get("usage") or {} for container in item.get("containers") or ()]
    return UsageSample(
        time=datetime.fromisoformat(item["timestamp"]) if item.get("timestamp") else datetime.now(UTC),
        host=launcher if pod.startswith(f"{launcher}-") else pod,
        cpu_percent=float(sum(parse(use.get("cpu", "0")) for use in uses) * 100),
        memory_bytes=int(sum(parse(use.get("memory", "0")) for use in uses)),
    )
