"""What is known of the hosts of each inventory, and when they were last asked. One for the whole supervisor.

Also which network a job uses there, and which MPI: one that all its machines have, in the same generation and at the
same place.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, partial
from pathlib import Path

from oarsman import names
from oarsman.engines.hosts.core.installed_mpi import BY_NAME, FoundMpi, not_there
from oarsman.engines.hosts.ssh import probe
from oarsman.engines.hosts.ssh.client import Ssh, on_all
from oarsman.engines.hosts.ssh.interfaces import Networks, connecting
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.engines.hosts.ssh.inventory_file import load
from oarsman.engines.hosts.ssh.probe import HostFacts, HostMpi
from oarsman.engines.hosts.ssh.trouble import Trouble, without_name
from oarsman.errors import ManifestError, OarsmanError, RetryableError
from oarsman.job.job import Job
from oarsman.plan.capacity.amounts import Capacity
from oarsman.plan.capacity.placement import Machine
from oarsman.text.sentence import Text

FRESH_SECONDS = 30.0  # so long an answer holds; a host that vanished meanwhile is noticed when it is to be used
TROUBLE_SECONDS = 5.0  # the same, where a host did not answer
_ANSWER_SECONDS = 15.0
_BUSY_PATIENCE = 5  # seconds for what may hang on a host

LeftOut = Callable[[Inventory], Mapping[str, str]]  # host -> why its owner wants it left out
Keep = Callable[[Inventory, Mapping[str, HostFacts], Mapping[str, Trouble]], None]


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was heard before, by whomever."""

    facts: Mapping[str, HostFacts]
    troubles: Mapping[str, Trouble]
    age: float  # seconds


Recall = Callable[[Inventory], Recalled | None]


class InventoryFacts:
    """One inventory as its file is now, and what its hosts said last."""

    def __init__(self, file: Path, *, left_out: LeftOut, keep: Keep, recall: Recall) -> None:
        self._file, self._left_out, self._keep, self._recall = file, left_out, keep, recall
        self._read_at = -1
        self._inventory: Inventory | None = None
        self.facts: dict[str, HostFacts] = {}
        self.troubles: dict[str, Trouble] = {}
        self._looked_at = float("-inf")
        self.asked_at = float("-inf")  # the same in seconds of the epoch
        self._looking: asyncio.Task[None] | None = None

    @property
    def inventory(self) -> Inventory:
        """Read again when the file was changed; what is wrong with it is for whoever submits the next job."""
        try:
            changed = self._file.stat().st_mtime_ns
            if changed != self._read_at:
                self._inventory, self._read_at = load(self._file), changed
                self._remember(self._inventory, unchanged=time.time() - changed / 1e9)
        except (OSError, OarsmanError) as error:
            if self._inventory is None:
                why = Text("{file} has mistakes", file=self._file) if isinstance(error, ManifestError) else error
                hint = Text("{command} shows them", command=f"oarsman hosts list --hosts {self._file}")
                raise RetryableError(Text("the hosts cannot be read: {why}", why=why), hint=hint) from error
        assert self._inventory is not None
        return self._inventory

    def _remember(self, inventory: Inventory, *, unchanged: float) -> None:
        """What hosts said before the inventory was changed, `unchanged` seconds ago, is not about what it says now."""
        known = self._recall(inventory)
        self._looked_at = float("-inf")
        if known is not None and known.age < unchanged:
            self._looked_at, self.asked_at = time.monotonic() - known.age, time.time() - known.age
            self.facts, self.troubles = dict(known.facts), dict(known.troubles)

    @property
    def ssh(self) -> Ssh:
        return Ssh(self.inventory)

    @property
    def fresh(self) -> bool:
        """What was in the way may be out of it by now, so that it is looked for sooner."""
        holds = TROUBLE_SECONDS if bool(self.inventory) and self.troubles else FRESH_SECONDS
        return time.monotonic() - self._looked_at < holds

    def stale(self) -> None:
        """Something was seen that does not go with what is known."""
        self._looked_at = float("-inf")

    async def look(self) -> None:
        """Ask all hosts; whoever comes while they are being asked waits for the same answers."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        await asyncio.shield(self._looking)

    async def _look(self) -> None:
        inventory, asked_at = self.inventory, time.time()
        answers = await on_all(inventory.hosts, self._ask)
        self.facts = {name: said for name, said in answers.items() if isinstance(said, HostFacts)}
        self.troubles = {name: said for name, said in answers.items() if isinstance(said, Trouble)}
        self._looked_at, self.asked_at = time.monotonic(), asked_at
        self._keep(inventory, self.facts, self.troubles)

    async def for_mpi_of(self, job: Job, facts: Mapping[str, HostFacts]) -> dict[str, HostFacts]:
        """The same, where nobody has looked yet for the MPI that the job names by its path, after a look."""
        path = _path_of(job)
        unseen = {name for name, found in facts.items() if path and not _suitable(job, path, found.mpis)}
        asked = [replace(host, mpi=path) for host in self.inventory.hosts if host.name in unseen]
        answers = await on_all(asked, self._ask)
        return {**facts, **{name: said for name, said in answers.items() if isinstance(said, HostFacts)}}

    async def _ask(self, host: SshHost) -> HostFacts | Trouble:
        answer = await self.ssh.run(host, probe.script(host, patience=_BUSY_PATIENCE), timeout=_ANSWER_SECONDS)
        if answer.trouble is not None:
            return answer.trouble
        try:
            facts = probe.parse(answer.out)
        except RetryableError as error:
            return Trouble("other", Text("{host}: {why}", host=host.name, why=error))
        if not facts.full:
            return facts
        why = Text("the disk is full: less than 1 MiB is free for {folder}", folder=facts.full)
        return Trouble("full", Text("{host}: {why}", host=host.name, why=why), Text("make room there"))

    def machines(self) -> list[Machine]:
        """What there is to give, in the inventory's order."""
        left_out = self._left_out(self.inventory)
        return [self._machine(host, left_out.get(host.name, "")) for host in self.inventory.hosts]

    def _machine(self, host: SshHost, left_out: str) -> Machine:
        facts, trouble = self.facts.get(host.name), self.troubles.get(host.name)
        has = {
            "gpu": host.gpus if host.gpus is not None else len(facts.gpus) if facts else None,
            "slots": host.slots if host.slots is not None else facts.processors if facts else None,
            "memory": host.memory if host.memory is not None else facts.memory if facts else None,
        }
        closed = trouble is not None and trouble.closed and not left_out
        why = "" if facts else Text("it was not asked yet")
        if trouble is not None:
            why = str(trouble) if closed else trouble.message
        return Machine(
            name=host.name,
            capacity=Capacity({name: Decimal(amount) for name, amount in has.items() if amount is not None}),
            unknown=tuple(name for name, amount in has.items() if amount is None),
            labels=host.labels,
            left_out=(without_name(left_out) if left_out.startswith(f"{host.name}: ") else left_out) or why,
            closed=closed,
        )


