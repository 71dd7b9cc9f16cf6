"""What of a job's folder is copied to hosts that do not share it.

A file `.oarsmanignore` at its top says what is left out, in the way of git: one pattern per line, the last one that
matches decides, and what lies in a folder that is left out cannot be taken back.

    # text        a comment; empty lines are passed over
    name          files and folders of that name, at any depth
    *.ckpt        `*` stands for any characters but `/`, `?` for one of them, `[a-c]` for one of these, `[!a-c]` for
                  one of the others
    name/         only folders
    /name         only at the top; the same goes for every pattern with a `/` in its middle
    a/**/b        `**` stands for any number of folders, also none; `a/**` for all that is in a
    !name         is taken back, also from those left out by default, well-known secrets among them
    \\#, \\*        the character itself

The tests ask git itself. The library for this, pathspec, differs from git: asked about a folder, it cannot tell a
pattern for the folder from one for what is in it, so that `a/**` and `!a/b` leave out all of `a`.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path

from oarsman import names
from oarsman.errors import UserError
from oarsman.job.pattern import compiled
from oarsman.text.sentence import Text

IGNORE_FILE = ".oarsmanignore"
ALWAYS_IGNORED = (".git", "__pycache__", ".venv", "venv", "node_modules", ".mypy_cache", ".pytest_cache", "*.pyc")
# What the lists of GitHub, gitleaks and their like have in common. A line of the file such as `!.env` takes one along.
_SECRETS = """
.ssh .gnupg .aws .azure .kube **/.config/gcloud **/.docker/config.json .netrc _netrc .pgpass .pypirc .npmrc .htpasswd
.git-credentials .env .env.* !.env.example !.env.sample !.env.template *.pem *.key *.p12 *.pfx *.ppk *.jks *.keystore
*.kdbx id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk *kubeconfig kubeconfig-* *kubeconfig*.y*ml
*kubeconfig*.json *kubeconfig*.conf"""
LIMIT_BYTES = 256 << 20
LIMIT_FILES = 20_000
_MEASURED = 5  # times the limit: how far a folder that is too large is looked through to name its largest parts
_YOUNG = 2  # seconds: clocks of file systems are whole seconds to us, and not quite that of the machine


class Kind(Enum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"  # only ever found on a host


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A path below the folder; what cannot be decoded in it is kept as Python keeps it for the file system."""

    path: str
    kind: Kind
    size: int = 0
    mtime: int = 0  # whole seconds, which is what every host can tell
    executable: bool = False
    target: str = ""  # of a link
    young: bool = False  # changed just now, so that one more change may look the same

    @property
    def is_folder(self) -> bool:
        return self.kind is Kind.FOLDER


@dataclass(frozen=True, slots=True)
class Tree:
    folder: Path
    entries: tuple[TreeEntry, ...]  # a folder before what is in it
    left_out: tuple[str, ...] = ()  # secrets


def plan_copy(folder: Path, *, secrets: Iterable[str] = ()) -> Tree:
    """All that would be copied; never the files and folders `secrets`. Raises UserError if that is too much, or cannot
    be read."""
    size = _Size(folder)
    entries = []
    out = _LeftOut(_patterns(folder), frozenset(filter(None, map(_identity, secrets))))
    try:
        for entry in _walk(str(folder), "", out):
            size.add(entry)
            if not size.too_large:
                entries.append(entry)
            elif size.enough:
                break
    except OSError as error:
        raise unreadable(error) from error
    if size.too_large:
        raise size.error()
    return Tree(folder, tuple(entries), tuple(out.secrets))


# -- looking -----------------------------------------------------------------------------------------------------
def _walk(top: str, below: str, out: _LeftOut) -> Iterator[TreeEntry]:
    with os.scandir(os.path.join(top, below) if below else top) as found:
        children = sorted(found, key=lambda child: child.name)
    for child in children:
        path = f"{below}/{child.name}" if below else child.name
        is_folder = child.is_dir(follow_symlinks=False)
        try:
            if out.has(path, is_folder, child):
                continue
            entry = _entry(path, child)
        except FileNotFoundError:  # removed since
            continue
        if entry is not None:
            yield entry
        if is_folder:
            yield from _walk(top, path, out)


