"""Amounts and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from oarsman.console.words import Words
from oarsman.service.models import AmountsView, JobSummary


def resources(say: Words, one: JobSummary) -> str:
    """As the manifest has them, which asks for CPUs wherever it runs."""
    return amounts(say, AmountsView(cpus=one.cpus, memory_bytes=one.memory_bytes, gpus=one.gpus))


def unit(say: Words, engine: str) -> str:
    """What a host has of processors: an inventory counts slots."""
    return say("Slots") if engine == "ssh" else say("CPU")


def number(amount: float) -> str:
    """Of processors: no more digits than anybody wants."""
    return f"{round(amount, 1):g}"


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
        parts.append(size(one.memory_bytes))
    if one.gpus:
        parts.append(f"{one.gpus} GPU")
    return " · ".join(parts)


def size(amount: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} TiB"


def moment(time: datetime | None) -> str:
    """In UTC, without what nobody reads."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if time is not None else ""


def duration(since: datetime | None, until: datetime | None) -> str:
    if since is None:
        return ""
    seconds = max(0.0, ((until or datetime.now(UTC)) - since).total_seconds())
    if seconds < 60:
        return f"{seconds:.1f} s" if until is not None else f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
