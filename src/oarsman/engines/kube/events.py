"""Events, as `kubectl describe` shows them. They are a courtesy: whatever goes wrong with one never stops the work."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from oarsman import names
from oarsman.engines.kube.client import Kube
from oarsman.engines.kube.client.errors import AlreadyExists, Forbidden, NotFound
from oarsman.engines.kube.client.resources import EVENTS
from oarsman.errors import OarsmanError
from oarsman.text.sentence import Text, cut, dump

log = logging.getLogger("oarsman.events")


_REMEMBERED = 4096  # events that can still be counted up
_SAME_WITHIN = 600.0  # seconds after which the same thing is news again
_LONGEST_MESSAGE = 1024
_LONGEST_REASON = 128
_LONGEST_NAME = 253
_CLUSTER_WIDE = "default"  # where events about objects without a namespace go
_ATTEMPTS = 3


class ObjectRef(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


_Key = tuple[str, ...]


@dataclass(slots=True)
class _KnownEvent:
    """An event that was written, or is just being written."""

    name: str = ""  # empty: not written
    count: int = 0
    at: float = 0.0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(eq=False, slots=True)
class EventRecorder:
    kube: Kube
    component: str = "mpi-job-controller"
    instance: str = ""
    _: KW_ONLY
    clock: Callable[[], float] = time.monotonic
    time_ns: Callable[[], int] = time.time_ns
    _last_ns: int = field(default=0, init=False)
    _known: OrderedDict[_Key, _KnownEvent] = field(default_factory=OrderedDict, init=False)
    _forbidden: bool = field(default=False, init=False)

    async def record(self, involved: ObjectRef, type: str, reason: str, message: str) -> None:
        """Write an event, or count one up that was written in the last minutes. Never raises."""
        message, reason = cut(message, _LONGEST_MESSAGE), reason[:_LONGEST_REASON]
        known = self._remember((involved.kind, involved.namespace, involved.name, involved.uid, type, reason, message))
        event = {"involvedObject": msgspec.to_builtins(involved), "type": type, "reason": reason, "message": message}
        try:
            async with known.turn:
                if known.name and self.clock() - known.at < _SAME_WITHIN and await self._count_up(involved, known):
                    return
                await self._create(involved, known, event)
        except Forbidden as error:
            if not self._forbidden:
                log.warning("events cannot be written, which is not said again: %s", error)
            self._forbidden = True
        except (OarsmanError, OSError, TimeoutError) as error:
            log.warning("event %s of %s/%s was not written: %s", reason, involved.namespace, involved.name, error)

    def _remember(self, key: _Key) -> _KnownEvent:
        known = self._known.setdefault(key, _KnownEvent())
        self._known.move_to_end(key)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return known

    async def _count_up(self, involved: ObjectRef, known: _KnownEvent) -> bool:
        """False: the server has forgotten it meanwhile."""
        body = {"count": known.count + 1, "lastTimestamp": _rfc3339(self.time_ns())}
        try:
            await self.kube.patch(EVENTS, known.name, body, _place(involved))
        except NotFound:
            return False
        known.count += 1
        known.at = self.clock()
        return True

    async def _create(self, involved: ObjectRef, known: _KnownEvent, event: dict[str, Any]) -> None:
        for attempt in range(_ATTEMPTS):
            moment = self._last_ns = max(self.time_ns(), self._last_ns + 1)  # once: a clock may be coarse, or set back
            name = f"{involved.name[: _LONGEST_NAME - 17].rstrip('.-')}.{moment:x}"
            body = {
                "apiVersion": EVENTS.api_version,
                "kind": EVENTS.kind,
                "metadata": {"name": name, "namespace": _place(involved), **_made_of(event["message"])},
                **event,
                "count": 1,
                **dict.fromkeys(("firstTimestamp", "lastTimestamp"), _rfc3339(moment)),
                "source": {"component": self.component},
                "reportingComponent": self.component,
                "reportingInstance": self.instance,
            }
            try:
                await self.kube.create(EVENTS, body)
                break
            except AlreadyExists:  # somebody else has written about the same object in the same nanosecond
                if attempt == _ATTEMPTS - 1:
                    raise
        known.name, known.count, known.at = name, 1, self.clock()


def _made_of(message: str) -> dict[str, Any]:
    """For those who read it in another language."""
    if not isinstance(message, Text) or not message.arguments:
        return {}
    return {"annotations": {names.EVENT_TEXT: json.dumps(dump(message), separators=(",", ":"))}}


def _place(involved: ObjectRef) -> str:
    return involved.namespace or _CLUSTER_WIDE


def _rfc3339(ns: int) -> str:
    return datetime.fromtimestamp(ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
