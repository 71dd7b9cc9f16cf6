"""The log of one container, line by line, each with its time. A stream that breaks is taken up where it was."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from oarsman.backends.kube import lookups
from oarsman.engines.kube.client import Invalid, Kube, NotFound, Unavailable, resources

_BATCH: Final = 2000
_SLACK_SECONDS: Final = 60  # clocks of machines differ; what comes twice is recognised
_BACK_SECONDS: Final = 2.0  # lines written at once by several are out of order by much less
_PAUSE_SECONDS: Final = 1.0
_LAST_TRIES: Final = 5
_LOST: Final = b"unable to retrieve container logs"  # said by the kubelet in the log's place once that is gone
_WIDTH: Final = 30  # of 2026-01-31T08:00:00.123456789Z

_PARTS: Final = (16384, 8192)  # containerd's, and that of CRI-O
_TIME: Final = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) ")


class Written(NamedTuple):
    stamp: str  # UTC, nanoseconds: text order is time order
    text: str


Spot = tuple[str, int]  # behind the n-th line of those with this stamp
BEGINNING: Final[Spot] = ("", 0)


class PodLog:
    """Remembers how far it was read, so that reading can go on after any break.

    Lines of a container may be a little out of order: the stamp of each is made at least that of the line before.
    """

    def __init__(self, kube: Kube, namespace: str, pod: str, container: str, *, after: Spot = BEGINNING) -> None:
        self._kube, self._namespace, self._pod, self._container = kube, namespace, pod, container
        self._last, self._times = after  # the newest time, and how many lines carry it

    async def read(
        self,
        *,
        tail: int | None = None,
        since: datetime | None = None,
        follow: bool = False,
        since_time: str | None = None,
        skipped: Callable[[Written], object] | None = None,
    ) -> AsyncGenerator[list[Written]]:
        """What is there now, nothing where there is no log yet or none any more; with `follow`, all until the container
        has ended for good.

        `since` is by our clock, `since_time` by that of the stamps. `skipped` is shown what the server repeats of
        what comes before the place to start from.
        """
        tries_after_the_end = 0
        while True:
            broken = False
            if self._last:
                since, since_time = None, earlier(self._last, _BACK_SECONDS)
            try:
                async with aclosing(self._stream(tail, since, since_time, follow, skipped)) as batches:
                    async for batch in batches:
                        yield batch
            except Unavailable:
                if not follow:
                    raise
                broken = True
            except (Invalid, NotFound):  # the container waits to be started, or the pod is gone
                return
            if not follow:
                return
            if await self._over():  # what a broken stream still owed is asked for, unless nobody has it
                tries_after_the_end += 1
                if not broken or tries_after_the_end > _LAST_TRIES:
                    return
            tail = skipped = None
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _stream(
        self,
        tail: int | None,
        since: datetime | None,
        since_time: str | None,
        follow: bool,
        skipped: Callable[[Written], object] | None,
    ) -> AsyncGenerator[list[Written]]:
        seconds = None if since is None else max(1, math.ceil(time.time() - since.timestamp()) + _SLACK_SECONDS)
        lines = self._kube.log(
            self._pod,
            self._namespace,
            container=self._container,
            follow=follow,
            tail=tail,
            since_seconds=seconds,
            since_time=since_time,
            timestamps=True,
        )
        (known, times), same, newest = (self._last, self._times), 0, ""
        batch: list[Written] = []
        async with aclosing(lines):
            async for raw in lines:
                if raw.startswith(_LOST):
                    continue
                line = parse(raw)
                if line.stamp < newest:
                    line = Written(newest, line.text)
                newest = line.stamp
                if known:
                    same += newest == known
                    if newest < known or (newest == known and same <= times):
                        if skipped is not None:
                            skipped(line)
                        continue
                    known = ""
                self._times = self._times + 1 if newest == self._last else 1
                self._last = newest
                batch.append(line)
                if follow or len(batch) >= _BATCH:
                    yield batch
                    batch = []
        if batch:
            yield batch

    async def _over(self) -> bool:
        try:
            pod = await self._kube.get(resources.PODS, self._pod, self._namespace)
        except NotFound:
            return True
        except Unavailable:
            return False
        return lookups.ended(pod, self._container)


def behind(spot: Spot, stamp: str) -> Spot:
    """Where one is after one more line with this stamp."""
    return (stamp, spot[1] + 1) if stamp == spot[0] else (stamp, 1)


def earlier(stamp: str, seconds: float) -> str:
    """So long before that, as the server wants to be told."""
    moment = datetime.fromisoformat(stamp[:19] + "+00:00") - timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def parse(raw: bytes) -> Written:
    if len(raw) > _PARTS[-1]:
        raw = _in_one_piece(raw)
    stamp, _, text = raw.decode(errors="surrogateescape").partition(" ")
    if len(stamp) != _WIDTH or stamp[-1] != "Z":
        stamp = _normal(stamp)
    return Written(stamp, text.rstrip("\r"))


def _in_one_piece(raw: bytes) -> bytes:
    """Container runtimes keep long lines in parts, and older kubelets put a time before each of them."""
    start = raw.index(b" ") + 1 if b" " in raw else 0
    for size in _PARTS:
        at = start + size
        pieces = [raw[:at]]
        while (inner := _TIME.match(raw, at)) is not None:
            at = inner.end() + size
            pieces.append(raw[inner.end() : at])
        if len(pieces) > 1:
            return b"".join([*pieces, raw[at:]])
    return raw


def _normal(stamp: str) -> str:
    """Trailing zeros may be missing, and the zone may be the node's own."""
    whole, _, rest = stamp.partition(".")
    digits = rest.rstrip("Z").partition("+")[0].partition("-")[0]
    zone = rest[len(digits) :] if rest else ""
    try:
        moment = datetime.fromisoformat(whole + (zone or ("" if whole[-1:] == "Z" else "Z")))
    except (ValueError, IndexError):
        moment, digits = datetime.fromtimestamp(0, UTC), ""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{digits[:9]:0<9}Z"
