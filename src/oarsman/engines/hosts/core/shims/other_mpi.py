"""Whose MPI library a rank has loaded, where it is not that of the launcher which started the rank.

What was seen to become of it: ranks of MPICH or Intel MPI under Open MPI, and those of Open MPI under either, never
find each other: each is alone, or fails in MPI_Init. MPICH and Intel MPI get along, and so do all of Open MPI 4. Of
Open MPI 4 and 5 some pairs work, some fail in MPI_Init, and some wait for ever as soon as ranks of two hosts talk.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_OPEN_MPI, _MPICH, _INTEL = "Open MPI", "MPICH", "Intel MPI"
_FOUR, _FIVE = f"{_OPEN_MPI} 4", f"{_OPEN_MPI} 5"
# What a process maps, or a file asks for or is called by the linker. Both generations have the same libmpi.so.40.
_MARKS = (
    (_FOUR, b"libopen-rte.so"),
    (_FIVE, b"libopen-pal.so.8"),
    (_OPEN_MPI, b"libmpi.so.40"),
    (_MPICH, b"libmpi.so.12"),
    (_MPICH, b"libmpich.so.12"),
)
_LARGEST = 16 << 20


def contents(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read(_LARGEST)
    except OSError:
        return b""


def launched_by(environment: Mapping[str, str]) -> str:
    """Which launcher started this process, as it says itself; empty: none that we know."""
    if "OMPI_COMM_WORLD_RANK" in environment:
        if "PRTE_LAUNCHED" in environment:
            return _FIVE
        return _FOUR if "OMPI_MCA_ess_base_jobid" in environment else _OPEN_MPI
    if "PMI_RANK" in environment:
        return _INTEL if any(name.startswith("HYDRA_BSTRAP_") for name in environment) else _MPICH
    return ""


def library_in(maps: bytes) -> str:
    for line in maps.splitlines():
        if line.rpartition(b"/")[2].startswith((b"libmpi.so", b"libmpich.so")):
            return line[line.index(b"/") :].decode(errors="replace")
    return ""


def families_in(found: bytes, library: str) -> set[str]:
    """Of what a process has mapped, or of a program. Where the name of the library does not tell, it says so itself."""
    names = {family for family, mark in _MARKS if mark in found}
    if library and not names:
        said = contents(library)
        names = {family for family, mark in _MARKS if mark in said}
    return names


def conclusive(names: set[str]) -> bool:
    """A process may be about to load the rest."""
    return bool(names - {_OPEN_MPI})


def other(names: set[str], by: str) -> str:
    """The family, if it is surely another one than the launcher's; else nothing."""
    if not by or not names:
        return ""
    of_open_mpi = {name for name in names if name.startswith(_OPEN_MPI)}
    if not by.startswith(_OPEN_MPI):
        return max(of_open_mpi, key=len) if of_open_mpi == names else ""
    if not of_open_mpi:
        return min(names)
    generations = of_open_mpi - {_OPEN_MPI}
    return min(generations) if by != _OPEN_MPI and generations and by not in generations else ""


def exactly(family: str, said: bytes) -> str:
    """Intel's library passes for MPICH's. said: what is in it"""
    return _INTEL if family == _MPICH and b"Intel(R)" in said else family


def own_launcher(library: str, family: str, but: str) -> str:
    """The launcher of the installation that a library belongs to, if there is one, and it is not `but`."""
    kind = "openmpi" if family.startswith(_OPEN_MPI) else "mpich"
    prefix = os.path.dirname(os.path.dirname(library))
    while len(prefix) > 1:
        # Whose mpirun the one in a folder of many programs is, its name alone does not tell.
        names = (f"mpirun.{kind}",) if prefix in ("/usr", "/usr/local") else (f"mpirun.{kind}", "mpirun", "mpiexec")
        for path in (f"{prefix}/bin/{name}" for name in names):
            if os.access(path, os.X_OK) and os.path.realpath(path) != os.path.realpath(but):
                return path
        prefix = os.path.dirname(prefix)
    return ""
