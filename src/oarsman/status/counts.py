"""How many of each role run, are ready, have ended.

The counts keep upstream's reading: workers of a finished job are not counted, whatever still idles; the launcher's
ends are counted over all attempts, so they survive its removal. A suspended job is active until the last of its
members is gone: whoever suspended it (Kueue, say) gives its room to others when nothing is active any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from oarsman.job.observed import Member, Phase
from oarsman.job.state import Attempt, ReplicaCount


def workers(members: Sequence[Member], replicas: int) -> ReplicaCount:
    wanted = [m for m in members if m.index < replicas]
    return ReplicaCount(
        active=sum(m.phase is Phase.RUNNING for m in wanted),
        succeeded=sum(m.phase is Phase.SUCCEEDED for m in wanted),
        failed=sum(m.phase is Phase.FAILED for m in wanted),
        ready=sum(m.ready and m.phase is Phase.RUNNING and not m.terminating for m in wanted),
    )


def going(members: Sequence[Member]) -> ReplicaCount:
    """Of a suspended job: all that still hold their room, up or not."""
    return ReplicaCount(active=sum(not m.phase.ended for m in members))


def launcher(
    member: Member | None, attempts: Sequence[Attempt], *, finished: bool, suspended: bool = False
) -> ReplicaCount:
    present = () if member is None or finished else (member,)
    now = going(present) if suspended else workers(present, 1)
    return ReplicaCount(
        active=now.active,
        succeeded=int(any(a.outcome == "Succeeded" for a in attempts)),
        failed=sum(a.outcome == "Failed" for a in attempts),
        ready=now.ready,
    )
