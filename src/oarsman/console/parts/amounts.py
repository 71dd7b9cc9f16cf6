"""Amounts and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from oarsman.console.words import Words
from oarsman.service.models import AmountsView, JobSummary
from oarsman.text import units


def resources(say: Words, one: JobSummary) -> str:
    """As the manifest has them, which asks for CPUs wherever it runs."""
    return amounts(say, AmountsView(cpus=one.cpus, memory_bytes=one.memory_bytes, gpus=one.gpus))


def unit(say: Words, engine: str) -> str:
    """What a host has of processors: an inventory counts slots."""
    return say("Slots") if engine == "ssh" else say("CPU")


def really(say: Words, engine: str, field: str, used: str) -> str:
    """Nobody measures slots: what an SSH host tells is how many of its processors are busy."""
    if engine == "ssh" and field == "cpus":
        return say("; {used} CPU busy", used=used)
    return say("; {used} used", used=used)


def amounts(say: Words, one: AmountsView, engine: str = "") -> str:
    parts = []
    if one.cpus and engine == "ssh":
        parts.append(say("1 slot") if one.cpus == 1 else say("{count} slots", count=f"{one.cpus:g}"))
    elif one.cpus:
        parts.append(f"{one.cpus:g} CPU")
    if one.memory_bytes:
        parts.append(units.size(one.memory_bytes))
    if one.gpus:
        parts.append(f"{one.gpus} GPU")
    return " · ".join(parts)


def moment(time: datetime | None) -> str:
    """In UTC, without what nobody reads."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if time is not None else ""


def duration(since: datetime | None, until: datetime | None) -> str:
    return units.took(since, until, datetime.now(UTC))
