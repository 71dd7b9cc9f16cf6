"""What brings a copy of a job's folder up to date, by what the host reported, and the tar that does it."""

from __future__ import annotations

import errno
import os
import stat
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from oarsman.engines.hosts.ssh.code.tree import Kind, Tree, TreeEntry, file_entry, unreadable

_KINDS = {stat.S_IFREG: Kind.FILE, stat.S_IFDIR: Kind.FOLDER, stat.S_IFLNK: Kind.LINK}


@dataclass(frozen=True, slots=True)
class TreeChanges:
    sent: tuple[TreeEntry, ...] = ()
    in_the_way: tuple[TreeEntry, ...] = ()  # files on the host where the tree has a folder
    former_files: tuple[TreeEntry, ...] = ()  # brought once, and no longer in the tree
    former_folders: tuple[TreeEntry, ...] = ()  # the deepest first; they stay if jobs left something in them
    obstacles: tuple[TreeEntry, ...] = ()  # folders on the host where the tree has a file; they must go

    @property
    def nothing(self) -> bool:
        return not (self.sent or self.former_files or self.former_folders)


def gone(brought: Sequence[TreeEntry], tree: Tree) -> list[TreeEntry]:
    kept = {entry.path for entry in tree.entries}
    return [entry for entry in brought if entry.path not in kept]


def changes(tree: Tree, there: Mapping[str, TreeEntry], former: Sequence[TreeEntry]) -> TreeChanges:
    """What is seen on the host through a link is not in the copy: only what lies in real folders counts."""
    real: dict[str, TreeEntry] = {}
    for path in sorted(there, key=_depth):
        above = os.path.dirname(path)
        if not above or (above in real and real[above].is_folder):
            real[path] = there[path]
    found = [(entry, real.get(entry.path)) for entry in tree.entries]
    lost = [(entry, real[entry.path]) for entry in former if entry.path in real]
    folders = [entry for entry, other in lost if entry.is_folder and other.is_folder]
    return TreeChanges(
        sent=tuple(entry for entry, other in found if other is None or _differs(entry, other)),
        in_the_way=tuple(entry for entry, other in found if other and entry.is_folder and not other.is_folder),
        obstacles=tuple(entry for entry, other in found if other and other.is_folder and not entry.is_folder),
        former_files=tuple(entry for entry, other in lost if not (entry.is_folder or other.is_folder)),
        former_folders=tuple(sorted(folders, key=lambda entry: _depth(entry.path), reverse=True)),
    )


def _differs(entry: TreeEntry, other: TreeEntry) -> bool:
    if entry.kind is not other.kind:
        return True
    if entry.kind is not Kind.FILE:
        return entry.target != other.target
    return entry.young or (entry.size, entry.mtime, entry.executable) != (other.size, other.mtime, other.executable)


def _depth(path: str) -> int:
    return path.count("/")


# -- on the wire and in the list beside the copy -------------------------------------------------------------------
def named(entries: Iterable[TreeEntry], *, folders_marked: bool) -> bytes:
    """Names of which none looks like an option; no name holds a zero byte."""
    ends = {True: b"/\0", False: b"\0"}
    return b"".join(b"./" + os.fsencode(entry.path) + ends[folders_marked and entry.is_folder] for entry in entries)


def read_names(text: bytes) -> list[TreeEntry]:
    """A list that named() made, with folders marked. Anything else in it is not ours to touch."""
    return [
        TreeEntry(os.fsdecode(name[2:].rstrip(b"/")), Kind.FOLDER if name.endswith(b"/") else Kind.FILE)
        for name in text.split(b"\0")
        if name.startswith(b"./") and b".." not in name.split(b"/") and name.rstrip(b"/") != b"."
    ]


def read_answer(text: bytes) -> dict[str, TreeEntry]:
    """Of copy.sh's look: what stat said, then pairs of a link's name and target, then an empty name; and again."""
    there: dict[str, TreeEntry] = {}
    fields = iter(text.removesuffix(b"end\0").split(b"\0")[:-1])
    for said in fields:
        there |= {entry.path: entry for record in said.split(b"//\n")[:-1] if (entry := _read_stat(record))}
        while name := next(fields, b""):
            target = next(fields, b"").removesuffix(b"\n")
            path = os.fsdecode(name[2:])
            if path in there:
                there[path] = TreeEntry(path, Kind.LINK, target=os.fsdecode(target))
    return there


