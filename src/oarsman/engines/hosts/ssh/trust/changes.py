"""What trust changes in each place: decided from what was seen, before anything is touched."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.trust import files
from oarsman.engines.hosts.ssh.trust.files import PREFIX, PublicKey
from oarsman.engines.hosts.ssh.trust.folders import KEY, Edit, FolderSeen

HERE = ""  # in place of the name of a host
_Pins = Sequence[tuple[PublicKey, Sequence[str]]]  # host keys, each with the names of its host


@dataclass(frozen=True, slots=True)
class TrustChange:
    """One thing that is announced, and then done."""

    place: str  # a host, or HERE
    file: str
    action: str  # make, add, replace, remove, delete
    count: int = 1  # lines of authorized_keys and known_hosts, entries of config


@dataclass(frozen=True, slots=True)
class Work:
    changes: tuple[TrustChange, ...] = ()
    edits: tuple[Edit, ...] = ()
    make_key: bool = False
    delete_key: bool = False
    refused: tuple[str, ...] = ()  # hosts whose key is written down otherwise, by somebody else


@dataclass(frozen=True, slots=True)
class Peer:
    """A host as the others are to know it."""

    host: SshHost
    seen: FolderSeen
    key: PublicKey  # of the host

    @property
    def known_as(self) -> list[str]:
        return [files.with_port(name, self.seen.port) for name in names_of(self.host, self.seen)]

    @property
    def stanza(self) -> str:
        names, hostname = names_of(self.host, self.seen), _hostname(self.host, self.seen)
        port = f"    Port {self.seen.port}\n" if self.seen.port != 22 else ""
        return (
            f"Host {' '.join(names)}\n    HostName {hostname}\n{port}    User {self.seen.user}\n"
            f"    IdentityFile ~/.ssh/{KEY}\n"
        )


def names_of(host: SshHost, seen: FolderSeen) -> list[str]:
    """Those by which the others may call it, the usual one first."""
    found = dict.fromkeys((host.name, host.target, _hostname(host, seen)))
    return [name for name in found if not _is_this_machine(name)]


def _hostname(host: SshHost, seen: FolderSeen) -> str:
    """Its own address, which is right also where this machine comes through a translating router."""
    for name in (seen.address, host.target):
        if name and not _is_this_machine(name):
            return name
    return seen.node


def _is_this_machine(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def on_host(me: Peer, peers: Sequence[Peer], extra: Sequence[str], mark: str, pending: int = 0) -> Work:
    """extra: keys that open the host from the machine all of this starts from.

    pending: how many keys are still to be made, each of which will be a line.
    """
    name, seen = me.host.name, me.seen
    # Without the mark of the key pair, whose place in a line is that of the line's own.
    free = [" ".join(word for word in line.split() if not word.startswith(PREFIX)) for line in extra]
    admitted, added, exchanged = files.admit(seen.files["authorized_keys"].text, free, _bound(peers), mark)
    pinned = files.pin(seen.files["known_hosts"].text, [(peer.key, peer.known_as) for peer in peers], mark)
    config, entries = _configured(seen, {peer.host.name: peer.stanza for peer in peers}, mark)
    changes = [
        TrustChange(name, KEY, "make", int(not seen.key)),
        TrustChange(name, "authorized_keys", "add", added + pending),
        TrustChange(name, "authorized_keys", "replace", exchanged),
        TrustChange(name, "known_hosts", "add", pinned.added),
        TrustChange(name, "known_hosts", "replace", pinned.replaced),
        TrustChange(name, "config", "add", entries),
    ]
    after = {"authorized_keys": admitted, "known_hosts": pinned.text, "config": config}
    refused = tuple(peer.host.name for peer in peers if set(peer.known_as) & set(pinned.refused))
    return replace(_work(seen, changes, after), make_key=not seen.key, refused=refused)


def _bound(peers: Sequence[Peer]) -> list[str]:
    """The hosts' own keys: for commands alone, and from their own addresses. Of what hosts say about their keys only
    the keys themselves get into the files of others; hosts that share a home share a key."""
    holders: dict[PublicKey, list[Peer]] = {}
    for peer in peers:
        if key := PublicKey.read(peer.seen.key):
            holders.setdefault(key, []).append(peer)
    found = []
    for key, those in holders.items():
        own = ",".join(sorted({address for peer in those for address in peer.seen.addresses})) or "127.0.0.1,::1"
        found.append(f'restrict,from="{own}" {key} {those[0].host.name}')
    return found


def contested(peers: Sequence[Peer]) -> dict[str, tuple[str, str]]:
    """Hosts that claim a name or an address of another with another key, each with that other and what it claims: then
    whoever has the address by the inventory keeps it, and otherwise neither."""
    found = {}
    for one, other in permutations(peers, 2):
        stated = {files.with_port(name, one.seen.port) for name in (one.host.name, one.host.target)}
        claimed = set(one.known_as) & set(other.known_as) - stated if one.key != other.key else set()
        if claimed:
            found[one.host.name] = (other.host.name, min(claimed))
    return found


def _configured(seen: FolderSeen, wanted: Mapping[str, str], mark: str) -> tuple[bytes | None, int]:
    text = seen.files["config"].text
    had = files.stanzas(text, mark)
    by_first = {stanza.split()[1]: stanza for stanza in wanted.values()}
    return files.with_block(text, by_first, mark), sum(had.get(first) != stanza for first, stanza in by_first.items())


def _work(seen: FolderSeen, changes: Iterable[TrustChange], after: Mapping[str, bytes | None]) -> Work:
    """Changes that change nothing are left out."""
    texts = [(label, seen.files[label], text) for label, text in after.items()]
    edits = tuple(Edit(label, before, text) for label, before, text in texts if text != before.text)
    return Work(tuple(change for change in changes if change.count), edits)


def on_start(
    seen: FolderSeen, pins: Mapping[str, _Pins], entries: Mapping[str, str], mark: str, *, make_key: bool
) -> Work:
    """Of the machine that all of this starts from.

    pins: by label of the file; entries: of the configuration, by host: which key opens it.
    """
    changes = [TrustChange(HERE, KEY, "make", int(make_key))]
    after: dict[str, bytes | None] = {}
    for label, wanted in pins.items():
        pinned = files.pin(seen.files[label].text, wanted, mark)
        after[label] = pinned.text
        changes.append(TrustChange(HERE, label, "add", pinned.added))
        changes.append(TrustChange(HERE, label, "replace", pinned.replaced))
    after["config"], count = _configured(seen, entries, mark)
    changes.append(TrustChange(HERE, "config", "add", count))
    return replace(_work(seen, changes, after), make_key=make_key)


def undo(place: str, seen: FolderSeen, mark: str) -> Work:
    """All that carries the mark; the key pair stays while another trust is left that needs it."""
    changes, after, left = [], {}, set()
    for label, file in seen.files.items():
        without = files.without_block if label == "config" else files.without_lines
        after[label], count = without(file.text, mark)
        left |= files.marks(after[label])
        changes.append(TrustChange(place, label, "remove", count))
    delete = f" {PREFIX}" in seen.key and not left  # who made a key pair is said in its comment
    changes.append(TrustChange(place, KEY, "delete", int(delete)))
    return replace(_work(seen, changes, after), delete_key=delete)


def others(seen: FolderSeen, mark: str) -> set[str]:
    """Marks of other inventories."""
    found = set().union(*(files.marks(file.text) for file in seen.files.values()))
    return {other for other in found if other.removesuffix("-start") != mark.removesuffix("-start")}