class KnownInventories:
    def __init__(self, *, left_out: LeftOut, keep: Keep, recall: Recall = lambda _: None) -> None:
        self._known = cache(partial(InventoryFacts, left_out=left_out, keep=keep, recall=recall))

    def of(self, file: str) -> InventoryFacts:
        if not file:
            hint = Text("submit it with --hosts FILE")
            raise RetryableError(Text("it is not known which hosts the job is for"), hint=hint)
        return self._known(Path(file))


def network_of(machines: Mapping[str, SshHost], facts: Mapping[str, HostFacts]) -> Networks | Trouble:
    """The network that connects these machines, by what they say of themselves and what the inventory wants."""
    return connecting(
        {name: found.addresses for name, found in facts.items()},
        {name: host.interface for name, host in machines.items() if host.interface},
        reached={name: found.reached for name, found in facts.items() if found.reached},
        rdma=[name for name, found in facts.items() if found.rdma],
    )


def choose_mpi(job: Job, facts: Mapping[str, HostFacts]) -> FoundMpi | str:
    """The MPI, or why there is none. `facts` are those of the job's machines, the launcher's first."""
    wanted = job.annotation(names.ANNOTATION_MPI) or _path_of(job)
    suitable = {machine: _suitable(job, wanted, found.mpis) for machine, found in facts.items()}
    what = wanted or (job.implementation.value if job.implementation_stated else "MPI")
    for machine, mpis in suitable.items():
        if not mpis:
            there = ", ".join(str(mpi.found) for mpi in facts[machine].mpis if mpi.found) or Text("none at all")
            return Text(
                "{host} has no {what} (it has {there}). Install one there, or name its folder as `mpi` "
                "in the inventory; 'oarsman hosts check' shows what every host has",
                host=machine,
                what=what,
                there=there,
            )
    (machine, mpis), *others = suitable.items()
    for mpi in mpis:
        if mpi.found and all(any(_same(mpi, other) for other in theirs) for _, theirs in others):
            return mpi.found
    for other, theirs in others:
        if not any(_same(mpi, their) for mpi in mpis for their in theirs):
            template = Text("{one} has {this}, {other} has {that}: all need the same, at the same place")
            return Text(template, one=machine, this=mpis[0].found, other=other, that=theirs[0].found)
    return Text("the hosts have no MPI in common: all need the same, at the same place")


def mpi_not_there(job: Job, facts: Mapping[str, HostFacts]) -> str | None:
    """Words about an MPI that the job names by its path, if none of these machines has one there."""
    path = _path_of(job)
    if not path or not facts or any(_suitable(job, path, found.mpis) or not found.complete for found in facts.values()):
        return None
    there = [mpi.found for found in facts.values() for mpi in found.mpis if mpi.found]
    return not_there(path, dict.fromkeys(there))


def _path_of(job: Job) -> str:
    """On hosts, only a whole path means something before the job is there."""
    return job.mpi_path if os.path.isabs(job.mpi_path) and not job.path_is_of_image else ""


def _suitable(job: Job, wanted: str, mpis: Sequence[HostMpi]) -> list[HostMpi]:
    if os.path.isabs(wanted):
        folders = (wanted.rstrip("/"), f"{wanted.rstrip('/')}/bin")
        named = [mpi for mpi in mpis if mpi.launcher == wanted or os.path.dirname(mpi.launcher) in folders]
        own = any(mpi.launcher == wanted == job.launcher_path and not mpi.found for mpi in named)
        if not own:
            return [mpi for mpi in named if mpi.found]
        wanted = ""  # a script of somebody's own in place of mpirun, which says nothing of what it calls
    implementation = BY_NAME.get(wanted.lower())
    if not wanted and job.implementation_stated:
        implementation = job.implementation
    return [mpi for mpi in mpis if mpi.family and implementation in (None, mpi.family.implementation)]


def _same(one: HostMpi, other: HostMpi) -> bool:
    """The launcher names its helpers on other machines by their full paths."""
    return (one.family, os.path.dirname(one.launcher)) == (other.family, os.path.dirname(other.launcher))
