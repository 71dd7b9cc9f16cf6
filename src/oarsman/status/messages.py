"""The sentences of conditions and events. Those that upstream also says are kept word by word, but for one.

Programs go by types and reasons. Upstream's word for a job that was over before anyone saw it run ("is finished
but Running condition was never set") reads like a fault of a job that did well.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

LIMIT: Final = 1024  # what Kubernetes accepts as the message of an event
SUSPENDED: Final = "MPIJob suspended"
RESUMED: Final = "MPIJob resumed"


def created(key: str) -> str:
    return f"MPIJob {key} is created."


def running(key: str) -> str:
    return f"MPIJob {key} is running."


def not_running_suspended(key: str) -> str:
    return f"MPIJob {key} is suspended."


def not_running_finished(key: str) -> str:
    return f"MPIJob {key} is finished."


def never_ran(key: str) -> str:
    return f"MPIJob {key} is finished; it was over before it was seen running."


def succeeded(key: str) -> str:
    return f"MPIJob {key} successfully completed."


def failed(key: str, why: str = "") -> str:
    return cut(f"MPIJob {key} has failed: {why}" if why else f"MPIJob {key} has failed")


def restarting(number: int, summary: str, delay_seconds: int, allowed: int) -> str:
    """`allowed`: how many attempts may fail before the job does."""
    return cut(f"attempt {number} failed: {summary}; the next try starts in {delay_seconds} s, {allowed} left")


def queued(position: int, reason: str) -> str:
    place = f"number {position} in the queue" if position else "in the queue"
    return cut(f"{place}: {reason}" if reason else place)


def conflict(what: str) -> str:
    return cut(f"Resource {what} already exists and is not managed by MPIJob")


def duration(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    return f"{seconds // 60} min" if seconds % 60 == 0 and seconds else f"{seconds} s"


def cut(text: str, limit: int = LIMIT) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def rewritten(changes: Sequence[str]) -> str:
    return f"the launch line is spelled so that Open MPI 4 and 5 both take it: {', '.join(changes)}"
