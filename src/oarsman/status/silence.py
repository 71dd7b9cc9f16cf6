"""Ranks that use no CPU while all others use theirs, and nobody writes anything: ranks that wait in MPI look busy.

A library may wait without using the CPU, so who waits for whom is not known. Where most are idle, nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from oarsman.job.observed import RankReport
from oarsman.plan import placement
from oarsman.text.sentence import Text, all_of, listed

_MOST_NAMED: Final = 3


def idle(ranks: Sequence[RankReport]) -> str:
    """Which they are, in one sentence; empty: there are none."""
    return _told(
        idle_ranks(ranks),
        Text(
            "rank {rank} on {host} has written nothing and used no CPU for a minute, while the others use theirs; they "
            "may wait for it"
        ),
        Text(
            "ranks {ranks} have written nothing and used no CPU for a minute, while the others use theirs; they may "
            "wait for them"
        ),
    )


def had(ranks: Sequence[RankReport]) -> str:
    """The same, of a job that was ended from outside."""
    return _told(
        idle_ranks(ranks),
        Text("rank {rank} on {host} had used no CPU while the others used theirs"),
        Text("ranks {ranks} had used no CPU while the others used theirs"),
    )


def idle_ranks(ranks: Sequence[RankReport]) -> Sequence[RankReport]:
    running = [rank for rank in ranks if rank.exit is None]
    idle = [rank for rank in running if rank.cpu == 0]
    known = all(rank.cpu is not None for rank in running)
    return idle if known and 2 * len(idle) <= len(running) else []


def _told(found: Sequence[RankReport], of_one: str, of_several: str) -> str:
    match [str(rank.rank) for rank in found]:
        case []:
            return ""
        case [_]:
            return Text(of_one, rank=found[0].rank, host=placement.short(found[0].host))
        case [*numbers] if len(numbers) <= _MOST_NAMED:
            return Text(of_several, ranks=all_of(numbers))
        case [*numbers]:
            first, more = listed(numbers[:_MOST_NAMED]), len(numbers) - _MOST_NAMED
            return Text(of_several, ranks=Text("{told} and {n} more", told=first, n=more))