def _entry(path: str, child: os.DirEntry[str]) -> TreeEntry | None:
    """Links stay links, wherever they lead; sockets, pipes and devices are no code."""
    found = child.stat(follow_symlinks=False)
    if stat.S_ISDIR(found.st_mode):
        return TreeEntry(path, Kind.FOLDER)
    if stat.S_ISLNK(found.st_mode):
        return TreeEntry(path, Kind.LINK, target=os.readlink(child.path))
    if not stat.S_ISREG(found.st_mode):
        return None
    if not os.access(child.path, os.R_OK, effective_ids=True):
        raise PermissionError(13, "Permission denied", child.path)
    return file_entry(path, found)


def file_entry(path: str, found: os.stat_result) -> TreeEntry:
    mtime = int(found.st_mtime // 1)
    executable = bool(found.st_mode & stat.S_IXUSR)
    return TreeEntry(path, Kind.FILE, found.st_size, mtime, executable, young=abs(time.time() - mtime) < _YOUNG)


def unreadable(error: OSError) -> UserError:
    message = Text("the job's folder cannot be copied: {file}: {why}", file=error.filename, why=error.strerror)
    hint = Text("make it readable, or put it into {file}", file=IGNORE_FILE)
    return UserError(message, hint=hint if isinstance(error, PermissionError) else None)


# -- how much ----------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _Size:
    folder: Path
    bytes: int = 0
    files: int = 0
    bytes_of: Counter[str] = field(default_factory=Counter)  # by what lies at the top
    files_of: Counter[str] = field(default_factory=Counter)

    def add(self, entry: TreeEntry) -> None:
        part, inside, _ = entry.path.partition("/")
        part += "/" if inside or entry.is_folder else ""
        self.bytes += entry.size
        self.files += 1
        self.bytes_of[part] += entry.size
        self.files_of[part] += 1

    @property
    def too_large(self) -> bool:
        return self.bytes > LIMIT_BYTES or self.files > LIMIT_FILES

    @property
    def enough(self) -> bool:
        """Nobody waits until a whole home has been looked through."""
        return self.files > _MEASURED * LIMIT_FILES

    def error(self) -> UserError:
        if self.bytes > LIMIT_BYTES:
            parts = [f"{part} ({_mebibytes(size)})" for part, size in self.bytes_of.most_common(3)]
            much = Text("{n} or more", n=_mebibytes(self.bytes)) if self.enough else _mebibytes(self.bytes)
            most = _mebibytes(LIMIT_BYTES)
        else:
            parts = [f"{part} ({count:,})" for part, count in self.files_of.most_common(3)]
            template = Text("{n} files and folders or more") if self.enough else Text("{n} files and folders")
            much, most = Text(template, n=f"{self.files:,}"), f"{LIMIT_FILES:,}"
        return UserError(
            Text(
                "the folder {folder} is too large to be copied to the hosts: {what}; at most {most} are copied. "
                "Largest: {which}",
                folder=self.folder,
                what=much,
                most=most,
                which=", ".join(parts),
            ),
            hint=Text(
                "put patterns for what the job does not need into {file}; or say --code none, or "
                "{name}: none in the manifest, and nothing is copied; or, if the hosts have the folder "
                "too, declare it under 'shared' in the inventory",
                file=self.folder / IGNORE_FILE,
                name=names.ANNOTATION_CODE,
            ),
        )


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"


# -- what is left out --------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Pattern:
    expression: str
    only_folders: bool
    takes_back: bool
    ours: bool  # not out of somebody's file

    @cached_property
    def fits(self) -> Callable[[str], object]:
        """Whether it matches a whole path. Ours are known to be harmless, and Python's engine answers sooner."""
        if self.ours:
            return re.compile(self.expression, re.DOTALL).fullmatch
        return compiled(self.expression, field=IGNORE_FILE, longest=_LONGEST_EXPRESSION).fits


@dataclass(slots=True)
class _LeftOut:
    patterns: Sequence[_Pattern]
    given: frozenset[tuple[int, int]]  # by what they are: a secret may have several names
    secrets: list[str] = field(default_factory=list)

    def has(self, path: str, is_folder: bool, child: os.DirEntry[str]) -> bool:
        found = child.stat(follow_symlinks=False)
        decides = deciding(path, is_folder, self.patterns)
        ignored = decides is not None and not decides.takes_back
        if (found.st_dev, found.st_ino) in self.given or (ignored and decides in _SECRET_PATTERNS):
            self.secrets.append(path)
            return True
        return ignored


def _identity(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _patterns(folder: Path) -> list[_Pattern]:
    try:
        text = os.fsdecode((folder / IGNORE_FILE).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        text = ""
    return [*read_patterns(ALWAYS_IGNORED, ours=True), *_SECRET_PATTERNS, *read_patterns(text.split("\n"))]


def read_patterns(lines: Iterable[str], *, ours: bool = False) -> list[_Pattern]:
    return [pattern for line in lines if (pattern := _pattern(line.removesuffix("\r"), ours)) is not None]


def _pattern(line: str, ours: bool) -> _Pattern | None:
    text = re.sub(r"(?<!\\)((?:\\\\)*) +$", r"\1", line)
    if not text or text.startswith("#"):
        return None
    takes_back = text.startswith("!")
    text = text.removeprefix("!")
    only_folders = text.endswith("/")
    text = text.removesuffix("/")
    if not text:
        return None
    anywhere = "" if "/" in text else "(?:.*/)?"
    expression = anywhere + "".join(map(_translated, _PARTS.finditer(text.removeprefix("/"))))
    return _Pattern(expression, only_folders, takes_back, ours)


_PARTS = re.compile(
    r"(?P<above>(?:^|(?<=/))\*\*+/)"
    r"|(?P<inside>(?:^|(?<=/))\*\*+$)"
    r"|\[(?P<others>[!^]?+)(?P<members>(?:\[:[a-z]+:\]|\\.|[^\\])(?:\[:[a-z]+:\]|\\.|[^]\\])*)\]"
    r"|\*+|\?|\\.|.",
    re.DOTALL,
)
_MEMBERS = re.compile(r"\[:(?P<kind>[a-z]+):\]|(?P<first>\\.|[^\\])-(?P<last>\\.|[^\\])|(?P<one>\\.|[^\\])", re.DOTALL)
_LONGEST_EXPRESSION = 32_768  # a path has 4,096 bytes at most, of which each takes a few letters here
_KINDS = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x01-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-.0-~",
    "lower": "a-z",
    "print": " -.0-~",
    "punct": r"!-.:-@\[-`{-~",
    "space": r" \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


def _translated(part: re.Match[str]) -> str:
    if part["above"]:
        return "(?:.*/)?"
    if part["inside"]:
        return ".+"
    if part["members"]:
        members = "".join(map(_member, _MEMBERS.finditer(part["members"])))
        # None is ever a "/". \x00 is in no path, and keeps it from being empty.
        return rf"[^/{members}]" if part["others"] else rf"[\x00{members}]"
    if part[0].startswith("*"):
        return "[^/]*"
    if part[0] == "?":
        return "[^/]"
    if part[0] in ("[", "\\"):  # not closed, or nothing after it: git lets such a pattern match nothing
        return r"[^\x00-\x{10FFFF}]"
    return _literal(part[0][-1])


def _member(member: re.Match[str]) -> str:
    if member["kind"]:
        return _KINDS.get(member["kind"], "")
    if member["one"]:
        return _range(member["one"][-1], member["one"][-1])
    return _range(member["first"][-1], member["last"][-1])


def _range(first: str, last: str) -> str:
    """From one letter to another, without the "/"."""
    if first <= "/" <= last:
        return _range(first, ".") + _range("0", last)
    return f"{_literal(first)}-{_literal(last)}" if first <= last else ""


def _literal(letter: str) -> str:
    return re.escape(letter) if letter.isascii() else letter


def deciding(path: str, is_folder: bool, patterns: Sequence[_Pattern]) -> _Pattern | None:
    """About the path itself; whoever walks does not enter folders that are left out."""
    matching = (one for one in reversed(patterns) if is_folder or not one.only_folders)
    return next((one for one in matching if one.fits(path)), None)


_SECRET_PATTERNS = read_patterns(_SECRETS.split(), ours=True)
