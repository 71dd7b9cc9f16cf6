"""A program of one MPI started by the launcher of another: told while it runs, and never called a success."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from oarsman import names
from oarsman.engines.hosts.core.shims import other_mpi
from oarsman.job.state import Status

from .machine import EVERY_MPI, MPIS, Machine, mpi_folder, mpijob

WAITS = "from mpi4py import MPI; import time; time.sleep(1000)"
SPEAKS = (
    "import warnings; warnings.simplefilter('ignore')\nfrom mpi4py import MPI; print(MPI.COMM_WORLD.size, flush=True)"
)
LINGERS = f"{SPEAKS}; import time, pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(0.02)"


def program(mpi: str, text: str) -> list[str]:
    """Of that MPI's own environment, whatever libraries the launcher would have it load."""
    return ["env", "-u", "LD_LIBRARY_PATH", str(mpi_folder(mpi) / "bin/python3"), "-c", text]


def warning(status: Status) -> str:
    found = status.condition(names.RUNNING)
    return found.message if found is not None and found.reason == names.REASON_OTHER_MPI else ""


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("launcher", "mpi", "said", "outcome"),
    [
        ("openmpi4", "openmpi5", ("Open MPI 5", "Open MPI 4"), "such ranks may wait for each other for ever"),
        ("mpich", "openmpi5", ("Open MPI 5", "MPICH"), "its ranks cannot reach each other"),
        ("openmpi5", "intel", ("Intel MPI", "Open MPI 5"), "its ranks cannot reach each other"),
    ],
)
def test_it_is_told_while_the_job_runs_although_it_writes_nothing(
    launcher: str, mpi: str, said: tuple[str, str], outcome: str, machine_with: Callable[..., Machine]
) -> None:
    machine = machine_with(launcher)
    key = machine.submit(mpijob("mixed", ["mpirun", "-n", "2", *program(mpi, WAITS)]))
    status = machine.until(key, lambda status: bool(warning(status))).status
    assert status.is_true(names.RUNNING)
    theirs, ours = mpi_folder(mpi).resolve(), MPIS / launcher
    library = rf"{theirs}/lib/libmpi\.so\S* of {said[0]}, but {ours}/bin/mpirun of {said[1]} started it: {outcome}"
    own = rf"start it with its own launcher: --mpi {theirs}/bin/mpirun"
    assert re.fullmatch(rf"rank [01] on mixed-worker-[01] has loaded {library}; {own}", warning(status))
    assert f"Warning  RankHasOtherMPI  {warning(status)}" in machine.ok("events", "mixed")
    machine.ok("stop", "mixed")
    machine.until_finished(key)


@pytest.mark.mpi
def test_the_command_says_it_and_the_deadlines_cause_says_it_again(machine_with: Callable[..., Machine]) -> None:
    machine = machine_with("openmpi4")
    done = machine.run("run", "-n", "2", "--timeout", "12s", "--oversubscribe", *["--", *program("openmpi5", WAITS)])
    told = [line for line in done.stderr.splitlines() if "but" in line and "of Open MPI 4 started it: such" in line]
    assert len(told) == 2, done.stderr
    assert told[1].startswith("  hint: rank ")


@pytest.mark.mpi
@pytest.mark.parametrize(("launcher", "mpi"), [("openmpi5", "intel"), ("openmpi4", "intel"), ("intel", "openmpi5")])
def test_ranks_that_each_ran_alone_are_no_success(
    launcher: str, mpi: str, machine_with: Callable[..., Machine]
) -> None:
    machine = machine_with(launcher)
    (machine.folder / "go").touch()
    key = machine.submit(mpijob("alone", ["mpirun", "-n", "2", *program(mpi, LINGERS)]))
    cause = machine.until_finished(key).status.cause
    assert set(machine.rank_lines(key)) >= {"1"}
    assert cause is not None
    assert "its MPI library is that of " in cause.summary
    assert "each rank ran alone" in cause.summary
    assert str(cause.hint).endswith(f"start it with its own launcher: --mpi {mpi_folder(mpi).resolve()}/bin/mpirun")


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("launcher", "mpi"),
    [*((mpi, mpi) for mpi in EVERY_MPI), ("mpich", "intel"), ("intel", "mpich"), ("debian", "openmpi4")],
)
def test_nothing_is_said_of_those_that_get_along(launcher: str, mpi: str, machine_with: Callable[..., Machine]) -> None:
    machine = machine_with(launcher)
    key = machine.submit(mpijob("fine", ["mpirun", "-n", "2", *program(mpi, LINGERS)]))
    machine.until_ranks(key, 2)
    (machine.folder / "go").touch()
    assert machine.until_finished(key).status.is_true(names.SUCCEEDED), machine.log_of(key)
    assert machine.rank_lines(key) == ["2", "2"]
    assert [rank.other_mpi for rank in machine.seen(key).ranks.values()] == [None, None]


