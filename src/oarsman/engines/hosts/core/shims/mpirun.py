"""The shim for mpirun, mpiexec and orterun: the same command, made right for this job.

It comes first on the launcher's PATH, so scripts and `sh -c` lines are reached too. It rewrites
options that the two generations of Open MPI spell differently, puts the rank shim before the
user's program, and turns into the real launcher.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Sequence

from oarsman.engines.hosts.core import process
from oarsman.engines.hosts.core.messages import CALLS, GiveInput, RankMessage, WorldStarted, connect
from oarsman.job import launch
from oarsman.job.launch_options import SURVIVING

# With these mpirun itself decides what the output looks like, so it has to see it.
SHAPES_OUTPUT = (
    *("tag-output", "timestamp-output", "output", "output-filename", "xml", "merge-stderr-to-stdout"),  # Open MPI
    *("l", "prepend-rank", "prepend-pattern", "outfile-pattern", "errfile-pattern"),  # Hydra
)

# With these the user says which rank has the input, and mpirun itself hands it on.
SHARES_INPUT = ("stdin", "s")

_BEEN_HERE = "OARSMAN_LAUNCHING"


def real(name: str) -> str:
    """The launcher of that name in the job's own MPI, or what it has instead (Open MPI 5 has no orterun)."""
    if os.path.isabs(name):
        return name
    if only := os.environ.get("OARSMAN_MPIRUN"):
        return only
    for candidate in (name, "mpirun", "mpiexec"):
        chosen = os.path.join(os.environ.get("OARSMAN_MPI", ""), candidate)
        if os.path.isabs(chosen) and os.access(chosen, os.X_OK):
            return chosen
    mine = os.environ["OARSMAN_RUN"] + "/bin"
    path = os.pathsep.join(part for part in os.environ.get("PATH", "").split(os.pathsep) if part != mine)
    return shutil.which(name, path=path) or name


def has(options: Sequence[str], names: Sequence[str]) -> bool:
    return any(option.lstrip("-").partition("=")[0] in names for option in options if option.startswith("-"))


def survives(options: Sequence[str]) -> bool:
    return any(option.lstrip("-") in SURVIVING for option in options)


def streams_to_pass(options: Sequence[str]) -> str:
    """Which streams must flow through mpirun: those that do not end in the launcher's own log."""
    if has(options, SHAPES_OUTPUT):
        return "oe"
    pipes = os.environ.get("OARSMAN_LAUNCHER_PIPES", ":").split(":")
    return "".join(
        letter for letter, fd, pipe in zip("oe", (1, 2), pipes, strict=False) if str(os.fstat(fd).st_ino) != pipe
    )


def without_slow_start(words: Sequence[str]) -> list[str]:
    """An exclusion list for the byte transfer layers gets `ofi` added: it costs a second per start."""
    result = list(words)
    for position, word in enumerate(result[:-2]):
        if word in ("-mca", "--mca") and result[position + 1] == "btl":
            value = result[position + 2]
            if value.startswith("^") and "ofi" not in value[1:].split(","):
                result[position + 2] = value + ",ofi"
    return result


def corrected(name: str, words: Sequence[str], *, family: str, rewrite: bool) -> list[str]:
    """The words as the MPI that is here spells them."""
    if rewrite:
        words = launch.rewrite([name, *words]).argv[1:]
    return without_slow_start(words) if family.startswith("Open MPI") else list(words)


def compose(name: str, words: Sequence[str], program: str) -> list[str]:
    """The words to run in place of `name words...`. program: the launcher itself, for ranks to tell of it."""
    family = os.environ.get("OARSMAN_FAMILY", "")
    words = corrected(name, words, family=family, rewrite=os.environ.get("OARSMAN_REWRITE", "1") == "1")
    line = launch.parse([name, *words])
    hosts = os.environ.get("OARSMAN_HOSTS", "").split()
    slots = int(os.environ.get("OARSMAN_SLOTS", "1"))
    placement = launch.expected_placement(line, hosts, slots) if line is not None else None
    master = placement[0] if placement else (hosts[0] if hosts else "localhost")
    options = line.options if line is not None else ()
    through = streams_to_pass(options) + ("i" if has(options, SHARES_INPUT) else _hand_over_input())
    port = os.environ.get("OARSMAN_MASTER_PORT", "")
    label = (
        f"{os.environ['OARSMAN_ATTEMPT']}:{os.getpid()}:{through}:{master}:{port}:{int(survives(options))}:{program}"
    )
    wrapper = [*os.environ["OARSMAN_RANK"].split("\n"), label]
    # Its ranks are compared with these words. Where no host has a name of its own, there is nothing to compare.
    if os.environ.get("OARSMAN_PLAIN") != "1":
        placing = launch.words_that_place(line)
        _tell(WorldStarted(placing, int(os.environ["OARSMAN_ATTEMPT"]), str(os.getpid())))
    return launch.with_wrapper(words, wrapper)


def _hand_over_input() -> str:
    """Rank 0 will have our standard input itself, see rank.py; "n": there is none."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        if os.path.samestat(os.fstat(0), os.fstat(nothing)):
            return "n"
        _tell(GiveInput(str(os.getpid())), 0)
        os.dup2(nothing, 0)
        return ""
    except OSError:  # it is closed
        return "n"
    finally:
        os.close(nothing)


def _tell(message: RankMessage, *fds: int) -> None:
    with contextlib.suppress(OSError), connect(f"{os.environ['OARSMAN_RUN']}/k") as agent:
        CALLS.send(agent, message, fds)


def main() -> None:
    name, words = sys.argv[1], sys.argv[2:]
    program = real(name)
    # Intel's mpirun is a script that calls mpiexec by name; and a rank may start an mpirun of its own.
    if not any(mark in os.environ for mark in (_BEEN_HERE, "OMPI_COMM_WORLD_RANK", "PMI_RANK")):
        words = compose(os.path.basename(name), words, program)
        os.environ[_BEEN_HERE] = "1"
    process.restore_signals()
    try:
        os.execv(program, [program, *words])
    except OSError as error:
        sys.stderr.write(f"{name}: {error.strerror}\n")
        sys.exit(127)
