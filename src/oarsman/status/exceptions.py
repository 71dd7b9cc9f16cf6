"""Ranks that raised an exception and have not ended: MPI's shutdown waits for the others, and they for such a rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oarsman.job.observed import RankReport
from oarsman.plan import placement
from oarsman.text.sentence import Text


def stuck(ranks: Sequence[RankReport], machines: Mapping[str, str] | None = None) -> str:
    """Of the first of them, in one sentence; empty: there is none, or nobody who could wait for it. machines: where
    hosts are, if they are not machines of their own."""
    running = [rank for rank in ranks if rank.exit is None]
    raised = next((rank for rank in running if rank.raised), None)
    if raised is None or len(running) < 2:
        return ""
    host, machine = placement.short(raised.host), (machines or {}).get(placement.short(raised.host))
    return Text(
        "rank {rank} on {host} raised {exception} and has not ended; the other ranks probably wait for it. Programs "
        "started with python3 -m mpi4py end in such a case",
        rank=raised.rank,
        host=Text("{host} ({machine})", host=host, machine=machine) if machine else host,
        exception=raised.raised.rstrip("."),
    )
