"""What jobs there are, and how each is meant to end. All comes from one source of chance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.hosts.machine import mpijob

from oarsman import names

PROGRAM = Path(__file__).with_name("rank.sh")
MPIS = ("openmpi4", "openmpi5", "mpich")
KINDS = ("succeed", "succeed", "succeed", "fail", "retry", "suspend", "stop", "deadline", "delete")
CLEANING = ("None", "Running", "All")
SILENCE = "15"  # seconds: two cores that run all this keep hosts waiting
LIMITED = {"resources": {"limits": {"memory": "400Mi", "cpu": "200m"}}}  # so that there are control groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """One job, and its end if nothing hits it."""

    name: str
    place: str  # local, ssh
    kind: str
    mpi: str  # on one machine; hosts have what they have
    workers: int
    ranks: int
    plain: bool  # a launcher that is the program itself
    seconds: int
    bad: int
    code: int
    limit: int  # of attempts that may fail
    cleaning: str
    limited: bool
    pause: float  # before somebody suspends, stops or deletes it, once it runs

    @property
    def failures(self) -> int:
        """Attempts that fail by themselves."""
        return int(self.kind in ("fail", "retry"))

    @property
    def succeeds(self) -> bool:
        return self.kind in ("succeed", "retry", "suspend")

    @property
    def waits(self) -> bool:
        return self.kind in ("suspend", "stop", "deadline", "delete")

    def document(self, program: Path, ledger: Path) -> dict[str, Any]:
        bad, times = (self.bad, 1) if self.failures else (-1, 0)
        awaited = f"{ledger}.go" if self.waits else "-"
        words = ["sh", str(program), str(ledger), self.seconds, bad, self.code, times, awaited]
        line = [str(word) for word in words]
        if not self.plain:
            line = ["mpirun", "-n", str(self.ranks), *line]
        policy: dict[str, Any] = {"backoffLimit": self.limit, "cleanPodPolicy": self.cleaning}
        if self.kind == "deadline":
            policy["activeDeadlineSeconds"] = 4
        annotations = {names.ANNOTATION_SILENCE: SILENCE}
        if self.place == "ssh":
            annotations[names.ANNOTATION_CODE] = "none"
        document = mpijob(
            self.name,
            line,
            workers=self.workers,
            annotations=annotations,
            run_policy=policy,
            worker=LIMITED if self.limited else {},
        )
        if not self.workers:
            del document["spec"]["mpiReplicaSpecs"]["Worker"]
        return document


def meant(chance: random.Random, number: int, places: Sequence[str]) -> Meant:
    place, kind = chance.choice(places), chance.choice(KINDS)
    workers = chance.choice((0, 1, 2, 2) if place == "local" else (1, 2, 2))
    limit = {"fail": 0, "retry": 4}.get(kind, chance.choice((0, 1, 4)))
    return Meant(
        name=f"{kind}-{number}",
        place=place,
        kind=kind,
        mpi=chance.choice(MPIS),
        workers=workers,
        ranks=max(1, workers),
        plain=workers == 0 and chance.random() < 0.5,
        seconds=chance.choice((1, 1, 2, 3)),
        bad=chance.randrange(max(1, workers)),
        code=chance.choice((1, 3, 77)),
        limit=limit,
        cleaning=chance.choice(CLEANING),
        limited=place == "local" and workers > 0 and chance.random() < 0.5,
        pause=chance.uniform(0, 1.5),
    )
