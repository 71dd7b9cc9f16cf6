"""How many of each role run, are ready, have ended.

The counts keep upstream's reading: workers of a finished or suspended job are not counted, whatever
still idles; the launcher's ends are counted over all attempts, so they survive its removal.
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


def launcher(member: Member | None, attempts: Sequence[Attempt], *, finished: bool) -> ReplicaCount:
    running = member is not None and member.phase is Phase.RUNNING and not finished
    return ReplicaCount(
        active=int(running),
        succeeded=int(any(a.outcome == "Succeeded" for a in attempts)),
        failed=sum(a.outcome == "Failed" for a in attempts),
        ready=int(running and member is not None and member.ready),
    )
