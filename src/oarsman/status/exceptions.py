"""Ranks that raised an exception and have not ended: MPI's shutdown waits for the others, and they for such a rank. And
what was wrong with ranks (`silence`, too) before a job was ended from outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oarsman.job.observed import RankReport
from oarsman.job.state import Cause
from oarsman.plan import placement
from oarsman.status import silence
from oarsman.text.sentence import Text


def stuck(ranks: Sequence[RankReport], machines: Mapping[str, str] | None = None) -> str:
    """Of the first of them, in one sentence; empty: there is none, or nobody who could wait for it. machines: where
    hosts are, if they are not machines of their own."""
    found = _first(ranks)
    template = Text(
        "rank {rank} on {host} raised {exception} and has not ended; the other ranks probably wait for it. Programs "
        "started with python3 -m mpi4py end in such a case"
    )
    return _of(found, template, machines) if found is not None else ""


def when_ended(cause: Cause, ranks: Sequence[RankReport], machines: Mapping[str, str] | None = None) -> Cause:
    """The cause of a job that was ended from outside, with what was wrong before that."""
    raised = _first(ranks)
    found = raised or next(iter(silence.idle_ranks(ranks)), None)
    if found is None:
        return cause
    hint = Text("programs started with python3 -m mpi4py end when a rank raises an exception") if raised else None
    return replace(
        cause,
        summary=and_before(cause.summary, ranks, machines),
        rank=found.rank,
        host=placement.short(found.host),
        last_lines=found.last_lines,
        hint=cause.hint or hint,
    )


def and_before(what: str, ranks: Sequence[RankReport], machines: Mapping[str, str] | None = None) -> str:
    found = _first(ranks)
    template = Text("rank {rank} on {host} had raised {exception}")
    why = _of(found, template, machines) if found is not None else silence.had(ranks)
    return Text("{what}; before that {why}", what=what, why=why) if why else what


def _first(ranks: Sequence[RankReport]) -> RankReport | None:
    running = [rank for rank in ranks if rank.exit is None]
    return next((rank for rank in running if rank.raised), None) if len(running) > 1 else None


def _of(raised: RankReport, template: str, machines: Mapping[str, str] | None) -> str:
    host, machine = placement.short(raised.host), (machines or {}).get(placement.short(raised.host))
    on = Text("{host} ({machine})", host=host, machine=machine) if machine else host
    return Text(template, rank=raised.rank, host=on, exception=raised.raised.rstrip("."))
