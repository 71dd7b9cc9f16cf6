"""The steps of a job's life, each with the first time it was seen.

The first time is kept: a retry or a resume does not rewrite when hosts first came up. What happened in
each attempt is told by the attempts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

SUBMITTED: Final = "submitted"
ADMITTED: Final = "admitted"
HOSTS_UP: Final = "hostsUp"
LAUNCHED: Final = "launched"
FIRST_OUTPUT: Final = "firstOutput"
ENDED: Final = "ended"

STEPS: Final = (SUBMITTED, ADMITTED, HOSTS_UP, LAUNCHED, FIRST_OUTPUT, ENDED)


def mark(timeline: Mapping[str, datetime], step: str, at: datetime | None) -> Mapping[str, datetime]:
    if at is None or step in timeline:
        return timeline
    return {**timeline, step: at}
