"""All jobs at a glance: how many are in which state, and which failed last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest

from oarsman import names
from oarsman.sdk.catalogue import Rows
from oarsman.sdk.desk.listing import Visible
from oarsman.sdk.models import JobSummary, RecentFailure

_MOST_FAILURES = 50


@dataclass(frozen=True, slots=True)
class Glance:
    states: Mapping[str, int]
    failures: Sequence[RecentFailure]  # the newest, however old

    def lately(self, since: datetime) -> Sequence[RecentFailure]:
        return [failure for failure in self.failures if failure.ended >= since]


def glance(rows: Rows, visible: Visible, viewer: Hashable) -> Glance:
    """Counted once for all who see the same (`viewer`): however many look, jobs are gone through once per change."""
    return rows.once(("glance", viewer), lambda: _counted(rows, visible))


def _failed(row: JobSummary) -> bool:
    """What somebody stopped is no failure that anybody has to look into."""
    return row.state == names.FAILED and row.reason != names.REASON_STOPPED


def _counted(rows: Rows, visible: Visible) -> Glance:
    seen = [entry.summary for entry in rows.entries() if visible(entry)]
    failed = ((row.ended, row.key, row) for row in seen if _failed(row) and row.ended is not None)
    newest = nlargest(_MOST_FAILURES, failed, key=lambda found: found[:2])
    return Glance(
        Counter(row.state for row in seen),
        [RecentFailure(key=key, ended=ended, cause=row.cause or row.message) for ended, key, row in newest],
    )
