"""The sentences of conditions and events. Those that upstream also says are kept word by word, but for one.

Programs go by types and reasons. Upstream's word for a job that was over before anyone saw it run ("is finished
but Running condition was never set") reads like a fault of a job that did well.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from oarsman.text import sentence
from oarsman.text.sentence import Text, listed

LIMIT: Final = 1024  # what Kubernetes accepts as the message of an event
SUSPENDED: Final = Text("MPIJob suspended")
RESUMED: Final = Text("MPIJob resumed")


def created(key: str) -> str:
    return Text("MPIJob {key} is created.", key=key)


def running(key: str) -> str:
    return Text("MPIJob {key} is running.", key=key)


def not_running_suspended(key: str) -> str:
    return Text("MPIJob {key} is suspended.", key=key)


def not_running_finished(key: str) -> str:
    return Text("MPIJob {key} is finished.", key=key)


def never_ran(key: str) -> str:
    return Text("MPIJob {key} is finished; it was over before it was seen running.", key=key)


def succeeded(key: str) -> str:
    return Text("MPIJob {key} successfully completed.", key=key)


def failed(key: str, why: str = "") -> str:
    return cut(
        Text("MPIJob {key} has failed: {why}", key=key, why=why) if why else Text("MPIJob {key} has failed", key=key)
    )


def restarting(number: int, summary: str, delay_seconds: int, allowed: int) -> str:
    """`allowed`: how many attempts may fail before the job does."""
    return cut(
        Text(
            "attempt {number} failed: {why}; the next try starts in {delay} s, {allowed} left",
            number=number,
            why=summary,
            delay=delay_seconds,
            allowed=allowed,
        )
    )


def queued(position: int, reason: str) -> str:
    place = Text("number {position} in the queue", position=position) if position else Text("in the queue")
    return cut(Text("{what}: {why}", what=place, why=reason) if reason else place)


def conflict(what: str) -> str:
    return cut(Text("Resource {what} already exists and is not managed by MPIJob", what=what))


def duration(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    return Text("{n} min", n=seconds // 60) if seconds % 60 == 0 and seconds else Text("{n} s", n=seconds)


def cut(text: str, limit: int = LIMIT) -> str:
    return sentence.cut(text, limit)


def rewritten(changes: Sequence[str]) -> str:
    return Text("the launch line is spelled so that Open MPI 4 and 5 both take it: {changes}", changes=listed(changes))