def _read_stat(record: bytes) -> TreeEntry | None:
    mode, size, mtime, name = record.split(b" ", 3)
    path = os.fsdecode(name[2:])
    bits = int(mode, 16)
    kind = _KINDS.get(stat.S_IFMT(bits), Kind.OTHER)
    if kind is Kind.FILE:
        return TreeEntry(path, kind, int(size), int(mtime), bool(bits & stat.S_IXUSR))
    return TreeEntry(path, kind) if path else None


PIECE = 256 << 10  # bytes
_TRIES = 3  # for a file that changes while it is read
_TYPES = {Kind.FILE: tarfile.REGTYPE, Kind.FOLDER: tarfile.DIRTYPE, Kind.LINK: tarfile.SYMTYPE}


def archive(tree: Tree, changes: TreeChanges, brought: Iterable[TreeEntry]) -> Iterator[bytes]:
    """Lists for copy.sh, the tree's part, and last the list of what is there then: with it the archive is whole."""
    gathered = bytearray()
    for part in _parts(tree, changes, brought):
        gathered += part
        if len(gathered) >= PIECE:
            yield bytes(gathered)
            gathered.clear()
    yield bytes(gathered.ljust(-len(gathered) % tarfile.RECORDSIZE + len(gathered), b"\0"))


def _parts(tree: Tree, changes: TreeChanges, brought: Iterable[TreeEntry]) -> Iterator[bytes]:
    both = {entry.path: entry for entry in (*brought, *tree.entries)}
    yield from _list("before", named(both.values(), folders_marked=True))  # in case that it ends half-way
    yield from _list("files", named((*changes.in_the_way, *changes.former_files), folders_marked=False))
    yield from _list("folders", named(changes.former_folders, folders_marked=False))
    yield from _list("obstacles", named(changes.obstacles, folders_marked=False))
    for entry in changes.sent:
        if entry.kind is Kind.FILE:
            yield from _file(tree.folder, entry)
        else:
            yield _header(entry)
    yield from _list("after", named(tree.entries, folders_marked=True))
    yield bytes(2 * tarfile.BLOCKSIZE)


def _list(name: str, text: bytes) -> Iterator[bytes]:
    yield _header(TreeEntry(name, Kind.FILE, len(text)), below="")
    yield text
    yield _filling(len(text))


def _file(folder: Path, entry: TreeEntry) -> Iterator[bytes]:
    """As it is now. One that changes while it is read is sent again: of two of the same name the later one stays."""
    for _ in range(_TRIES):
        try:
            file = open(folder / entry.path, "rb", buffering=0, opener=_open)  # noqa: SIM115 - closed below
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR):  # the next copy will know
                return
            raise unreadable(error) from error
        with file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                return
            yield _header(file_entry(entry.path, before))
            left = before.st_size
            while left and (data := file.read(min(left, PIECE))):
                left -= len(data)
                yield data
            while left:
                yield bytes(min(left, PIECE))
                left -= min(left, PIECE)
            yield _filling(before.st_size)
            after = os.fstat(file.fileno())
        if (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns):
            return


def _open(path: str, flags: int) -> int:
    """What became a link or a pipe since it was seen is neither followed nor waited for."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _header(entry: TreeEntry, below: str = "tree/") -> bytes:
    """For the user alone: it may be private here. A young file is sent as older, so that the next copy looks again."""
    info = tarfile.TarInfo(below + entry.path)
    info.type = _TYPES[entry.kind]
    info.size, info.linkname = entry.size, entry.target
    info.mtime = entry.mtime - entry.young
    info.mode = 0o700 if entry.executable or entry.kind is not Kind.FILE else 0o600
    return info.tobuf(tarfile.GNU_FORMAT, sys.getfilesystemencoding(), "surrogateescape")


def _filling(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
