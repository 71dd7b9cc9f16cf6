"""What the pods of a job use, now and over time, as the metrics server measured it.

The metrics server remembers nothing, so a series is measured while somebody looks.
"""

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
from oarsman.backends.base import JobRecord
from oarsman.engines.contract import HostUsage, UsageSample
from oarsman.engines.kube.client import ApiError, Kube, Resource, resources
from oarsman.errors import AccessError, UnsupportedError
from oarsman.manifest.quantity import parse
from oarsman.portal import in_background
from oarsman.text.sentence import Text

METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")


async def of_job(kube: Kube, record: JobRecord) -> list[HostUsage]:
    if not await kube.has(METRICS):
        hint = Text("install the metrics server: metrics.k8s.io is missing")
        raise UnsupportedError(Text("this cluster does not measure what pods use"), hint=hint)
    job, labels = record.job, f"{names.LABEL_JOB}={record.job.name}"
    measured = {item["metadata"]["name"]: item for item in await kube.list(METRICS, job.namespace, labels=labels)}
    pods = sorted(await kube.list(resources.PODS, job.namespace, labels=labels), key=_role_and_number)
    return [_usage(pod, found) for pod in pods if (found := measured.get(pod["metadata"]["name"])) is not None]


def _role_and_number(pod: Mapping[str, Any]) -> tuple[str, int]:
    """By this the launcher comes before the workers."""
    labels = pod["metadata"].get("labels") or {}
    index = labels.get(names.LABEL_INDEX) or "0"
    return names.role_of(labels), int(index) if index.isdigit() else 0


def _usage(pod: Mapping[str, Any], measured: Mapping[str, Any]) -> HostUsage:
    limits = [(c.get("resources") or {}).get("limits") or {} for c in pod["spec"]["containers"]]
    memory = [parse(limit["memory"]) for limit in limits if "memory" in limit]
    labels = pod["metadata"].get("labels") or {}
    cpu_percent, memory_bytes = _used(measured)
    return HostUsage(
        host=host_of(pod),
        role=names.role_of(labels),
        processes=None,
        cpu_percent=cpu_percent,
        memory_bytes=memory_bytes,
        memory_limit_bytes=int(sum(memory)) if memory and len(memory) == len(limits) else None,
    )


def _used(measured: Mapping[str, Any]) -> tuple[float, int]:
    """Percent of one processor, and bytes: of all containers together."""
    uses = [container.get("usage") or {} for container in measured.get("containers") or ()]
    processors, memory = (sum(parse(use.get(name, "0")) for use in uses) for name in ("cpu", "memory"))
    return float(processors * 100), int(memory)


def host_of(pod: Mapping[str, Any]) -> str:
    """The name the job knows it by: the launcher's pod has a suffix of its Job."""
    labels = pod["metadata"].get("labels") or {}
    if names.role_of(labels) == names.ROLE_LAUNCHER:
        return names.launcher_name(labels[names.LABEL_JOB])
    return str(pod["metadata"]["name"])


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


class PodSampler:
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
                self._task = in_background(self._sample(kube), "sampling usage")  # the next who asks begins again
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
    pod, launcher = str(item["metadata"]["name"]), names.launcher_name(job)
    when = datetime.fromisoformat(item["timestamp"]) if item.get("timestamp") else datetime.now(UTC)
    return UsageSample(when, launcher if pod.startswith(f"{launcher}-") else pod, *_used(item))
