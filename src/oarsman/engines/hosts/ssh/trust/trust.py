"""Trust between all hosts of an inventory, set up from one machine that can log in to them, and taken back.

look, try_passwords and plan change nothing; carry_out does what the plan announced; verify tries every pair. Private
keys never travel: each host makes its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Self, TypeVar

from oarsman.engines.hosts.ssh.client import Ssh, on_all
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.engines.hosts.ssh.trouble import Trouble, trouble
from oarsman.engines.hosts.ssh.trust import changes as plans
from oarsman.engines.hosts.ssh.trust.changes import HERE, Peer, TrustChange, Work
from oarsman.engines.hosts.ssh.trust.files import PublicKey
from oarsman.engines.hosts.ssh.trust.folders import KEY, FolderSeen, SshFolder, here
from oarsman.engines.hosts.ssh.trust.login import StartKey, Way, known_key, learn_key, log_in, opening_key, way_to
from oarsman.errors import UserError
from oarsman.text.sentence import Text, sentences

_Found = TypeVar("_Found")
_Visits = dict[str, tuple[int, str]]  # the exit code of ssh to each host, and what it said
_TRIES = 5  # to change a file that others change at the same time, as hosts do that share a home


@dataclass(frozen=True, slots=True)
class Pair:
    source: str
    target: str
    trouble: Trouble | None


@dataclass(frozen=True, slots=True)
class TrustPlan:
    work: Mapping[str, Work] = field(default_factory=dict)  # by place

    @property
    def changes(self) -> list[TrustChange]:
        return [change for work in self.work.values() for change in work.changes]


class Trust:
    def __init__(self, inventory: Inventory, *, home: Path, key: Path | None = None) -> None:
        self.inventory = inventory
        # The same for the same file on the same machine, whatever is written in it later.
        place = f"{socket.gethostname()}:{inventory.file.resolve()}"
        self.mark = hashlib.sha256(place.encode()).hexdigest()[:8]
        self.home = home
        self.troubles: dict[str, Trouble] = {}  # hosts that cannot take part
        self.learned: dict[str, PublicKey] = {}  # host keys that nobody here knew
        self.done: list[TrustChange] = []
        self.told: Callable[[TrustChange], None] = lambda change: None
        self._key = key
        self._ssh = Ssh(inventory)
        self._ways: dict[str, Way] = {}
        self._seen: dict[str, FolderSeen] = {}
        self._passwords: dict[str, str] = {}
        self._opening: dict[str, StartKey] = {}

    def __enter__(self) -> Self:
        self._temporary = tempfile.TemporaryDirectory(prefix="oarsman-")
        self._folder = Path(self._temporary.name)
        return self

    def __exit__(self, *_: object) -> None:
        self._temporary.cleanup()

    # -- looking -------------------------------------------------------------------------------------------
    async def look(self) -> None:
        """Find out who lets us in by key, and whose host key is not known here."""
        self._ways = self._sound(await on_all(self.inventory.hosts, lambda host: way_to(self._ssh, host)))
        await self._look_at([host for host in self.inventory.hosts if host.name in self._ways])
        strangers = self._with_trouble("host-key-unknown")
        self.learned |= self._sound(await on_all(strangers, self._learn))
        self._pins.write_text("".join(f"{self._ways[n].known_as} {key}\n" for n, key in self.learned.items()))
        await self._look_at([host for host in strangers if host.name in self.learned])

    def _sound(self, found: Mapping[str, _Found | Trouble]) -> dict[str, _Found]:
        """Without those that are in trouble, which is noted."""
        self.troubles |= {name: each for name, each in found.items() if isinstance(each, Trouble)}
        return {name: each for name, each in found.items() if not isinstance(each, Trouble)}

    async def _learn(self, host: SshHost) -> PublicKey | Trouble:
        return await learn_key(self._ssh, host, self._ways[host.name], self._folder)

    def _with_trouble(self, kind: str) -> list[SshHost]:
        found = {name for name, trouble in self.troubles.items() if trouble.kind == kind}
        return [host for host in self.inventory.hosts if host.name in found]

    @property
    def _pins(self) -> Path:
        return self._folder / "pins"

    @property
    def locked(self) -> list[SshHost]:
        """Hosts that do not know a key of ours, and may take a password."""
        return self._with_trouble("denied")

    def login_name(self, host: SshHost) -> str:
        return f"{self._ways[host.name].user}@{host.name}"

    async def try_passwords(self, passwords: Mapping[str, str]) -> list[str]:
        """Returns the hosts whose password is wrong."""
        self._passwords |= passwords
        await self._look_at([host for host in self.inventory.hosts if host.name in passwords])
        wrong = [host.name for host in self.locked if host.name in passwords]
        for name in wrong:
            del self._passwords[name]
        return wrong

    async def _look_at(self, hosts: Sequence[SshHost]) -> None:
        for host in hosts:
            self.troubles.pop(host.name, None)
        for name, seen in self._sound(await on_all(hosts, lambda host: self._place(host).look())).items():
            if seen.missing:
                message = Text("{host}: it has no {programs}", host=name, programs=", ".join(seen.missing))
                self.troubles[name] = Trouble("missing", message)
            else:
                self._seen[name] = seen

    def _place(self, host: SshHost) -> SshFolder:
        pins = self._pins if host.name in self.learned else None
        way, password = self._ways[host.name], self._passwords.get(host.name)
        return SshFolder(host.name, partial(log_in, self._ssh, host, way=way, pins=pins, password=password))

    @property
    def taking_part(self) -> list[SshHost]:
        return [host for host in self.inventory.hosts if host.name in self._seen and host.name not in self.troubles]

    @property
    def warnings(self) -> dict[str, tuple[str, ...]]:
        """What others may write to on a host; sshd then ignores authorized_keys."""
        return {host.name: found for host in self.taking_part if (found := self._seen[host.name].open_to_others)}

    def left_by_others(self) -> dict[str, set[str]]:
        """Marks of other inventories, by host."""
        return {h.name: found for h in self.taking_part if (found := plans.others(self._seen[h.name], self.mark))}

    # -- what would be done --------------------------------------------------------------------------------
    async def plan(self) -> TrustPlan:
        for host in self.taking_part:
            if self._key is not None or host.name in self._passwords:
                self._opening[host.name] = await opening_key(self._ways[host.name], self.home, self._key)
        peers = await self._peers()
        work = {HERE: self._work_here(await self._look_here())}
        for peer in peers:
            work[peer.host.name] = self._work(peer, peers)
        return TrustPlan({place: each for place, each in work.items() if each.changes or each.refused})

    async def plan_undo(self) -> TrustPlan:
        homes = {self._seen[host.name].home or host.name: host for host in reversed(self.taking_part)}
        firsts = [host for host in self.taking_part if host in homes.values()]  # who shares a home is done with it
        work = {host.name: plans.undo(host.name, self._seen[host.name], self.mark) for host in firsts}
        work[HERE] = plans.undo(HERE, await self._look_here(), self._start_mark)
        return TrustPlan({place: each for place, each in work.items() if each.changes})

    @property
    def _start_mark(self) -> str:
        """This machine may be one of the hosts as well, whose files then have both."""
        return f"{self.mark}-start"

    def _work(self, me: Peer, peers: Sequence[Peer]) -> Work:
        opening = self._opening.get(me.host.name)
        pending = sum(not peer.seen.key for peer in peers) + bool(opening and not opening.public)
        return plans.on_host(me, peers, [opening.public] if opening else [], self.mark, pending)

    async def _peers(self) -> list[Peer]:
        """A host that is trusted for another reason than its own key, such as an authority, is asked for it."""
        peers = []
        for host in self.taking_part:
            key = self.learned.get(host.name) or known_key(self._ways[host.name]) or await self._learn(host)
            if isinstance(key, Trouble):
                self.troubles[host.name] = key
            else:
                peers.append(Peer(host, self._seen[host.name], key))
        refused = plans.contested(peers)
        for name, (other, claimed) in refused.items():
            why = Text("it has the name {name}, as {other} has, but another host key", name=claimed, other=other)
            hint = Text("give it its address in the inventory; if it is not what it seems, stay away from it")
            self.troubles[name] = Trouble("contested", Text("{host}: {why}", host=name, why=why), hint)
        return [peer for peer in peers if peer.host.name not in refused]

    def _work_here(self, seen: FolderSeen) -> Work:
        pins: dict[str, list[tuple[PublicKey, list[str]]]] = {}
        labels = {path: label for label, path in self._files_here().items()}
        for name, key in self.learned.items():
            file = self._ways[name].own_file
            if file is not None and name not in self.troubles:
                pins.setdefault(labels[str(file)], []).append((key, [self._ways[name].known_as]))
        entries = {}
        for host in self.inventory.hosts:
            opening = self._opening.get(host.name)
            if opening is not None and opening.unused:
                hosts = " ".join(dict.fromkeys((host.name, host.target)))
                entries[host.name] = f"Host {hosts}\n    IdentityFile {opening.private}\n"
        make_key = any(not opening.public for opening in self._opening.values())
        return plans.on_start(seen, pins, entries, self._start_mark, make_key=make_key)

    def _files_here(self) -> dict[str, str]:
        config = self.inventory.ssh_config
        own = self.inventory.file.parent / Path(config).expanduser() if config else self.home / ".ssh" / "config"
        found = {"config": str(own)}
        known = dict.fromkeys(str(way.own_file) for way in self._ways.values() if way.own_file)
        return found | {f"known_hosts{number or ''}": path for number, path in enumerate(known)}

    def file_here(self, label: str) -> str:
        return self._files_here().get(label, str(self.home / ".ssh" / label))

    async def _look_here(self) -> FolderSeen:
        seen = await here(self.home, self._files_here()).look()
        if isinstance(seen, Trouble):
            raise UserError(seen.message)
        return seen

    # -- doing it ------------------------------------------------------------------------------------------
    async def carry_out(self, plan: TrustPlan) -> None:
        """First here, so that a run that is cut short finds its way again; then the keys; then all that names them."""
        if HERE in plan.work:
            await self._change_here(plan.work[HERE], self._work_here)
        for opening in self._opening.values():
            opening.public = opening.public or (await self._look_here()).key
        makers = [host for host in self.taking_part if host.name in plan.work and plan.work[host.name].make_key]
        # Of hosts that may share a home one goes ahead: whoever makes the folder makes the key, too, which tells of it.
        first = list({self._seen[host.name].number: host for host in reversed(makers)}.values())
        await on_all(first, self._make_key)
        await on_all([host for host in makers if host not in first], self._make_key)
        peers = await self._peers()
        by_name = {peer.host.name: peer for peer in peers}

        def work(host: SshHost, seen: FolderSeen) -> Work:
            return self._work(replace(by_name[host.name], seen=seen), peers)

        await self._settle_all([peer.host for peer in peers], work)

    async def _make_key(self, host: SshHost) -> None:
        if self._sound({host.name: await self._place(host).make_key(self.mark)}):
            await self._look_at([host])  # the folder may be new as well
            self._tell(TrustChange(host.name, KEY, "make"))

    async def carry_out_undo(self, plan: TrustPlan) -> None:
        """Here last, and only when every host is done: the rest needs the way that is known here."""
        hosts = [host for host in self.taking_part if host.name in plan.work]
        await self._settle_all(hosts, lambda host, seen: plans.undo(host.name, seen, self.mark))
        if HERE in plan.work and not self.troubles:
            await self._change_here(plan.work[HERE], lambda seen: plans.undo(HERE, seen, self._start_mark))

    async def _settle_all(self, hosts: Sequence[SshHost], work: Callable[[SshHost, FolderSeen], Work]) -> None:
        async def settle(host: SshHost) -> Trouble | None:
            return await self._settle(self._place(host), self._seen[host.name], partial(work, host))

        self._sound(await on_all(hosts, settle))

    async def _settle(self, folder: SshFolder, seen: FolderSeen, work: Callable[[FolderSeen], Work]) -> Trouble | None:
        """Files that were changed meanwhile are looked at again."""
        for _ in range(_TRIES):
            now = work(seen)
            if not now.edits and not now.delete_key:
                return None
            moved = await folder.change(now.edits, delete_key=now.delete_key)
            if isinstance(moved, Trouble):
                return moved
            self._tell(*(change for change in now.changes if change.file not in moved and change.action != "make"))
            if not moved:
                return None
            again = await folder.look()
            if isinstance(again, Trouble):
                return again
            seen = again
        if folder.name == HERE:
            return Trouble("other", Text("files in the ssh folder of this machine change all the time"))
        message = Text("{host}: its ssh files change all the time", host=folder.name)
        return Trouble("other", message, Text("try again"))

    async def _change_here(self, announced: Work, work: Callable[[FolderSeen], Work]) -> None:
        place = here(self.home, self._files_here())
        if announced.make_key:
            made = await place.make_key(self._start_mark)
            if isinstance(made, Trouble):
                raise UserError(made.message)
            self._tell(TrustChange(HERE, KEY, "make"))
        if failed := await self._settle(place, await self._look_here(), work):
            raise UserError(failed.message)

    def _tell(self, *changes: TrustChange) -> None:
        for change in changes:
            self.done.append(change)
            self.told(change)

    # -- does it work? -------------------------------------------------------------------------------------
    async def verify(self) -> list[Pair]:
        """From every host to every other, and from here by key to all of them."""
        hosts, taking_part = self.inventory.hosts, self.taking_part
        entered, visits = await asyncio.gather(
            on_all(taking_part, self._enter), on_all(taking_part, lambda host: self._visit(host, taking_part))
        )
        pairs = [Pair(HERE, host.name, self.troubles.get(host.name) or entered.get(host.name)) for host in hosts]
        for source, target in permutations(hosts, 2):
            lost = self.troubles.get(source.name) or self.troubles.get(target.name)
            between = lost or _between(source.name, target, visits.get(source.name))
            pairs.append(Pair(source.name, target.name, between))
        return pairs

    async def _enter(self, host: SshHost) -> Trouble | None:
        way = self._ways[host.name]
        pins = self._pins if way.own_file is None and host.name in self.learned else None
        return (await log_in(self._ssh, host, "exit 0\n", 30, way=way, password=None, pins=pins)).trouble

    async def _visit(self, host: SshHost, hosts: Sequence[SshHost]) -> _Visits | Trouble:
        """Each begins with the one after itself: otherwise all would come to the first at once."""
        place = hosts.index(host)
        # What is localhost here is another machine there.
        called = {
            plans.names_of(other, self._seen[other.name])[0]: other.name
            for other in (*hosts[place + 1 :], *hosts[:place])
        }
        visits = await self._place(host).visit(list(called))
        return visits if isinstance(visits, Trouble) else {called[n]: said for n, said in visits.items() if n in called}


def _between(source: str, target: SshHost, visits: _Visits | Trouble | None) -> Trouble | None:
    if visits is None:
        return Trouble("other", Text("{host} did not take part", host=source))
    if isinstance(visits, Trouble):
        return visits
    if target.name not in visits:
        return Trouble("other", Text("{host} said nothing about {other}", host=source, other=target.name))
    code, said = visits[target.name]
    if code == 0:
        return None
    found = trouble(target, code, said)
    if found.kind == "denied":
        hint = Text("or {host} comes there from another address than it has: then its key is not let in", host=source)
        found = replace(found, hint=sentences([found.hint, hint]))
    return found
