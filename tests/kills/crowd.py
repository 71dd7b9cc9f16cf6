"""Some jobs at a time: handed in, suspended, stopped and deleted as users would, judged, and looked for afterwards."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from engines.hosts.machine import Machine
from engines.hosts.ssh.ssh_machine import SshMachine
from ssh_hosts import Rack

from oarsman import names
from oarsman.backends.base import LogQuery
from oarsman.backends.local.follow import SupervisorLink
from oarsman.errors import ConflictError, NotFoundError, OarsmanError
from oarsman.job.state import Status
from oarsman.portal import shared
from oarsman.status.codec import from_wire
from oarsman.store.jobs import JobStore, StoredJob
from oarsman.store.paths import Paths

from . import judge, leftovers
from .jobs import MPIS, PROGRAM, Meant, meant
from .troubles import Clock, Target, Troubles, uptime

AT_ONCE, WAITING = 5, 15  # that do something; with those that wait for their next attempt
STUCK_SECONDS, LEFT_SECONDS = 300.0, 60.0
POLL = 0.1
DISK = "64m"
TROUBLE = (OarsmanError, OSError)


@dataclass(slots=True)
class Under:
    """A job under way."""

    meant: Meant
    key: str
    ledger: Path
    target: Target
    since: float = field(default_factory=time.monotonic)
    acted: int = 0  # what the user did to it so far
    act_at: float = 0.0
    deleted_at: float = 0.0
    judged: bool = False
    resting: bool = False  # between two attempts


class World:
    """One state folder, its supervisor, and whoever submits from there."""

    def __init__(self, folder: Path, rack: Rack | None, *, disk: bool) -> None:
        self.folder, self.rack = folder, rack
        state = folder / "state"
        state.mkdir()
        self.disk = disk
        if disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "kills", state], check=True)
        self.machines: dict[str, Machine] = {mpi: Machine(state, mpi) for mpi in MPIS}
        if rack is not None:
            self.machines["ssh"] = SshMachine(state, rack, slots=6)
        self.paths = Paths(state)
        self.paths.make()
        self.store = JobStore(self.paths.database)
        self.ledgers = (rack.shared if rack is not None else folder) / "ledgers"
        self.ledgers.mkdir()
        self.ledgers.chmod(0o777)
        self.program = self.ledgers / PROGRAM.name
        self.program.write_text(PROGRAM.read_text())
        self.clock = Clock(folder)

    def machine(self, of: Meant) -> Machine:
        return self.machines["ssh" if of.place == "ssh" else of.mpi]

    def close(self) -> None:
        """Ends what still runs, without a word about it: that was told before."""
        self.clock.set(0)
        self.store.close()
        try:
            for machine in reversed(self.machines.values()):
                machine.close()
        finally:
            if self.disk:
                subprocess.run(["umount", "-l", self.paths.state], check=True)


@contextlib.contextmanager
def world(folder: Path, rack: Rack | None, *, disk: bool) -> Iterator[World]:
    made = World(folder, rack, disk=disk)
    before = {name: os.environ.get(name) for name in made.clock.environment}
    os.environ |= made.clock.environment  # what is started from here has that time of day
    try:
        yield made
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        made.close()


class Crowd:
    def __init__(self, world: World, *, seed: int, jobs: int, kills: int, places: Sequence[str]) -> None:
        self._world = world
        self._chance = random.Random(f"jobs {seed}")
        self._places = places
        self.jobs, self.troubles = jobs, Troubles(world.paths, seed, kills, world.clock, disk=world.disk)
        self.troubles.allowed = self._time_for_trouble
        self._numbers = count(1)
        self._there: dict[str, Under] = {}
        self._uids: list[str] = []  # of all jobs there ever were
        self.ended: Counter[str] = Counter()  # by what was meant and what became of it
        self.findings: list[str] = []
        self.file: Path | None = None  # to have them in, too, as soon as there are any
        self.handed_in = 0
        self._told = 0.0

    # -- the whole ---------------------------------------------------------------------------------------
    def run(self) -> None:
        mounts = leftovers.mounts()
        self.troubles.start()
        try:
            while self._more or self._there:
                self._hand_in()
                self._supervise()
                for each in list(self._there.values()):
                    self._look_after(each)
                self._tell()
                time.sleep(POLL)
        finally:
            self.troubles.stop()
        if self.troubles.failure is not None:
            raise self.troubles.failure
        self._nothing_left(mounts)

    @property
    def _more(self) -> bool:
        return self.handed_in < self.jobs or not self.troubles.enough

    def _hand_in(self) -> None:
        """As many jobs as there are kills for, so that neither is over long before the other."""
        busy = sum(not each.resting for each in self._there.values())
        due = self.handed_in < AT_ONCE + self.jobs * self.troubles.killed / max(1, self.troubles.kills)
        if not self._more or busy >= AT_ONCE or len(self._there) >= WAITING:
            return
        if due or self.troubles.enough or busy < 2:
            self._submit(meant(self._chance, next(self._numbers), self._places))

    def _time_for_trouble(self) -> bool:
        return self.troubles.killed < self.handed_in * self.troubles.kills / max(1, self.jobs)

    def _submit(self, job: Meant) -> None:
        ledger = self._world.ledgers / job.name
        ledger.touch()
        ledger.chmod(0o666)
        document = job.document(self._world.program, ledger)
        stored = self._insist(lambda: self._handed_in(job, document))
        target = Target(stored.uid, job.limit)
        self.handed_in += 1
        self._uids.append(stored.uid)
        self._there[stored.key] = Under(job, stored.key, ledger, target)
        self.troubles.add(target)

    def _handed_in(self, job: Meant, document: dict[str, Any]) -> StoredJob:
        """One whose hand-in was cut short may be there all the same."""
        key = f"default/{job.name}"
        with contextlib.suppress(NotFoundError):
            return self._world.store.get(key)
        self._world.machine(job).submit(document)
        return self._world.store.get(key)

    def _insist(self, command: Callable[[], Any], patience: float = 90.0) -> Any:
        """As a user does whose command failed because a supervisor was killed under it, or the disk was full."""
        deadline = time.monotonic() + patience
        while True:
            try:
                return command()
            except TROUBLE as error:
                if time.monotonic() > deadline or isinstance(error, ConflictError | NotFoundError):
                    raise
                time.sleep(POLL)

    def _supervise(self) -> None:
        """The next command of a user starts another one, if it was killed; also for what it was about to clear away."""
        with contextlib.suppress(*TROUBLE):
            if self._there:
                shared().run(SupervisorLink(self._world.paths).ensure())

    # -- one job -----------------------------------------------------------------------------------------
    def _look_after(self, each: Under) -> None:
        stored = self._world.store.by_uid(each.target.uid)
        if stored is None:
            self._is_gone(each)
            return
        status = from_wire(stored.status)
        each.resting = status.retry_at is not None and not stored.finished
        if not each.deleted_at and not stored.finished:
            self._act(each, status)
        if stored.finished and not each.judged:
            self._judge(each, status)
        if stored.finished and not each.deleted_at:
            self._delete(each)
        if time.monotonic() - each.since > STUCK_SECONDS:
            self._found(each, ["it does not end, or cannot be deleted"])
            del self._there[each.key]

    def _act(self, each: Under, status: Status) -> None:
        """What a user does to it while it runs, once it has run for a moment."""
        steps = {
            "stop": [(names.RUNNING, self._stop)],
            "suspend": [(names.RUNNING, self._suspend), (names.SUSPENDED, self._resume)],
            "delete": [("", self._delete)],
        }
        if status.is_true(names.SUSPENDED):
            each.acted = max(each.acted, 1)  # it was, though the command said that the supervisor was killed under it
        rest = steps.get(each.meant.kind, [])[each.acted :]
        if not rest or (rest[0][0] and not status.is_true(rest[0][0])):
            return
        if not each.act_at:
            each.act_at = time.monotonic() + each.meant.pause
        elif time.monotonic() >= each.act_at:
            with contextlib.suppress(*TROUBLE):  # it has ended meanwhile, or the user tries once more
                rest[0][1](each)
                each.acted, each.act_at = each.acted + 1, 0.0

    def _stop(self, each: Under) -> None:
        self._jobs(each).stop(each.key)

    def _suspend(self, each: Under) -> None:
        self._jobs(each).suspend(each.key)

    def _resume(self, each: Under) -> None:
        Path(f"{each.ledger}.go").touch()
        self._jobs(each).resume(each.key)

    def _delete(self, each: Under) -> None:
        with contextlib.suppress(*TROUBLE):
            self._jobs(each).delete(each.key)
            each.deleted_at = time.monotonic()

    def _jobs(self, each: Under) -> Any:
        return self._world.machine(each.meant).jobs

    def _judge(self, each: Under, status: Status) -> None:
        each.judged = True
        lines: list[str] = []
        with contextlib.suppress(*TROUBLE):
            lines = [line.text for line in self._jobs(each).logs(each.key, LogQuery())]
        ended = judge.Ended(
            meant=each.meant,
            target=each.target,
            status=status,
            events=self._world.store.events(each.target.uid),
            ledger=judge.read(each.ledger),
            lines=lines,
        )
        became = "succeeded" if status.is_true(names.SUCCEEDED) else "failed"
        self.ended[f"{each.meant.place} {each.meant.kind}: {became}"] += 1
        if found := judge.faults(ended):
            self._found(each, found, status)

    def _is_gone(self, each: Under) -> None:
        """Its record is: now the rest has to go as well."""
        if each.meant.kind == "delete" and not each.judged:
            each.judged = True
            self.ended[f"{each.meant.place} delete: gone"] += 1
        elif not each.judged:
            self._found(each, ["it is gone, and nobody deleted it"])
        left = leftovers.left_of(each.target.uid, self._world.paths, self._world.rack)
        if left and time.monotonic() - each.deleted_at < LEFT_SECONDS:
            return
        if left:
            self._found(each, [f"left after delete: {thing}" for thing in left])
        self.troubles.remove(each.target.uid)
        del self._there[each.key]

    # -- what is told ------------------------------------------------------------------------------------
    def _found(self, each: Under, faults: Sequence[str], status: Status | None = None) -> None:
        hits = sorted([*each.target.hits, *each.target.heard], key=lambda hit: hit.at)
        folder = self._world.paths.job(each.target.uid)
        story = [
            f"{each.meant.name} ({each.target.uid}) at {uptime():.2f}:",
            *(f"  - {fault}" for fault in faults),
            f"  {each.meant}",
            *(f"  {hit.at:.2f} {hit.what} {'' if hit in each.target.hits else '(all)'} {hit.words}" for hit in hits),
            f"  {status}",
            *(f"  event {event.time:%H:%M:%S} {event.reason}: {event.message}" for event in self._events(each)),
            *(f"  ledger {line}" for line in _compact(each.ledger)),
            *(f"  {name}: {line}" for name in ("journal.jsonl", "agent.log") for line in _lines(folder / name)[-60:]),
            *(f"  supervisor: {line}" for line in _lines(self._world.paths.supervisor_log)[-60:]),
        ]
        self._add("\n".join(story))

    def _add(self, finding: str) -> None:
        self.findings.append(finding)
        if self.file is not None:
            self.file.write_text("\n\n".join(self.findings))

    def _events(self, each: Under) -> Sequence[Any]:
        return self._world.store.events(each.target.uid)

    def _tell(self) -> None:
        if sys.stderr.isatty() or time.monotonic() > self._told + 15:
            self._told = time.monotonic()
            done = self.handed_in - len(self._there)
            print(f"{self.troubles.killed} kills, {done} jobs done, {len(self.findings)} findings", file=sys.stderr)

    def _nothing_left(self, mounts: Sequence[str]) -> None:
        """Of all of them together, once the supervisor has gone as well."""
        paths = self._world.paths
        deadline = time.monotonic() + LEFT_SECONDS
        SupervisorLink(paths).stop()
        while left := [*self._left(), *_new(leftovers.mounts(), mounts)]:
            if time.monotonic() > deadline:
                self._add("\n  - ".join(["left at the end:", *left]))
                return
            time.sleep(POLL)

    def _left(self) -> Iterator[str]:
        paths = self._world.paths
        yield from (f"file {paths.job(uid)}" for uid in paths.jobs())
        if paths.run.is_dir():
            yield from (f"file {path}" for path in paths.run.iterdir())
        yield from (group for uid in self._uids for group in leftovers.groups(uid))  # others may run jobs beside us
        if isinstance(machine := self._world.machines.get("ssh"), SshMachine):
            yield from machine.left()


def _new(now: Sequence[str], before: Sequence[str]) -> list[str]:
    return list((Counter(now) - Counter(before)).elements())


def _lines(file: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return file.read_text(errors="replace").splitlines()
    return []


def _compact(ledger: Path) -> list[str]:
    """Without those in which a rank only says that it lives, but for its last."""
    lines = _lines(ledger)
    last = {line.split()[1:3][0] + line.split()[2]: line for line in lines}
    return [line for line in lines if not line.startswith("lives") or line in last.values()]
