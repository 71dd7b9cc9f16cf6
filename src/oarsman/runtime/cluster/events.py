"""What happened to an object, as the cluster noted it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from oarsman.engines.kube.client import Kube, resources
from oarsman.runtime.jobs import EventRecord

_LONG_AGO = datetime.fromtimestamp(0, UTC)


async def of_object(kube: Kube, found: Mapping[str, Any]) -> list[EventRecord]:
    metadata = found["metadata"]
    items = await kube.list(resources.EVENTS, metadata["namespace"], fields=f"involvedObject.uid={metadata['uid']}")
    return sorted(map(_record, items), key=lambda event: event.time)


def _record(item: Mapping[str, Any]) -> EventRecord:
    """Old events count and have two times; new ones are series and have one."""
    series = item.get("series") or {}
    created = _time((item.get("metadata") or {}).get("creationTimestamp"))
    first = _time(item.get("firstTimestamp")) or _time(item.get("eventTime")) or created or _LONG_AGO
    last = _time(series.get("lastObservedTime")) or _time(item.get("lastTimestamp")) or first
    return EventRecord(
        time=last, first_time=first, severity=item.get("type") or "Normal", reason=item.get("reason") or "",
        message=item.get("message") or "", count=series.get("count") or item.get("count") or 1,
    )  # fmt: skip


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
