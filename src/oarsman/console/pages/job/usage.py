"""What each host of the job uses: processors, memory, network, GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from oarsman.console.pages.job.tab import Tab
from oarsman.console.parts.charts import Charts, Panel
from oarsman.console.words import Words
from oarsman.sdk.models import UsagePoint

_STRAGGLE = timedelta(minutes=1)  # not every engine measures all hosts at the same moment
_POINTS = 400  # of a host that are shown of what was before; more is nothing but weight


class Usage(Tab):
    name = "Usage"
    follows = True

    def build(self) -> None:
        self.ready = False
        self.uid = self.job.summary.uid
        self.newest: dict[str, datetime] = {}
        self.charts = Charts(self.guest.say, self.guest.say("Nothing was measured yet."), self._begin)
        self.charts.classes("w-full")

    async def _begin(self) -> None:
        self.ready, self.newest = True, {}
        await self.refresh()

    async def refresh(self) -> None:
        if not self.ready:
            return
        if self.uid != self.job.summary.uid:  # it runs again, under its own name
            self.uid, self.newest = self.job.summary.uid, {}
            self.charts.clear_all()
        whole = not self.newest
        since = None if whole else max(self.newest.values()) - _STRAGGLE
        found = await self.guest.ask(self.guest.visit.desk.usage, self.key, since=since)
        found = [point for point in found if point.host not in self.newest or point.time > self.newest[point.host]]
        if whole and self.newest:
            return  # somebody else was quicker
        self.newest.update({point.host: point.time for point in sorted(found, key=lambda point: point.time)})
        self.charts.add(panels(self.guest.say, thinned(found) if whole else found), whole=whole)


def panels(say: Words, points: Iterable[UsagePoint]) -> list[Panel]:
    cpu, memory = Panel("cpu", say("CPU (100 %: one core)"), "percent"), Panel("memory", say("Memory"), "bytes")
    received, sent = Panel("in", say("Network, received"), "rate"), Panel("out", say("Network, sent"), "rate")
    gpu, held = Panel("gpu", say("GPU"), "percent"), Panel("gpu-memory", say("GPU memory"), "bytes")
    for one in points:
        at = round(one.time.timestamp() * 1000)
        cpu.add(one.host, at, round(one.cpu_percent, 1))
        memory.add(one.host, at, one.memory_bytes)
        received.add(one.host, at, _whole(one.received_bytes_per_second))
        sent.add(one.host, at, _whole(one.sent_bytes_per_second))
        gpu.add(one.host, at, one.gpu_percent)
        held.add(one.host, at, one.gpu_memory_bytes)
    return [cpu, memory, received, sent, gpu, held]


def thinned(points: Sequence[UsagePoint]) -> list[UsagePoint]:
    """Every n-th moment and the last one."""
    moments = sorted({point.time for point in points})
    kept = {*moments[:: max(1, -(-len(moments) // _POINTS))], *moments[-1:]}
    return [point for point in points if point.time in kept]


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
