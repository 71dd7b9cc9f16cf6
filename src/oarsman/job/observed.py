"""What an engine saw, at one moment, of one job. The input of `plan.reconcile`, beside the job itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from oarsman import names
from oarsman.job.launch import LaunchLine
from oarsman.job.state import Status

PATIENCE: Final = timedelta(minutes=5)  # how long a host may take to be ready once it has its place


class Phase(str, Enum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"

    @property
    def ended(self) -> bool:
        return self in (Phase.SUCCEEDED, Phase.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a process ended. `code` is the shell's number: 128 + signal where a signal ended it."""

    code: int
    signal: int | None = None
    memory_limit_hit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A launcher or a worker that exists (a pod, or a host of ours)."""

    name: str
    phase: Phase
    index: int = 0  # workers: the number in the name
    attempt: int = 1  # launchers: which attempt this one serves
    ready: bool = False
    terminating: bool = False
    created_at: datetime | None = None  # by the clock of who keeps it, where its host has another
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit: Exit | None = None
    reason: str = ""  # Evicted, HostLost, OOMKilled, ...
    disrupted: bool = False  # taken away for reasons that are not its own: a drain, preemption, a taint
    message: str = ""
    not_ready_because: str = ""  # the start barrier's finding
    waits_for_room: bool = False  # what it waits for (a place, an image) may rightly take any time
    instance: str = ""  # tells it from another of the same name


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherMpi:
    """An MPI library that a rank has loaded, and that is not its launcher's."""

    library: str  # a file; empty: not known
    family: str  # whose it is
    launcher: str  # a file
    launched_by: str  # the launcher's family
    own: str = ""  # the launcher beside that library; empty: there is none

    @property
    def alone(self) -> bool:
        """Whether its ranks cannot find each other. Some pairs of Open MPI 4 and 5 can."""
        return not (self.family.startswith("Open MPI") and self.launched_by.startswith("Open MPI"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReport:
    """What the shim that starts each rank wrote down."""

    rank: int
    host: str
    world_size: int
    local_rank: int = 0
    pid: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit: Exit | None = None
    reason: str = ""  # e.g. DiskFull
    raised: str = ""  # the exception whose traceback is the last it wrote, of one that runs
    cpu: int | None = None  # percent of one, 0 or much, that it used in a minute without output; None: not known
    other_mpi: OtherMpi | None = None
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What one launch started. A script may launch more than once, also at the same time."""

    ranks: tuple[RankReport, ...]
    line: LaunchLine | None = None  # what it was called with; None: not known
    hosts: tuple[str, ...] = ()  # that were listed when it started; none: not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """On which machine a member of a job runs."""

    member: str  # the name of a worker or of the launcher
    machine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Whether there is room. Engines that leave this to a scheduler always say admitted."""

    admitted: bool = True
    position: int = 0
    reason: str = ""
    impossible: bool = False  # it can never fit on this engine
    about: str = names.REASON_WAITING  # what it waits for: the reason of its condition
    placement: tuple[Place, ...] = ()  # where each member goes; empty: the engine has one machine, or a scheduler knows


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    status: Status = Status()  # what was last written
    workers: tuple[Member, ...] = ()
    launcher: Member | None = None  # the newest one
    ranks: tuple[RankReport, ...] = ()  # of the newest world of the newest attempt
    earlier_worlds: tuple[World, ...] = ()  # of the newest attempt; of those that were alike, one
    line: LaunchLine | None = None  # of the newest world, as in World
    world_hosts: tuple[str, ...] = ()  # of the newest world, as in World
    launcher_lines: tuple[str, ...] = ()  # the last lines the launcher wrote
    launcher_relays: bool = False  # what ranks wrote is among them
    launcher_ranks: tuple[int | None, ...] = ()  # whose each of them is, None: its own; (): not known
    published_hosts: tuple[str, ...] | None = None  # what discover_hosts.sh says now; None: not written yet
    prepared: bool | None = None  # whether what `Prepare` made is there; None: published_hosts tells
    gang_asks: bool = False  # a scheduler is asked to keep places for the gang
    incomplete: bool = False  # a part of it was removed by somebody
    first_output_at: datetime | None = None
    admission: Admission = Admission()
    conflict: str | None = None  # an object of the same name that is not ours
    remarks: tuple[str, ...] = ()  # what this engine does differently, told once
    unsupported: str | None = None  # what this engine cannot honour, found before anything started
    stop_requested: bool = False  # `oarsman stop`: end it, keep its record
    keeps_idle_members: bool = True  # False: this engine ends its hosts when the job ends, whatever the clean policy
    patience: timedelta = PATIENCE
    launcher_holds: bool = False  # a launcher waits by itself until its workers answer; until then it is Pending
    ranks_report: bool = True  # False: ranks cannot tell where they ran; the launcher itself checks
    unverified: bool = False  # ranks may report, and where they do not, nobody else tells where they ran
    out_of_memory: tuple[str, ...] = ()  # hosts on which a process was killed at the memory limit
    taken_away: Mapping[str, datetime] = field(default_factory=dict)  # hosts that were to go while the launcher ran
    place_lost: str = ""  # why a machine that it was given cannot be used, if one cannot
    refused: str | None = None  # a member that cannot be created as it is asked for, and why
    machines: Mapping[str, str] = field(default_factory=dict)  # member -> machine; empty: each is one of its own
    mistake: str = ""  # why the job's present form is not carried out but an earlier one
    outdated: tuple[str, ...] = ()  # fields that were edited and cannot reach members that exist
    _by_index: dict[int, Member] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_index", {worker.index: worker for worker in reversed(self.workers)})

    @property
    def worlds(self) -> tuple[World, ...]:
        """All of the newest attempt, the newest last."""
        return (*self.earlier_worlds, World(ranks=self.ranks, line=self.line, hosts=self.world_hosts))

    def worker(self, index: int) -> Member | None:
        """At once, however many there are."""
        return self._by_index.get(index)
