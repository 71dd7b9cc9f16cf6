"""The tar that brings a copy up to date, made piece by piece while it is sent."""

from __future__ import annotations

import errno
import os
import stat
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from oarsman.engines.bare.over_ssh.code_changes import Changes, named
from oarsman.engines.bare.over_ssh.code_tree import Entry, Kind, Tree, file_entry, unreadable

PIECE = 256 << 10  # bytes
_TRIES = 3  # for a file that changes while it is read
_TYPES = {Kind.FILE: tarfile.REGTYPE, Kind.FOLDER: tarfile.DIRTYPE, Kind.LINK: tarfile.SYMTYPE}


def archive(tree: Tree, changes: Changes, brought: Iterable[Entry]) -> Iterator[bytes]:
    """Lists for copying.sh, the tree's part, and last the list of what is there then: with it the archive is whole."""
    gathered = bytearray()
    for part in _parts(tree, changes, brought):
        gathered += part
        if len(gathered) >= PIECE:
            yield bytes(gathered)
            gathered.clear()
    yield bytes(gathered.ljust(-len(gathered) % tarfile.RECORDSIZE + len(gathered), b"\0"))


def _parts(tree: Tree, changes: Changes, brought: Iterable[Entry]) -> Iterator[bytes]:
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
    yield _header(Entry(name, Kind.FILE, len(text)), below="")
    yield text
    yield _filling(len(text))


def _file(folder: Path, entry: Entry) -> Iterator[bytes]:
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


def _header(entry: Entry, below: str = "tree/") -> bytes:
    """For the user alone: it may be private here. A young file is sent as older, so that the next copy looks again."""
    info = tarfile.TarInfo(below + entry.path)
    info.type = _TYPES[entry.kind]
    info.size, info.linkname = entry.size, entry.target
    info.mtime = entry.mtime - entry.young
    info.mode = 0o700 if entry.executable or entry.kind is not Kind.FILE else 0o600
    return info.tobuf(tarfile.GNU_FORMAT, sys.getfilesystemencoding(), "surrogateescape")


def _filling(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
