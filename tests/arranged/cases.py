"""What a case is, and which one a seed and a number stand for."""

from __future__ import annotations

import random
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from oarsman import names

EVERY_PLACE = (names.LOCAL, names.SSH)
EVERY_MPI = ("openmpi4", "openmpi5", "mpich")


@dataclass(frozen=True, kw_only=True)
class Blame:
    """The cause that must be named: one of these ranks with the host it ran on, or a host alone, or neither."""

    ranks: tuple[int, ...] = ()  # any of these; empty: no rank is named
    or_nobody: bool = False  # the launcher with that code will do: it may be all that is known
    host: str = ""  # worker-1, launcher; empty: that of the rank
    code: int | None = None
    signal: int | None = None
    hint: str = ""  # the name of a hint (`judge.HINTS`); empty: none
    says: str = ""  # somewhere in the summary


@dataclass(frozen=True, kw_only=True)
class Expected:
    state: str = names.SUCCEEDED
    reason: str = names.REASON_SUCCEEDED
    blame: Blame | None = None
    attempts: tuple[str, ...] = ()  # outcomes; empty: one, with the state as its outcome
    first_blame: Blame | None = None  # of the first attempt, where there is a second one
    lines: Mapping[int, Sequence[str]] = field(default_factory=dict)  # what these ranks wrote, and nothing else
    exit_status: int = 0  # of `oarsman run`, where the case is run by it


def fails(blame: Blame, reason: str = names.REASON_FAILED, **fields: Any) -> Expected:
    status = blame.code or (128 + blame.signal if blame.signal else 1)
    return Expected(state=names.FAILED, reason=reason, blame=blame, exit_status=status, **fields)


@dataclass(frozen=True, kw_only=True)
class Case:
    kind: str
    index: int
    place: str
    mpi: str
    ranks: int
    workers: int
    slots: int
    command: tuple[str, ...] = ()  # what mpirun starts
    script: str = ""  # instead: the launcher is this, for sh
    in_foreground: bool = False  # by `oarsman run -n`; else a manifest is handed in
    run_policy: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False  # it asks for all processors of this machine; else it waits for none
    stdin: str = ""
    limits: str = ""  # for sh, before `oarsman run`
    on_victims: bool = False  # hosts that other jobs do not use, one case at a time
    meanwhile: str = ""  # what is done to it, by its name in meanwhile.py
    worker: int = 0  # to whom
    expected: Expected = Expected()

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.index}"

    @property
    def key(self) -> str:
        return f"default/{self.name}"

    @property
    def launcher(self) -> list[str]:
        return ["sh", "-c", self.script] if self.script else ["mpirun", "-n", str(self.ranks), *self.command]

    def hosts_of(self, rank: int) -> list[str]:
        """Workers that share a machine are one to MPI, which numbers the ranks there as it likes."""
        together = self.place == names.SSH and self.in_foreground
        workers = range(self.workers) if together else [rank // self.slots]
        return [f"{self.name}-worker-{worker}" for worker in workers]

    def __str__(self) -> str:
        how = "oarsman run" if self.in_foreground else "manifest"
        where = f"{self.place}, {self.mpi}, {self.ranks} ranks on {self.workers}x{self.slots}"
        return f"{self.index} {self.kind}: {where}, {how}: {shlex.join(self.launcher)}"


class Draw(random.Random):
    """What kinds draw from. The same for the same seed and number, whatever else is run."""

    def __init__(self, seed: int, index: int) -> None:
        super().__init__(f"{seed}/{index}")
        self.index = index

    def shape(self, place: str, mpi: str, *, least: int = 1, most: int = 4) -> Case:
        """A job with nothing to do yet: its ranks are few, and its last host may be half empty."""
        workers = self.randint(1, 3)
        slots = self.randint(1, 2)
        ranks = min(most, max(least, workers * slots - self.randint(0, slots - 1)))
        slots = max(slots, -(-ranks // workers))
        workers = -(-ranks // slots)
        return Case(
            kind="",
            index=self.index,
            place=place,
            mpi=mpi,
            workers=workers,
            slots=slots,
            ranks=ranks,
            in_foreground=self.random() < 0.4,
        )


def case(seed: int, index: int, places: Sequence[str] = EVERY_PLACE, mpis: Sequence[str] = EVERY_MPI) -> Case:
    from .kinds import KINDS

    kind = _dealt(seed, "kind", index, list(KINDS))
    place, mpi = _dealt(seed, "where", index, [(place, mpi) for place in places for mpi in mpis])
    made, only = KINDS[kind]
    if only and only in places:
        place = only
    elif only:
        made, kind = KINDS["success"][0], "success"
    return replace(made(Draw(seed, index), place, mpi), kind=kind)


def _dealt(seed: int, what: str, index: int, cards: list[Any]) -> Any:
    """Each card comes once before any comes again, whatever the number of cases."""
    number, position = divmod(index, len(cards))
    random.Random(f"{seed}/{what}/{number}").shuffle(cards)
    return cards[position]
