"""Whether a job ended right, and once, given what hit it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from oarsman import names
from oarsman.backends.base import EventRecord
from oarsman.job.state import Status

from .jobs import Meant
from .troubles import Target

ENDED_BY_USER = {"stop": names.REASON_STOPPED, "deadline": names.REASON_DEADLINE}


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a ledger."""

    what: str  # begin, lives, fails, end
    attempt: int
    label: str  # of the world
    rank: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    meant: Meant
    target: Target
    status: Status
    events: Sequence[EventRecord]
    ledger: Sequence[Entry]
    lines: Sequence[str]  # of its last attempt


def read(ledger: Path) -> list[Entry]:
    entries = []
    for line in ledger.read_text().splitlines():
        what, label, rank, at = line.split()
        entries.append(Entry(what, int(label.partition(":")[0]), label, int(rank), float(at)))
    return entries


def faults(ended: Ended) -> list[str]:
    return [*_verdict(ended), *_record(ended), *_runs(ended), *_output(ended)]


def _verdict(ended: Ended) -> Iterator[str]:
    """What it became, and by how many attempts."""
    meant, status, hits = ended.meant, ended.status, len(ended.target.hits)
    succeeded = status.is_true(names.SUCCEEDED)
    failed = status.condition(names.FAILED)
    reason = failed.reason if failed is not None and failed.status else ""
    if succeeded and not meant.succeeds:
        yield "it succeeded, and was meant to fail"
    if not succeeded and meant.succeeds and hits + meant.failures <= meant.limit:
        yield f"it failed ({reason}), although it had attempts left"
    if not succeeded and meant.succeeds and not hits:
        yield f"it failed ({reason}), and nothing hit it"
    wanted = ENDED_BY_USER.get(meant.kind)
    if wanted and not hits and reason != wanted:
        yield f"it ended for {reason or 'success'} instead of {wanted}"
    if reason in ENDED_BY_USER.values() and reason != wanted:
        yield f"it ended for {reason}, which nobody asked for"
    if meant.kind == "fail" and not hits:
        cause = status.cause
        if cause is None or (cause.exit_code, cause.rank) != (meant.code, None if meant.plain else meant.bad):
            yield f"its cause is not that rank {meant.bad} ended with {meant.code}: {cause}"
    lost = sum(attempt.outcome == "Failed" for attempt in status.attempts)
    by_user = int(meant.kind in ENDED_BY_USER and reason == wanted)
    if lost > hits + meant.failures + by_user:
        yield f"{lost} attempts failed, by {hits} hits"


def _record(ended: Ended) -> Iterator[str]:
    """It has ended in one way, and says so once."""
    status = ended.status
    ends = [type_ for type_ in (names.SUCCEEDED, names.FAILED) if status.is_true(type_)]
    if len(ends) != 1:
        yield f"its end is told {len(ends)} times: {ends}"
        return
    under_way = [type_ for type_ in (names.RUNNING, names.RESTARTING, names.QUEUED) if status.is_true(type_)]
    if under_way or status.completion_time is None:
        yield f"it ended and is still {under_way}, completed at {status.completion_time}"
    end = status.condition(ends[0])
    assert end is not None
    told = sum(event.count for event in ended.events if (event.reason, event.message) == (end.reason, end.message))
    if told != 1:
        yield f"{end.reason} is among the events {told} times"
    numbers = [attempt.number for attempt in status.attempts]
    if numbers != sorted(set(numbers)):
        yield f"its attempts are numbered {numbers}"
    if open_ones := [attempt.number for attempt in status.attempts if not attempt.outcome]:
        yield f"attempts {open_ones} have no outcome"
    good = [attempt.number for attempt in status.attempts if attempt.outcome == "Succeeded"]
    if good != (numbers[-1:] if status.is_true(names.SUCCEEDED) else []):
        yield f"attempts {good} of {numbers} succeeded"


def _runs(ended: Ended) -> Iterator[str]:
    """What really ran, by what the ranks themselves wrote."""
    begun = Counter((entry.attempt, entry.rank) for entry in ended.ledger if entry.what == "begin")
    if twice := [each for each, count in begun.items() if count > 1]:
        yield f"(attempt, rank) {twice} ran more than once"
    known = {attempt.number: attempt.outcome for attempt in ended.status.attempts}
    ran = sorted({entry.attempt for entry in ended.ledger})
    if unknown := [number for number in ran if number not in known]:
        yield f"attempts {unknown} ran and are not on record, which has {known}"
    for before, after in pairwise(ran):
        last = max(entry.at for entry in ended.ledger if entry.attempt == before)
        first = min(entry.at for entry in ended.ledger if entry.attempt == after)
        if last > first:
            yield f"attempt {before} still lived {last - first:.2f} s after attempt {after} had begun"
    done = {number: sorted(e.rank for e in ended.ledger if e.attempt == number and e.what == "end") for number in ran}
    for number, outcome in known.items():
        if outcome == "Succeeded" and done.get(number, []) != list(range(ended.meant.ranks)):
            yield f"attempt {number} succeeded, and of its ranks only {done.get(number, [])} did"
    whole = [number for number, ranks in done.items() if ranks == list(range(ended.meant.ranks))]
    if len(whole) > 1 and not ended.target.hits and ended.meant.kind != "suspend":
        yield f"attempts {whole} all ran to their end"


def _output(ended: Ended) -> Iterator[str]:
    if ended.target.hits or not ended.status.is_true(names.SUCCEEDED):
        return
    said = sorted(line for line in ended.lines if line.startswith(("begin ", "end ")))
    wanted = sorted(f"{word} {rank}" for rank in range(ended.meant.ranks) for word in ("begin", "end"))
    if said != wanted:
        yield f"its log has {said}"
