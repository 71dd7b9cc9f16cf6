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
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from oarsman.engines.hosts.ssh.client import Answer, Ssh, on_all
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.engines.hosts.ssh.trouble import Trouble, trouble
from oarsman.engines.hosts.ssh.trust import changes as plans
from oarsman.engines.hosts.ssh.trust.changes import HERE, Peer, TrustChange, WantedHere, Work
from oarsman.engines.hosts.ssh.trust.files import PublicKey
from oarsman.engines.hosts.ssh.trust.folders import KEY, FolderSeen, SshFolder, here, on_host
from oarsman.engines.hosts.ssh.trust.login import StartKey, Way, known_key, learn_key, log_in, opening_key, way_to
from oarsman.errors import UserError
from oarsman.text.sentence import Text

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


def inventory_id(file: Path) -> str:
    """The same for the same file on the same machine, whatever is written in it later."""
    return hashlib.sha256(f"{socket.gethostname()}:{file.resolve()}".encode()).hexdigest()[:8]


class Trust:
    def __init__(self, inventory: Inventory, *, home: Path, key: Path | None = None, ssh: Ssh | None = None) -> None:
        self.inventory = inventory
        self.mark = inventory_id(inventory.file)
        self.home = home
        self.troubles: dict[str, Trouble] = {}  # hosts that cannot take part
        self.learned: dict[str, PublicKey] = {}  # host keys that nobody here knew
        self.done: list[TrustChange] = []
        self.told: Callable[[TrustChange], None] = lambda change: None
        self._key = key
        self._ssh = ssh or Ssh(inventory)
        self._ways: dict[str, Way] = {}
        self._seen: dict[str, FolderSeen] = {}
        self._passwords: dict[str, str] = {}
        self._opening: dict[str, StartKey] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="oarsman-")))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    # -- looking -------------------------------------------------------------------------------------------
    async def look(self) -> None:
        """Find out who lets us in by key, and whose host key is not known here."""
        ways = await on_all(self.inventory.hosts, lambda host: way_to(self._ssh, host))
        for name, way in ways.items():
            if isinstance(way, Trouble):
                self.troubles[name] = way
            else:
                self._ways[name] = way
        await self._look_at([host for host in self.inventory.hosts if host.name in self._ways])
        strangers = [host for host in self.inventory.hosts if self._is("host-key-unknown", host)]
        learned = await on_all(strangers, self._learn)
        for name, key in learned.items():
            if isinstance(key, Trouble):
                self.troubles[name] = key
            else:
                self.learned[name] = key
        self._pins.write_text("".join(f"{self._ways[n].known_as} {key}\n" for n, key in self.learned.items()))
        await self._look_at([host for host in strangers if host.name in self.learned])

    async def _learn(self, host: SshHost) -> PublicKey | Trouble:
        return await learn_key(self._ssh, host, self._ways[host.name], self._folder)

    def _is(self, kind: str, host: SshHost) -> bool:
        found = self.troubles.get(host.name)
        return found is not None and found.kind == kind

    @property
    def _pins(self) -> Path:
        return self._folder / "pins"

    @property
    def locked(self) -> list[SshHost]:
        """Hosts that do not know a key of ours, and may take a password."""
        return [host for host in self.inventory.hosts if self._is("denied", host)]

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
        found = await on_all(hosts, lambda host: self._place(host).look())
        for name, seen in found.items():
            self.troubles.pop(name, None)
            if isinstance(seen, Trouble):
                self.troubles[name] = seen
            elif seen.missing:
                self.troubles[name] = Trouble(
                    "missing", Text("{host}: it has no {programs}", host=name, programs=", ".join(seen.missing))
                )
            else:
                self._seen[name] = seen

    def _place(self, host: SshHost) -> SshFolder:
        async def run(script: str, timeout: float) -> Answer:  # noqa: ASYNC109
            return await log_in(
                self._ssh,
                host,
                script,
                timeout=timeout,
                way=self._ways[host.name],
                pins=self._pins if host.name in self.learned else None,
                password=self._passwords.get(host.name),
            )

        return on_host(host, run)

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
        keys = {peer.host.name: peer.seen.key for peer in peers if peer.seen.key}
        work = {HERE: plans.on_start(await self._look_here(), self._wanted_here(), self._start_mark)}
        for peer in peers:
            work[peer.host.name] = self._work(peer, peers, keys)
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

    def _work(self, me: Peer, peers: Sequence[Peer], keys: Mapping[str, str]) -> Work:
        opening = self._opening.get(me.host.name)
        pending = len(peers) - len(keys) + bool(opening and not opening.public)
        return plans.on_host(me, peers, keys, [opening.public] if opening else [], self.mark, pending)

    async def _peers(self) -> list[Peer]:
        """A host that is trusted for another reason than its own key, such as an authority, is asked for it."""
        peers = []
        for host in self.taking_part:
            key = self.learned.get(host.name) or known_key(self._ways[host.name]) or await self._learn(host)
            if isinstance(key, Trouble):
                self.troubles[host.name] = key
            else:
                peers.append(Peer(host, self._seen[host.name], key))
        return peers

    def _wanted_here(self) -> WantedHere:
        pins: dict[str, list[tuple[PublicKey, list[str]]]] = {}
        labels = {path: label for label, path in self._files_here().items()}
        for name, key in self.learned.items():
            file = self._ways[name].own_file
            if file is not None and name not in self.troubles:
                pins.setdefault(labels[str(file)], []).append((key, [self._ways[name].known_as]))
        entries = {}
        for name, opening in self._opening.items():
            host = self.inventory.host(name)
            if host is not None and opening.unused:
                hosts = " ".join(dict.fromkeys((host.name, host.target)))
                entries[name] = f"Host {hosts}\n    IdentityFile {opening.private}\n"
        return WantedHere(pins, entries, any(not opening.public for opening in self._opening.values()))

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
            await self._change_here(
                plan.work[HERE], lambda seen: plans.on_start(seen, self._wanted_here(), self._start_mark)
            )
        for opening in self._opening.values():
            opening.public = opening.public or (await self._look_here()).key
        makers = [host for host in self.taking_part if host.name in plan.work and plan.work[host.name].make_key]
        # Of hosts that may share a home one goes ahead: whoever makes the folder makes the key, too, which tells of it.
        first = list({self._seen[host.name].number: host for host in reversed(makers)}.values())
        await on_all(first, self._make_key)
        await on_all([host for host in makers if host not in first], self._make_key)
        peers = await self._peers()
        keys = {peer.host.name: self._seen[peer.host.name].key for peer in peers}

        async def write(host: SshHost) -> None:
            await self._settle(host, lambda: self._work(self._peer(host, peers), peers, keys))

        await on_all([peer.host for peer in peers], write)

    def _peer(self, host: SshHost, peers: Sequence[Peer]) -> Peer:
        found = next(peer for peer in peers if peer.host == host)
        return Peer(host, self._seen[host.name], found.key)

    async def _make_key(self, host: SshHost) -> None:
        made = await self._place(host).make_key(self.mark)
        if isinstance(made, Trouble):
            self.troubles[host.name] = made
            return
        await self._look_at([host])  # the folder may be new as well
        self._tell(TrustChange(host.name, KEY, "make"))

    async def carry_out_undo(self, plan: TrustPlan) -> None:
        """Here last, and only when every host is done: the rest needs the way that is known here."""

        async def clear(host: SshHost) -> None:
            await self._settle(host, lambda: plans.undo(host.name, self._seen[host.name], self.mark))

        await on_all([host for host in self.taking_part if host.name in plan.work], clear)
        if HERE in plan.work and not self.troubles:
            await self._change_here(plan.work[HERE], lambda seen: plans.undo(HERE, seen, self._start_mark))

    async def _settle(self, host: SshHost, work: Callable[[], Work]) -> None:
        """Files that were changed meanwhile are looked at again."""
        for _ in range(_TRIES):
            now = work()
            if not now.edits and not now.delete_key:
                return
            moved = await self._place(host).change(now.edits, delete_key=now.delete_key)
            if isinstance(moved, Trouble):
                self.troubles[host.name] = moved
                return
            self._tell(*(change for change in now.changes if change.file not in moved and change.action != "make"))
            if not moved:
                return
            await self._look_at([host])
            if host.name in self.troubles:
                return
        self.troubles[host.name] = Trouble(
            "other", Text("{host}: its ssh files change all the time", host=host.name), Text("try again")
        )

    async def _change_here(self, work: Work, again: Callable[[FolderSeen], Work]) -> None:
        place = here(self.home, self._files_here())
        if work.make_key:
            made = await place.make_key(self._start_mark)
            if isinstance(made, Trouble):
                raise UserError(made.message)
            self._tell(TrustChange(HERE, KEY, "make"))
        for _ in range(_TRIES):
            work = again(await self._look_here())
            moved = await place.change(work.edits, delete_key=work.delete_key)
            if isinstance(moved, Trouble):
                raise UserError(moved.message)
            self._tell(*(change for change in work.changes if change.file not in moved and change.action != "make"))
            if not moved:
                return
        raise UserError(Text("files in the ssh folder of this machine change all the time"))

    def _tell(self, *changes: TrustChange) -> None:
        for change in changes:
            self.done.append(change)
            self.told(change)

    # -- does it work? -------------------------------------------------------------------------------------
    async def verify(self) -> list[Pair]:
        """From every host to every other, and from here by key to all of them."""
        names = [host.name for host in self.inventory.hosts]
        reached = [host.name for host in self.taking_part]
        entered, visits = await asyncio.gather(
            on_all(self.taking_part, self._enter), on_all(self.taking_part, lambda host: self._visit(host, reached))
        )
        pairs = [Pair(HERE, name, self.troubles.get(name) or entered.get(name)) for name in names]
        between = [(source, target) for source in names for target in names if source != target]
        return pairs + [Pair(source, to, self._between(source, to, visits.get(source))) for source, to in between]

    async def _enter(self, host: SshHost) -> Trouble | None:
        answer = await log_in(
            self._ssh,
            host,
            "exit 0\n",
            timeout=30,
            way=self._ways[host.name],
            password=None,
            pins=self._pins if self._ways[host.name].own_file is None and host.name in self.learned else None,
        )
        return answer.trouble

    async def _visit(self, host: SshHost, names: Sequence[str]) -> dict[str, tuple[int, str]] | Trouble:
        """Each begins with the one after itself: otherwise all would come to the first at once."""
        place = names.index(host.name)
        called = {self._called(name): name for name in (*names[place + 1 :], *names[:place])}
        visits = await self._place(host).visit(list(called))
        return visits if isinstance(visits, Trouble) else {called[name]: said for name, said in visits.items()}

    def _called(self, name: str) -> str:
        """What is localhost here is another machine there."""
        host = self.inventory.host(name)
        assert host is not None
        return plans.names_of(host, self._seen[name])[0]

    def _between(self, source: str, target: str, visits: dict[str, tuple[int, str]] | Trouble | None) -> Trouble | None:
        lost = self.troubles.get(source) or self.troubles.get(target)
        if lost is not None or visits is None or isinstance(visits, Trouble):
            return lost or (
                visits
                if isinstance(visits, Trouble)
                else Trouble("other", Text("{host} did not take part", host=source))
            )
        host = self.inventory.host(target)
        assert host is not None
        if target not in visits:
            return Trouble("other", Text("{host} said nothing about {other}", host=source, other=target))
        code, said = visits[target]
        return None if code == 0 else trouble(host, code, said)
