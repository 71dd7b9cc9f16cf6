"""A Python that ends with an error leaves at once if it would wait for other ranks; nothing else about it differs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from for_every import for_every

import oarsman.engines

FOLDER = Path(oarsman.engines.__file__).parent / "python"
# In place of mpi4py, which calls MPI_Finalize after all that a program may have registered for its end.
MPI = """
import os, sys, threading
class MPI:
    initialized, finalized = True, False
    Is_initialized, Is_finalized = (lambda: MPI.initialized), (lambda: MPI.finalized)
class Finalize:
    def __del__(self, write=os.write): write(1, b"finalize ")
sys.modules["mpi4py.MPI"] = MPI
at_the_end = Finalize()
"""


def run(program: str, *options: str, more: str = "", folder: Path = FOLDER, **variables: str) -> tuple[int, str, str]:
    path = f"{folder}:{more}" if more else str(folder)
    done = subprocess.run(
        [sys.executable, *options, "-c", MPI + program],
        env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr.strip()


ENDS = {
    "sys.exit(17)": 17,
    "sys.exit('no data')": 1,
    "sys.exit((1, 2))": 1,
    "sys.exit(True)": 1,
    "exit(4)": 4,
    "quit('no')": 1,
    "raise ValueError('odd')": 1,
    "def deep(): raise KeyError\ndeep()": 1,
    "import argparse; argparse.ArgumentParser().parse_args(['--odd'])": 2,
    "try: sys.exit(3)\nfinally: print('tidy', end=' ')": 3,
    "try: sys.exit(3)\nexcept SystemExit as error: sys.exit(error.code + 1)": 4,
    "sys.excepthook = lambda *error: None\nraise ValueError": 1,
    "import atexit; atexit.register(print, 'late', end=' '); sys.exit(17)": 17,
}


@for_every(ENDS)
def test_a_program_that_fails_leaves_with_its_code_and_does_not_finalize(program: str) -> None:
    code, said, _ = run(f"print('said', end=' ')\n{program}")
    assert code == ENDS[program], said
    assert said.startswith("said "), "what was written is not lost"
    assert "finalize" not in said
    assert ("late" in said) is ("late" in program)
    assert ("tidy" in said) is ("tidy" in program)


def test_where_only_the_launcher_tells_how_ranks_ended_it_is_told_by_mpi_abort() -> None:
    told = "os.write(1, b'abort %d' % code); os._exit(90)"
    abort = f"class World:\n    def Abort(self, code): {told}\nMPI.COMM_WORLD = World()"
    code, said, _ = run(f"{abort}\nsys.exit(17)", OARSMAN_ABORT="1")
    assert (code, said) == (90, "abort 17")
    assert run(f"{abort}\nsys.exit(0)", OARSMAN_ABORT="1")[:2] == (0, "finalize ")


WELL = [
    "pass",
    "sys.exit()",
    "sys.exit(0)",
    "sys.exit(None)",
    "sys.exit(False)",
    "sys.exit(256)",
    "exit()",
    "try: sys.exit(5)\nexcept SystemExit as error: assert (error.code, repr(error)) == (5, 'SystemExit(5)')",
    "try: exit(5)\nexcept SystemExit: pass",
    "import pickle\ntry: sys.exit(5)\nexcept SystemExit as error: assert pickle.loads(pickle.dumps(error)).code == 5",
    "try: 1 / 0\nexcept Exception: sys.excepthook(*sys.exc_info())",
    "t = threading.Thread(target=sys.exit, args=(6,)); t.start(); t.join()",
    "t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()",
    "import subprocess; subprocess.run([sys.executable, '-c', 'import sys; sys.exit(3)'])",
]


@for_every(WELL)
def test_a_program_that_ends_well_finalizes(program: str) -> None:
    code, said, error = run(program)
    assert (code, said) == (0, "finalize "), error


OUTSIDE = ["MPI.initialized = False", "MPI.finalized = True", "del sys.modules['mpi4py.MPI']"]


@for_every(OUTSIDE, ["sys.exit(17)", "raise ValueError"])
def test_a_program_that_waits_for_nobody_ends_as_ever(outside: str, fails: str) -> None:
    code, said, _ = run(f"{outside}\n{fails}")
    assert (code, said) == (17 if "17" in fails else 1, "finalize ")


def test_a_child_that_fails_does_not_end_in_the_name_of_its_parent() -> None:
    program = (
        "pid = os.fork()\nif not pid: sys.exit(7)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), end=' ')"
    )
    code, said, _ = run(program)
    assert (code, said) == (0, "finalize 7 finalize ")


@pytest.mark.parametrize("fails", ["sys.exit(17)", "sys.exit('no data')", "raise ValueError('odd')"])
def test_what_is_written_about_it_is_what_python_itself_writes(fails: str, tmp_path: Path) -> None:
    assert run(fails)[2] == run(fails, folder=tmp_path)[2]


def test_the_users_own_sitecustomize_is_read_too_and_ours_is_no_folder_of_modules(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.own = __file__\n")
    code, said, error = run(f"print(own, {str(FOLDER)!r} in sys.path, end=' ')", more=str(tmp_path))
    assert (code, said, error) == (0, f"{tmp_path}/sitecustomize.py False finalize ", "")
    assert run("sys.exit(17)", more=str(tmp_path))[:2] == (17, "")


def test_without_site_nothing_of_this_happens() -> None:
    assert run("sys.exit(17)", "-S")[:2] == (17, "finalize ")
