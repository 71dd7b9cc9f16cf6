"""Real failures of real programs under real MPIs: what their cause says, and the hint, or that there is none.

A hint needs evidence from the job itself. Where there is none, none is given: a wrong one costs more than it helps.
Failures that cannot be made here are replayed in tests/status/test_hints.py.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from for_every import for_every_row

from oarsman.backends.base import JobRecord
from oarsman.engines.hosts.core import cgroups
from oarsman.engines.hosts.core.shims import rank
from oarsman.job.observed import Observed, Phase
from oarsman.job.state import Cause
from oarsman.status import causes
from tests.builders import a_job, a_launcher, a_rank

from .machine import MPIS, Machine, mpijob, python

pytestmark = pytest.mark.mpi

PROGRAM = r"""
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef MPI
#include <mpi.h>
#endif
static int deep(int n) { volatile char room[4096]; memset((void *)room, n, sizeof room); return deep(n + 1) + room[5]; }
int main(int argc, char **argv) {
  const char *how = argv[1], *given = getenv("RANK");
  int rank = given ? atoi(given) : 0;
#ifdef MPI
  int numbers[4] = {0}, size;
  if (!strcmp(how, "uninitialized")) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!strcmp(how, "twice")) MPI_Init(&argc, &argv);
  if (!strcmp(how, "unfinalized")) return 0;
  if (!strcmp(how, "alone")) { write(1, "up\n", 3); return size == 2 ? 0 : 3; }
  if (!strcmp(how, "truncated") && rank == 0) MPI_Send(numbers, 4, MPI_INT, 1, 0, MPI_COMM_WORLD);
  if (!strcmp(how, "truncated") && rank == 1) MPI_Recv(numbers, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank != 1) MPI_Barrier(MPI_COMM_WORLD);