MAPS = b"""\
7f00 r-xp 0 08:01 1 /usr/lib/libc.so.6
7f01 r-xp 0 08:01 2 /opt/there/lib/libmpi_usempif08.so.40
7f02 r-xp 0 08:01 3 /opt/there/lib/%s
7f03 r-xp 0 08:01 4 /opt/there/lib/%s
"""
LOADED = [
    ((b"libmpi.so.40.30.4", b"libopen-rte.so.40"), "Open MPI 4"),
    ((b"libmpi.so.40", b"libopen-pal.so.80.0.5"), "Open MPI 5"),
    ((b"libmpich.so.12.2.2", b"libhwloc.so.15"), "MPICH"),
    ((b"libmpi.so.12", b"libfabric.so.1"), "MPICH"),
]


@pytest.mark.parametrize(("files", "family"), LOADED)
def test_a_library_is_known_by_what_is_loaded_with_it(files: tuple[bytes, bytes], family: str) -> None:
    library = other_mpi.library_in(MAPS % files)
    assert library == f"/opt/there/lib/{files[0].decode()}"
    names_ = other_mpi.families_in(MAPS % files, library)
    assert other_mpi.conclusive(names_)
    for by in ("Open MPI 4", "Open MPI 5", "MPICH", "Intel MPI"):
        alike = by == family or {by, family} == {"MPICH", "Intel MPI"}
        assert other_mpi.other(names_, by) == ("" if alike else family)
    assert other_mpi.other(names_, "") == ""  # nobody knows who started it


def test_a_library_that_is_only_being_loaded_is_looked_at_again() -> None:
    """Both generations of Open MPI have the same libmpi.so.40; what tells them apart is mapped after it."""
    begun = other_mpi.families_in(MAPS % (b"libmpi.so.40", b"libc.so.6"), "")
    assert not other_mpi.conclusive(begun)
    assert [other_mpi.other(begun, by) for by in ("Open MPI 4", "Open MPI 5", "Open MPI")] == ["", "", ""]


def test_a_program_of_two_mpis_is_left_alone() -> None:
    """Some try one after the other."""
    both = {"Open MPI", "Open MPI 5", "MPICH"}
    assert [other_mpi.other(both, by) for by in ("Open MPI 5", "MPICH", "Intel MPI")] == ["", "", ""]


def test_a_library_whose_name_tells_nothing_is_asked_itself(tmp_path: Path) -> None:
    library = tmp_path / "libmpi.so"
    library.write_bytes(b"\x7fELF...libmpi.so.12\0...Intel(R) MPI Library %s\0")
    maps = f"7f00 r-xp 0 08:01 1 {library}\n".encode()
    assert other_mpi.families_in(maps, other_mpi.library_in(maps)) == {"MPICH"}
    assert other_mpi.exactly("MPICH", other_mpi.contents(str(library))) == "Intel MPI"
    assert other_mpi.exactly("MPICH", b"MPICH Version") == "MPICH"


def test_who_launched_a_rank_is_read_from_what_it_was_given() -> None:
    of_four = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_MCA_ess_base_jobid": "1"}
    assert other_mpi.launched_by(of_four) == "Open MPI 4"
    assert other_mpi.launched_by({"OMPI_COMM_WORLD_RANK": "0", "PRTE_LAUNCHED": "1"}) == "Open MPI 5"
    assert other_mpi.launched_by({"OMPI_COMM_WORLD_RANK": "0"}) == "Open MPI"
    assert other_mpi.launched_by({"PMI_RANK": "0"}) == "MPICH"
    assert other_mpi.launched_by({"PMI_RANK": "0", "HYDRA_BSTRAP_NODE_ID": "0"}) == "Intel MPI"
    assert other_mpi.launched_by({}) == ""


def test_the_launcher_of_a_library_is_the_one_of_its_installation(tmp_path: Path) -> None:
    def make(path: str) -> str:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
        return str(file)

    own, other = make("env/bin/mpirun"), make("other/bin/mpirun")
    library = str(tmp_path / "env/lib/x86_64/libmpi.so.40")
    assert other_mpi.own_launcher(library, "Open MPI 5", but=other) == own
    assert other_mpi.own_launcher(library, "Open MPI 5", but=own) == ""
    named = make("env/bin/mpirun.openmpi")
    assert other_mpi.own_launcher(library, "Open MPI 5", but=other) == named
    assert other_mpi.own_launcher(library, "MPICH", but=other) == own
    assert other_mpi.own_launcher("", "MPICH", but=other) == ""
