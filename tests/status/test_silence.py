"""Ranks that use no CPU while the others use theirs are told of, where nobody has written anything for a minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from for_every import for_every_row

from oarsman import names
from oarsman.job.observed import Observed, Phase, RankReport
from oarsman.plan.reconcile import reconcile
from oarsman.status import silence
from tests.builders import a_job, a_launcher, a_rank, a_worker, at, launched

NOT_KNOWN, ENDED = None, -1


@for_every_row(
    [
        # the CPU of each rank in percent, and which are told of
        ((0, 100), "rank 0 on"),
        ((100, 0), "rank 1 on"),
        ((100, 0, 35), "rank 1 on"),
        ((100, 0, 35, 0), "ranks 1 and 3 have"),
        ((100, ENDED, 0), "rank 2 on"),
        ((0,) * 3 + (100,) * 3, "ranks 0, 1 and 2 have"),
        ((0,) * 5 + (100,) * 5, "ranks 0, 1, 2 and 2 more have"),
        ((), ""),
        ((0,), ""),
        ((100,), ""),
        ((0, 0), ""),
        ((100, 100), ""),
        ((0, ENDED), ""),
        ((100, 0, 0), ""),  # more wait than work: they may be waiting for the one that works
        ((100, NOT_KNOWN), ""),
        ((100, 0, NOT_KNOWN), ""),
    ]
)
def test_who_is_told_of(used: Sequence[int | None], begin: str) -> None:
    told = silence.idle(_ranks(used))
    assert told.startswith(begin)
    assert bool(told) == bool(begin)


def test_the_rank_and_its_host_are_named() -> None:
    ranks = (a_rank(0, cpu=100), a_rank(1, "pi-worker-1.pi.default", cpu=0))
    said = "rank 1 on pi-worker-1 has written nothing and used no CPU for a minute, while the others use theirs"
    assert silence.idle(ranks) == f"{said}; they may wait for it"
    several = silence.idle(_ranks((0, 0, 99, 98)))
    assert several.endswith("a minute, while the others use theirs; they may wait for them")
    assert silence.had(_ranks((0, 0, 99, 98))) == "ranks 0 and 1 had used no CPU while the others used theirs"


def test_it_is_an_event_once_and_the_message_of_the_running_job_until_anything_changes() -> None:
    seen = Observed(
        status=launched(),
        workers=(a_worker(0), a_worker(1)),
        launcher=a_launcher(Phase.RUNNING),
        ranks=_ranks((100, 0)),
    )
    first = reconcile(a_job(), seen, at(5))
    assert [event.reason for event in first.events if event.severity.value == "Warning"] == [names.REASON_IDLE_RANK]
    running = first.status.condition(names.RUNNING)
    assert running is not None
    assert running.message == silence.idle(seen.ranks)
    assert reconcile(a_job(), replace(seen, status=first.status), at(6)).events == ()
    goes_on = replace(seen, status=first.status, ranks=_ranks((100, NOT_KNOWN)))
    running = reconcile(a_job(), goes_on, at(7)).status.condition(names.RUNNING)
    assert running is not None
    assert running.reason == names.REASON_RUNNING


def test_an_exception_says_more() -> None:
    seen = Observed(
        status=launched(),
        workers=(a_worker(0), a_worker(1)),
        launcher=a_launcher(Phase.RUNNING),
        ranks=(a_rank(0, cpu=0), a_rank(1, cpu=100, raised="ValueError: no")),
    )
    running = reconcile(a_job(), seen, at(5)).status.condition(names.RUNNING)
    assert running is not None
    assert running.reason == names.REASON_EXCEPTION


def _ranks(used: Sequence[int | None]) -> tuple[RankReport, ...]:
    return tuple(
        a_rank(number, code=0) if cpu == ENDED else a_rank(number, size=len(used), cpu=cpu)
        for number, cpu in enumerate(used)
    )
