"""Sentences of conditions and events that depend on what there is to say. Those that upstream also says, here and
where they are said, are kept word by word."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from oarsman.text import sentence
from oarsman.text.sentence import Text

LIMIT: Final = 1024  # what Kubernetes accepts as the message of an event


def failed(key: str, why: str = "") -> str:
    said = Text("MPIJob {key} has failed: {why}", key=key, why=why) if why else Text("MPIJob {key} has failed", key=key)
    return cut(said)


def restarting(number: int, summary: str, delay: int, allowed: int) -> str:
    """`delay`: in seconds; `allowed`: how many attempts may fail before the job does."""
    template = Text("attempt {number} failed: {why}; the next try starts in {delay} s, {allowed} left")
    return cut(Text(template, number=number, why=summary, delay=delay, allowed=allowed))


def queued(position: int, reason: str) -> str:
    place = Text("number {position} in the queue", position=position) if position else Text("in the queue")
    return cut(Text("{what}: {why}", what=place, why=reason) if reason else place)


def duration(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    return Text("{n} min", n=seconds // 60) if seconds % 60 == 0 and seconds else Text("{n} s", n=seconds)


def cut(text: str, limit: int = LIMIT) -> str:
    return sentence.cut(text, limit)
