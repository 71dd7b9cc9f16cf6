"""Ranks that have loaded the library of another MPI than that of the launcher which started them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oarsman.job.observed import OtherMpi, RankReport
from oarsman.plan import placement
from oarsman.text.sentence import Text


def of_running(ranks: Sequence[RankReport], machines: Mapping[str, str]) -> str:
    """Of the first of them that runs, in one sentence; empty: there is none. machines: where hosts are, if they are not
    machines of their own."""
    rank = next((rank for rank in ranks if rank.exit is None and rank.other_mpi is not None), None)
    if rank is None or rank.other_mpi is None:
        return ""
    host, machine = placement.short(rank.host), machines.get(placement.short(rank.host))
    return Text(
        "rank {rank} on {host} has loaded {library} of {family}, but {launcher} of {by} started it: {outcome}; "
        "{remedy}",
        rank=rank.rank,
        host=Text("{host} ({machine})", host=host, machine=machine) if machine else host,
        library=rank.other_mpi.library,
        family=rank.other_mpi.family,
        launcher=rank.other_mpi.launcher,
        by=rank.other_mpi.launched_by,
        outcome=Text("its ranks cannot reach each other")
        if rank.other_mpi.alone
        else Text("such ranks may wait for each other for ever"),
        remedy=_remedy(rank.other_mpi),
    )


def reason(rank: RankReport) -> str:
    """Why it is at fault, however it ended."""
    if rank.other_mpi is None or not rank.other_mpi.alone:
        return ""
    well = rank.exit is not None and rank.exit.code == 0
    return Text(
        "its MPI library is that of {theirs}, but the launcher is {ours}'s: {outcome}",
        theirs=rank.other_mpi.family,
        ours=rank.other_mpi.launched_by,
        outcome=Text("each rank ran alone") if well else Text("its ranks cannot reach each other"),
    )


def hint(found: OtherMpi) -> str:
    template = Text("the program is built for {family}, and {launcher} of {by} started it; {remedy}")
    if found.library:
        template = Text("the program has loaded {library} of {family}, and {launcher} of {by} started it; {remedy}")
    return Text(
        template,
        library=found.library,
        family=found.family,
        launcher=found.launcher,
        by=found.launched_by,
        remedy=_remedy(found),
    )


def _remedy(found: OtherMpi) -> str:
    if found.own:
        return Text("start it with its own launcher: --mpi {path}", path=found.own)
    return Text(
        "name the launcher of its own MPI (--mpi PATH), or use a program built for {family}", family=found.launched_by
    )