#endif
  if (rank != 1) sleep(1000);
  if (!strcmp(how, "segfault")) *(volatile int *)0 = 1;
  if (!strcmp(how, "divide")) { volatile int zero = 0; return 7 / zero; }
  if (!strcmp(how, "stack")) return deep(0);
  if (!strcmp(how, "assert")) assert(argc == 77);
  if (!strcmp(how, "free")) { char *room = malloc(8); free(room + 4); }
  if (!strcmp(how, "abort")) abort();
  if (!strcmp(how, "trap")) __builtin_trap();
  return atoi(how);
}
"""
SOCKET = "import socket; socket."
MPI4PY = str(MPIS / "mpich/bin/python3")
WAITS = "from mpi4py import MPI; world = MPI.COMM_WORLD\nif world.rank != 1: world.Barrier()\n"


def plain(program: str) -> list[str]:
    return ["python3", "-c", f"{WAITS}if world.rank == 1: {program}"]


class Row(NamedTuple):
    name: str
    mpi: str
    words: Sequence[str]  # what two ranks run, or a script
    cause: Sequence[str]  # each is in the summary
    hint: str | None = None  # is in the hint; None: there is no hint
    deadline: int = 100


def of_rank(rank: int, *words: str) -> tuple[str, ...]:
    return (f"rank {rank} on NAME-worker-{rank} ", *words)


ROWS = [
    # Whatever the others say about the rank that left them, it is no fault of the network.
    Row("code-77", "openmpi5", ["./openmpi5", "77"], of_rank(1, "exited with code 77")),
    Row("segfault-5", "openmpi5", ["./openmpi5", "segfault"], of_rank(1, "signal 11 (Segmentation fault)")),
    Row("segfault-4", "openmpi4", ["./openmpi4", "segfault"], of_rank(1, "signal 11 (Segmentation fault)")),
    Row("traceback", "openmpi5", python(WAITS + "raise ValueError('odd')"), of_rank(1, "code 1: ", "ValueError: odd")),
    # Plain Python, whose end waits for the others
    Row("plain-5", "openmpi5", plain("raise ValueError('odd')"), of_rank(1, "code 1: ", "ValueError: odd")),
    Row("plain-4", "openmpi4", plain("raise ValueError('odd')"), of_rank(1, "code 1: ", "ValueError: odd")),
    Row("plain-m", "mpich", plain("raise ValueError('odd')"), of_rank(1, "code 1: ", "ValueError: odd")),
    Row("exit-5", "openmpi5", plain("import sys; sys.exit(17)"), of_rank(1, "exited with code 17")),
    Row("exit-4", "openmpi4", plain("import sys; sys.exit(17)"), of_rank(1, "exited with code 17")),
    Row("exit-m", "mpich", plain("import sys; sys.exit(17)"), of_rank(1, "exited with code 17")),
    Row("exit-i", "intel", plain("import sys; sys.exit('no data')"), of_rank(1, "exited with code 1: no data")),
    Row("mpi-abort", "openmpi5", python(WAITS + "world.Abort(9)"), of_rank(1, "exited with code 9")),
    # What only the engine knows
    Row(
        "module",
        "mpich",
        ["python3", "-S", "-c", "import mpi4py"],
        ("on module-worker-", "No module named 'mpi4py'"),
        "install mpi4py in the Python that ran on module-worker-",
    ),
    Row("waits", "mpich", ["sleep", "1000"], ("deadline of 2 s",), deadline=2),
    # How MPI is used
    Row("twice", "openmpi4", ["./openmpi4", "twice"], ("on twice-worker-", "An error occurred in MPI_Init")),
    Row("twice-m", "mpich", ["./mpich", "twice"], ("on twice-m-worker-", "more than once")),
    Row("truncated", "openmpi4", ["./openmpi4", "truncated"], of_rank(1, "MPI_ERR_TRUNCATE: message truncated")),
    Row("unfinalized", "openmpi5", ["./openmpi5", "unfinalized"], ("on unfinalized-", "without calling MPI_Finalize")),
    Row("gone", "openmpi4", ["./openmpi4", "0"], of_rank(1, "ended without calling MPI_Finalize")),
    # The wrong MPI
    Row("mpich-by-5", "openmpi5", ["./mpich", "alone"], ("on mpich-by-5-worker-",), "of Open MPI 5 started it; "),
    Row(
        "open-mpi-by-m", "mpich", ["./openmpi5", "alone"], ("MPI library is that of Open MPI",), "of MPICH started it; "
    ),
    Row(
        "mpi4py-by-4",
        "openmpi4",
        [MPI4PY, "-m", "mpi4py", "-c", "from mpi4py import MPI"],
        (),
        "",  # it may have ended before anybody saw what it had loaded: then its own words have to do
    ),
    # How mpirun is called
    Row("slots", "openmpi5", ["mpirun -n $(echo 64) true"], ("not enough slots",), "more ranks were asked for"),
    Row("option", "openmpi5", ["mpirun --frob true"], ("unrecognized option",), "does not know that option"),
    Row("option-m", "mpich", ["mpirun --frob true"], ("unrecognized argument",), "does not know that option"),
    Row("no-n-5", "openmpi5", ["mpirun ./openmpi5 77"], of_rank(1, "exited with code 77")),
    Row("no-n-4", "openmpi4", ["mpirun ./openmpi4 77"], of_rank(1, "exited with code 77")),
    Row("no-n-m", "mpich", ["mpirun ./mpich 77"], of_rank(1, "exited with code 77")),
    Row("mpirum", "mpich", ["mpirum -n 2 true"], ("code 127", "mpirum"), "did you mean 'mpirun'?"),
]
MEMORY = Row(
    "oom", "mpich", ["python3", "-c", "bytearray(600 << 20)"], ("limit was reached",), "memory limit is 256Mi: raise it"
)
# What a rank writes before it is the program, or instead; MPI has no part in it.
WITHOUT_MPI = [
    (["./plain", "divide"], "signal 8 (Floating point exception)", None),
    (["./plain", "stack"], "signal 11 (Segmentation fault)", None),
    (["./plain", "assert"], "signal 6 (Aborted): plain: program.c:", None),
    (["./plain", "free"], "signal 6 (Aborted): free(): invalid pointer", None),
    (["./plain", "abort"], "signal 6 (Aborted)", None),
    (["./plain", "trap"], "signal 4 (Illegal instruction)", None),  # a program may well do that itself
    (["python3", "-c", "import os; os.kill(os.getpid(), 9)"], "signal 9 (Killed); who sent it is not known", None),
    (["python3", "-c", "import os; os.kill(os.getpid(), 15)"], "signal 15 (Terminated)", None),
    (["python3", "-c", "import os; os.kill(os.getpid(), 7)"], "signal 7 (Bus error)", None),
    (["sh", "-c", "exit 1"], "exited with code 1", None),
    (["sh", "-c", "exit 2"], "exited with code 2", None),
    (["sh", "-c", "exit 126"], "exited with code 126", None),
    (["sh", "-c", "exit 127"], "exited with code 127", None),
    (["sh", "-c", "frobnicate --all"], "code 127: sh: 1: frobnicate: not found", "spelling"),
    (["./nope"], "code 127: ./nope: command not found in /", "submit the job where the program is"),
    (["/nope/nope"], "code 127: /nope/nope: command not found", "spelling"),
    (["./no-x"], "code 126: ./no-x: Permission denied", "chmod +x"),
    (["./prose"], "code 126: ./prose: Exec format error", "begins with #!"),
    (["./arm"], "code 126: ./arm: Exec format error", "a program for this CPU"),
    (["./no-sh"], "code 127: ./no-sh: bad interpreter", "first line (#!)"),
    (["./library"], "code 127: ./library: error while loading shared libraries: libgone.so", "lacks a shared library"),
    (["python3", "train.py"], "code 2: python3: can't open file", "spelling"),
    (["python3", "-c", "open('a.csv')"], "FileNotFoundError", "a file is missing"),
    (
        ["setpriv", "--reuid=65534", "--clear-groups", "cat", "/etc/shadow"],
        "/etc/shadow: Permission denied",
        "the mode",
    ),
    (
        ["python3", "-c", "print('x', file=open('/dev/full', 'w'), flush=True)"],
        "No space left on device",
        "a disk is full",
    ),
    (["python3", "-c", "bytearray(1 << 60)"], "MemoryError", "less per rank"),
    (["python3", "-c", f"{SOCKET}getaddrinfo('a.invalid', 1)"], "socket.gaierror", "does not resolve"),
    (["python3", "-c", f"{SOCKET}create_connection(('127.0.0.1', 1))"], "Connection refused", "nothing listened there"),
]


def write_programs(folder: Path) -> None:
    (folder / "program.c").write_text(PROGRAM)
    compilers = {
        "plain": ["gcc"],
        **{mpi: [str(MPIS / mpi / "bin/mpicc"), "-DMPI"] for mpi in ("openmpi5", "openmpi4", "mpich")},
    }
    for name, words in compilers.items():
        subprocess.run([*words, "-w", "-O0", "-o", name, "program.c"], cwd=folder, check=True)
    build = ["gcc", "-o", "libgone.so", "-shared", "-xc", "-"]
    subprocess.run(build, cwd=folder, check=True, input="int gone(void) { return 0; }", text=True)
    build = ["gcc", "-o", "library", "-xc", "-", "-xnone", "-L.", "-lgone"]
    subprocess.run(build, cwd=folder, check=True, input="int gone(void); int main(void) { return gone(); }", text=True)
    (folder / "libgone.so").unlink()
    arm = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0\xb7\0\x01\0\0\0" + bytes(200)
    files = {"no-x": b"#!/bin/sh\n", "prose": b"not a program\n", "arm": arm, "no-sh": b"#!/no/such/shell\n"}
    for name, text in files.items():
        (folder / name).write_bytes(text)
        (folder / name).chmod(0o644 if name == "no-x" else 0o755)


def submit(machine: Machine, row: Row) -> str:
    command = ["sh", "-c", *row.words] if len(row.words) == 1 else ["mpirun", "-n", "2", *row.words]
    limits = {"resources": {"limits": {"memory": "256Mi"}}} if row is MEMORY else {}
    document = mpijob(row.name, command, run_policy={"activeDeadlineSeconds": row.deadline}, worker=limits)
    environment = Machine(machine.paths.state, row.mpi).environment
    return machine.jobs.submit(document, environment=environment, folder=machine.folder).job.key


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with closing(Machine(tmp_path_factory.mktemp("hints") / "state")) as machine:
        write_programs(machine.folder)
        yield machine


@pytest.fixture(scope="module")
def ended(machine: Machine) -> dict[str, JobRecord]:
    """All of them, one after another, under one supervisor."""
    keys = {row.name: submit(machine, row) for row in ([*ROWS, MEMORY] if cgroups.find().memory else ROWS)}
    return {name: machine.until_finished(key) for name, key in keys.items()}


def is_told(cause: Cause | None, parts: Sequence[str], hint: str | None) -> None:
    assert cause is not None
    assert not [words for words in parts if words not in cause.summary], (cause.summary, cause.last_lines)
    assert (cause.hint is None) == (hint is None), (cause.hint, cause.summary)
    assert (hint or "") in (cause.hint or ""), cause.summary


@pytest.mark.timeout(900)
@pytest.mark.parametrize("row", [*ROWS, MEMORY], ids=lambda row: row.name)
def test_a_failure_has_its_cause_and_a_hint_only_with_evidence(row: Row, ended: dict[str, JobRecord]) -> None:
    if row.name not in ended:
        pytest.skip("no memory limits can be set here")
    is_told(ended[row.name].status.cause, [words.replace("NAME", row.name) for words in row.cause], row.hint)


def test_a_program_that_fails_without_mpi_has_its_cause_and_a_hint_only_with_evidence(machine: Machine) -> None:
    @for_every_row(WITHOUT_MPI)
    def table(words: list[str], summary: str, hint: str | None) -> None:
        become = f"import os; from {rank.__name__} import _become; "
        line = [sys.executable, "-c", f"{become}_become({words!r}, {{**os.environ, 'RANK': '1'}}, 0, 1, 2)"]
        done = subprocess.run(
            line, cwd=machine.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
        code = done.returncode if done.returncode >= 0 else 128 - done.returncode
        failed = a_rank(1, code=code, last_lines=tuple((done.stdout + done.stderr).splitlines()))
        seen = Observed(ranks=(a_rank(0), failed))
        cause = causes.of_failed_launcher(a_job(), seen, a_launcher(Phase.FAILED, code=1))
        is_told(cause, ("rank 1 on pi-worker-1 ", summary), hint)

    table()
