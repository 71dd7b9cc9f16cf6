"""The number that a pattern finds in a job's log: the last one, looked for from the end, in a bounded part of it."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from oarsman.errors import NotFoundError, OarsmanError
from oarsman.job.sweep import number_in
from oarsman.runtime.jobs import EVERYTHING, Jobs

_LINES_AT_ONCE = 500
_PAGES = 4
_LONGEST_LINE = 2_000
_MOST_KEPT = 20_000
_FRESH_SECONDS = 5.0  # of a job that still writes


def last_number(jobs: Jobs, key: str, pattern: re.Pattern[str]) -> float | None:
    """None: no line of the last ones says it, or there is no log."""
    before: str | None = None
    for _ in range(_PAGES):
        try:
            page = jobs.log_page(key, EVERYTHING, before=before, limit=_LINES_AT_ONCE)
        except NotFoundError:
            return None
        for placed in reversed(page.lines):
            found = number_in(pattern, placed.line.text[:_LONGEST_LINE])
            if found is not None:
                return found
        before = page.before
        if before is None:
            return None
    return None


class MetricsKept:
    """What was found, per job: for good once it has ended, for a moment while it runs."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[float | None, float | None]] = OrderedDict()

    def of(self, jobs: Jobs, key: str, uid: str, pattern: re.Pattern[str], *, ended: bool) -> float | None:
        name = (uid, pattern.pattern)
        with self._lock:
            value, until = self._kept.get(name, (None, 0.0))
            if until is None or (not ended and self._now() < until):
                return value
        try:
            value = last_number(jobs, key, pattern)
        except OarsmanError:  # a log that cannot be read now is no reason to show nothing at all
            return value
        with self._lock:
            self._kept[name] = (value, None if ended else self._now() + _FRESH_SECONDS)
            self._kept.move_to_end(name)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return value
