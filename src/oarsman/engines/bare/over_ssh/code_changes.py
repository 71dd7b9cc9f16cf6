"""What must be done so that a copy of a job's folder is as the folder is now, by what the host said of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from oarsman.engines.bare.over_ssh.code_tree import Entry, Kind, Tree

_KINDS = {stat.S_IFREG: Kind.FILE, stat.S_IFDIR: Kind.FOLDER, stat.S_IFLNK: Kind.LINK}


@dataclass(frozen=True, slots=True)
class Changes:
    sent: tuple[Entry, ...] = ()
    in_the_way: tuple[Entry, ...] = ()  # files on the host where the tree has a folder
    former_files: tuple[Entry, ...] = ()  # brought once, and no longer in the tree
    former_folders: tuple[Entry, ...] = ()  # the deepest first; they stay if jobs left something in them
    obstacles: tuple[Entry, ...] = ()  # folders on the host where the tree has a file; they must go

    @property
    def nothing(self) -> bool:
        return not (self.sent or self.former_files or self.former_folders)

    @property
    def removed(self) -> int:
        return len(self.former_files)


def gone(brought: Sequence[Entry], tree: Tree) -> list[Entry]:
    """What an earlier copy brought, and the tree no longer has."""
    kept = {entry.path for entry in tree.entries}
    return [entry for entry in brought if entry.path not in kept]


def changes(tree: Tree, there: Mapping[str, Entry], former: Sequence[Entry]) -> Changes:
    """What is seen on the host through a link is not in the copy: only what lies in real folders counts."""
    real = _in_real_folders(there)
    found = [(entry, real.get(entry.path)) for entry in tree.entries]
    lost = [(entry, real[entry.path]) for entry in former if entry.path in real]
    return Changes(
        sent=tuple(entry for entry, other in found if other is None or _differs(entry, other)),
        in_the_way=tuple(entry for entry, other in found if other and entry.is_folder and not other.is_folder),
        obstacles=tuple(entry for entry, other in found if other and other.is_folder and not entry.is_folder),
        former_files=tuple(entry for entry, other in lost if not (entry.is_folder or other.is_folder)),
        former_folders=_deepest_first(entry for entry, other in lost if entry.is_folder and other.is_folder),
    )


def _differs(entry: Entry, other: Entry) -> bool:
    if entry.kind is not other.kind:
        return True
    if entry.kind is Kind.LINK:
        return entry.target != other.target
    seen = (entry.size, entry.mtime, entry.executable) != (other.size, other.mtime, other.executable)
    return entry.kind is Kind.FILE and (entry.young or seen)


def _in_real_folders(there: Mapping[str, Entry]) -> dict[str, Entry]:
    real: dict[str, Entry] = {}
    for path in sorted(there, key=lambda path: path.count("/")):
        above = os.path.dirname(path)
        if not above or (above in real and real[above].is_folder):
            real[path] = there[path]
    return real


def _deepest_first(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.path.count("/"), reverse=True))


# -- on the wire and in the list beside the copy -------------------------------------------------------------------
def named(entries: Iterable[Entry], *, folders_marked: bool) -> bytes:
    """Names of which none looks like an option; no name holds a zero byte."""
    ends = {True: b"/\0", False: b"\0"}
    return b"".join(b"./" + os.fsencode(entry.path) + ends[folders_marked and entry.is_folder] for entry in entries)


def read_names(text: bytes) -> list[Entry]:
    """A list that named() made, with folders marked. Anything else in it is not ours to touch."""
    return [
        Entry(os.fsdecode(name[2:].rstrip(b"/")), Kind.FOLDER if name.endswith(b"/") else Kind.FILE)
        for name in text.split(b"\0")
        if name.startswith(b"./") and b".." not in name.split(b"/") and name.rstrip(b"/") != b"."
    ]


def read_answer(text: bytes) -> dict[str, Entry]:
    """Of copying.sh's look: what stat said, then pairs of a link's name and target, then an empty name; and again."""
    there: dict[str, Entry] = {}
    fields = iter(text.removesuffix(b"end\0").split(b"\0")[:-1])
    for said in fields:
        there |= {entry.path: entry for record in said.split(b"//\n")[:-1] if (entry := _read_stat(record))}
        while name := next(fields, b""):
            target = next(fields, b"").removesuffix(b"\n")
            path = os.fsdecode(name[2:])
            if path in there:
                there[path] = Entry(path, Kind.LINK, target=os.fsdecode(target))
    return there


def _read_stat(record: bytes) -> Entry | None:
    mode, size, mtime, name = record.split(b" ", 3)
    path = os.fsdecode(name[2:])
    bits = int(mode, 16)
    kind = _KINDS.get(stat.S_IFMT(bits), Kind.OTHER)
    if kind is Kind.FILE:
        return Entry(path, kind, int(size), int(mtime), bool(bits & stat.S_IXUSR))
    return Entry(path, kind) if path else None
