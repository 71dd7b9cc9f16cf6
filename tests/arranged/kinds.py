"""The kinds of cases. Each draws a job and what happens to it, and says how it must end."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from engines.hosts.machine import WAITS_IN_MPI

from oarsman import names

from .cases import Blame, Case, Draw, Expected, fails

PYTHON: Final = "PYTHON"  # stands for the interpreter that has mpi4py for the case's MPI
SCRATCH: Final = "SCRATCH"  # stands for a folder that the case alone has, the same on every host
SIGNALS: Final = (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGKILL, signal.SIGTERM)
# Not those that a shell gives to signals: what a program means by them nobody can know.
CODES: Final = (1, 2, 3, 17, 42, 77, 100, 125, 126, 127, 193, 200, 254, 255)
STARTS = "from mpi4py import MPI; import os, resource, sys, time\n"
BEGINS = "resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); w = MPI.COMM_WORLD; print('begun', w.rank, flush=True)\n"
OTHERS = {"wait": "w.Barrier(); w.Barrier()", "go on": "time.sleep(900)", "end": "pass"}
PLAIN_OTHERS = {"wait": "exec sleep 900", "go on": "while :; do sleep 0.5; done", "end": "exit 0"}


def mpi_program(draw: Draw, rank: int, act: str) -> tuple[str, ...]:
    """One rank does that, once all have begun or at once; the others wait for it, go on, or are done."""
    others = OTHERS[draw.choice(("wait", "go on", "end"))]
    together = draw.choice(("w.Barrier()", "pass"))
    return python(f"{STARTS}{BEGINS}{together}\nif w.rank == {rank}: {act}\n{others}\n")


def python(program: str) -> tuple[str, ...]:
    return (PYTHON, "-m", "mpi4py", "-c", program)


def plain_program(draw: Draw, rank: int, act: str) -> tuple[str, ...]:
    """The same without MPI, which many programs that mpirun starts do not use."""
    others = PLAIN_OTHERS[draw.choice(("wait", "go on", "end"))]
    pause = draw.choice(("sleep 0.3", ":"))
    return ("sh", "-c", f'ulimit -c 0; echo begun $RANK; [ "$RANK" = {rank} ] || {{ {others}; }}; {pause}; {act}')


def either(draw: Draw, rank: int, in_python: str, in_shell: str) -> tuple[str, ...]:
    if draw.random() < 0.5:
        return mpi_program(draw, rank, in_python)
    return plain_program(draw, rank, in_shell)


WAITS_PLAINLY = ("sh", "-c", "echo begun $RANK; exec sleep 900")


def waits(draw: Draw) -> tuple[str, ...]:
    """All ranks, for ever."""
    return draw.choice((WAITS_PLAINLY, python(f"{STARTS}{BEGINS}w.Barrier()\n{WAITS_IN_MPI}")))


def waits_for(flag: str) -> tuple[str, ...]:
    return ("sh", "-c", f"echo begun $RANK; until [ -e {SCRATCH}/{flag} ]; do sleep 0.1; done")


# -- ends that a program has by itself ------------------------------------------------------------------------
def success(draw: Draw, place: str, mpi: str) -> Case:
    shape = draw.shape(place, mpi)
    world = "w.allreduce(w.rank)"
    program = draw.choice((python(f"{STARTS}{BEGINS}{world}\n"), ("sh", "-c", "echo begun $RANK")))
    return replace(shape, command=program, expected=Expected(lines=begun(shape.ranks)))


def begun(ranks: int) -> dict[int, list[str]]:
    return {rank: [f"begun {rank}"] for rank in range(ranks)}


def exit_code(draw: Draw, place: str, mpi: str) -> Case:
    shape, code = draw.shape(place, mpi), draw.choice(CODES)
    rank = draw.randrange(shape.ranks)
    command = either(draw, rank, f"os._exit({code})", f"exit {code}")
    return replace(shape, command=command, expected=fails(Blame(ranks=(rank,), code=code)))


def ended_by_signal(draw: Draw, place: str, mpi: str) -> Case:
    shape, number = draw.shape(place, mpi), draw.choice(SIGNALS)
    rank = draw.randrange(shape.ranks)
    command = either(draw, rank, f"os.kill(os.getpid(), {number:d})", f"kill -{number:d} $$")
    return replace(shape, command=command, expected=fails(signalled(rank, number)))


def signalled(rank: int, number: int) -> Blame:
    return Blame(ranks=(rank,), code=128 + number, signal=number)


def abort(draw: Draw, place: str, mpi: str) -> Case:
    shape, code = draw.shape(place, mpi), draw.choice((1, 2, 3, 7, 42, 100, 200, 255))
    rank = draw.randrange(shape.ranks)
    # MPICH's mpiexec may end before it has read the words of the rank that aborted, which was killed: a known limit.
    blame = Blame(ranks=(rank,), code=code, or_nobody=(place, mpi) == (names.SSH, "mpich"))
    return replace(shape, command=mpi_program(draw, rank, f"w.Abort({code})"), expected=fails(blame))


def traceback(draw: Draw, place: str, mpi: str) -> Case:
    shape = draw.shape(place, mpi)
    rank = draw.randrange(shape.ranks)
    command = mpi_program(draw, rank, "raise ValueError('arranged')")
    return replace(shape, command=command, expected=fails(Blame(ranks=(rank,), code=1)))


def missing_module(draw: Draw, place: str, mpi: str) -> Case:
    shape = draw.shape(place, mpi)
    rank = draw.randrange(shape.ranks)
    blame = Blame(ranks=(rank,), code=1, hint="python-module")
    return replace(shape, command=mpi_program(draw, rank, "import arranged_nowhere"), expected=fails(blame))


# -- programs that cannot be started --------------------------------------------------------------------------
def missing_program(draw: Draw, place: str, mpi: str) -> Case:
    shape = draw.shape(place, mpi)
    program = draw.choice(("pyhton3", "./arranged-nowhere", "/opt/arranged/nowhere"))
    hint = "command-not-found-here" if place == names.LOCAL else "command-not-found"
    hint = "relative-path" if program.startswith("./") else hint
    blame = Blame(ranks=tuple(range(shape.ranks)), code=127, hint=hint, says=program)
    return replace(shape, command=(program, "train.py"), expected=fails(blame))


def missing_launcher(draw: Draw, place: str, mpi: str) -> Case:
    shape = replace(draw.shape(place, mpi), in_foreground=False)
    blame = Blame(host="launcher", code=127, hint="misspelt-launcher", says="mpriun")
    return replace(shape, script=f"mpriun -n {shape.ranks} true", expected=fails(blame))


def missing_there(draw: Draw, place: str, mpi: str) -> Case:
    """Each worker is on a host of its own; one of these lacks the program."""
    shape = replace(draw.shape(place, mpi), in_foreground=False, on_victims=True, workers=2, slots=2, ranks=4)
    worker = draw.randrange(2)
    blame = Blame(ranks=(2 * worker, 2 * worker + 1), code=127, hint="missing-there or command-not-found")
    job = replace(shape, command=("/home/rower/arranged", "train.py"), meanwhile="install-elsewhere", worker=worker)
    return replace(job, expected=fails(blame))


def not_executable(draw: Draw, place: str, mpi: str) -> Case:
    shape = draw.shape(place, mpi)
    blame = Blame(ranks=tuple(range(shape.ranks)), code=126, hint="not-executable")
    return replace(shape, command=(f"{SCRATCH}/data",), meanwhile="write-data", expected=fails(blame))


# -- two worlds in one script ---------------------------------------------------------------------------------
def two_worlds(draw: Draw, place: str, mpi: str) -> Case:
    shape = replace(draw.shape(place, mpi, least=2), in_foreground=False)
    sizes = [shape.ranks, draw.randint(1, shape.ranks - 1)]
    draw.shuffle(sizes)
    failing, code, strict = draw.choice((0, 1, None)), draw.choice((2, 3, 42)), draw.random() < 0.5
    rank = draw.randrange(sizes[failing]) if failing is not None else 0
    worlds = [("sh", "-c", f"echo world {number} of {size}") for number, size in enumerate(sizes)]
    if failing == 0 and not strict:  # the others end: a world that hangs is ended with the whole script
        worlds[0] = ("sh", "-c", f'[ "$RANK" != {rank} ] || exit {code}')
    elif failing is not None:
        worlds[failing] = either(draw, rank, f"os._exit({code})", f"exit {code}")
    lines = [f"mpirun -n {size} {shlex.join(world)}" for size, world in zip(sizes, worlds, strict=True)]
    script = "\n".join([*(["set -e"] if strict else []), *lines])
    seen_to_fail = failing == 1 or (failing == 0 and strict)
    expected = fails(Blame(ranks=(rank,), code=code)) if seen_to_fail else Expected()
    return replace(shape, script=script, expected=expected)


# -- input, output, limits ------------------------------------------------------------------------------------
def standard_input(draw: Draw, place: str, mpi: str) -> Case:
    """Rank 0 of a job in the foreground reads it to its end; everybody else reads its end at once."""
    shape, size = draw.shape(place, mpi), draw.choice((0, 1, 1000, 300_000))
    given = size if shape.in_foreground else 0
    said = {rank: [f"read {given if rank == 0 else 0}"] for rank in range(shape.ranks)}
    counts = ("sh", "-c", "echo read $(wc -c)")
    return replace(shape, command=counts, stdin="x" * size, expected=Expected(lines=said))


def progress(draw: Draw, place: str, mpi: str) -> Case:
    """Of a line that is written over and over, the last state is kept."""
    shape, steps = draw.shape(place, mpi), draw.randint(2, 200)
    bar = f'n=0; while [ $n -lt {steps} ]; do n=$((n + 1)); printf "\\r%s of {steps}" $n; done; echo; echo done'
    said = {rank: [f"{steps} of {steps}", "done"] for rank in range(shape.ranks)}
    return replace(shape, command=("sh", "-c", bar), expected=Expected(lines=said))


def limits(draw: Draw, place: str, mpi: str) -> Case:
    shape = replace(draw.shape(place, mpi), in_foreground=True)
    stack, files = 1024 * draw.randint(2, 16), draw.randint(300, 900)
    shows = ("sh", "-c", "echo $(ulimit -S -s) $(ulimit -S -n)")
    said = {rank: [f"{stack} {files}"] for rank in range(shape.ranks)}
    given = f"ulimit -S -s {stack}; ulimit -S -n {files}"
    return replace(shape, command=shows, limits=given, expected=Expected(lines=said))


# -- what is done to it meanwhile -----------------------------------------------------------------------------
def killed_rank(draw: Draw, place: str, mpi: str) -> Case:
    """From outside, by whoever may."""
    shape, number = replace(draw.shape(place, mpi), in_foreground=False), draw.choice(SIGNALS)
    rank = draw.randrange(shape.ranks)
    job = replace(shape, command=waits(draw), meanwhile=f"kill-rank {rank} {number:d}")
    return replace(job, expected=fails(signalled(rank, number)))


def lost_host(draw: Draw, place: str, mpi: str) -> Case:
    shape = replace(draw.shape(place, mpi), in_foreground=False, workers=2)
    slots = draw.randint(1, 2) if place == names.LOCAL else 2
    ranks = 2 * slots
    ssh = place == names.SSH
    worker = 1 if ssh else draw.randrange(2)  # the launcher's machine is that of the first worker
    how = draw.choice(("cut", "power-off", "kill-host-agent")) if ssh else "kill-host"
    shape = replace(shape, slots=slots, ranks=ranks, on_victims=ssh, meanwhile=how, worker=worker)
    blame = Blame(host=f"worker-{worker}", ranks=(worker,) if slots == 1 else ())
    return replace(shape, command=waits(draw), expected=fails(blame, names.REASON_HOST_LOST))


def scaled_up(draw: Draw, place: str, mpi: str) -> Case:
    """The script starts its world when there are more hosts than at first."""
    shape = replace(draw.shape(place, mpi), in_foreground=False, workers=1, slots=1, ranks=2)
    code = draw.choice((0, 0, 5))
    script = f"{until_hosts(2)}; exec mpirun sh -c 'echo begun $RANK; [ $RANK = 0 ] || exit {code}'"
    expected = fails(Blame(ranks=(1,), code=code)) if code else Expected(lines=begun(2))
    return replace(shape, script=script, annotations=SPREAD, meanwhile="scale 2", expected=expected)


def scaled_down(draw: Draw, place: str, mpi: str) -> Case:
    shape = replace(draw.shape(place, mpi), in_foreground=False, workers=1, slots=1, ranks=2)
    script = f"{until_hosts(2)}; exec mpirun {shlex.join(waits(draw))}"
    blame = Blame(ranks=(1,), host="worker-1", says="was removed while rank 1 ran there")
    return replace(shape, script=script, annotations=SPREAD, meanwhile="scale 2 1", expected=fails(blame))


SPREAD = {names.ANNOTATION_PLACEMENT: "node"}


def until_hosts(count: int) -> str:
    return f'until [ "$(grep -c . "$OMPI_MCA_orte_default_hostfile")" = {count} ]; do sleep 0.1; done'


def queued(draw: Draw, place: str, mpi: str) -> Case:
    """Another job has all there is, for a while."""
    shape = replace(draw.shape(place, mpi), in_foreground=False, on_victims=place == names.SSH)
    shape = replace(shape, workers=2, slots=2, ranks=4) if place == names.SSH else shape
    code = draw.choice((0, 4))
    rank = draw.randrange(shape.ranks)
    expected = fails(Blame(ranks=(rank,), code=code)) if code else Expected(lines=begun(shape.ranks))
    program = ("sh", "-c", f'echo begun $RANK; [ "$RANK" != {rank} ] || exit {code}')
    return replace(shape, command=program, whole=True, meanwhile="hold-everything", expected=expected)


def starved(draw: Draw, place: str, mpi: str) -> Case:
    """Those who look after the job get no time, for less than a host may be silent."""
    shape, code = replace(draw.shape(place, mpi), in_foreground=False), draw.choice((0, 4))
    rank = draw.randrange(shape.ranks)
    expected = fails(Blame(ranks=(rank,), code=code)) if code else Expected(lines=begun(shape.ranks))
    program = (*waits_for("go")[:2], waits_for("go")[2] + f'; [ "$RANK" != {rank} ] || exit {code}')
    pause = draw.choice((2, 2.5, 3))
    return replace(shape, command=program, meanwhile=f"starve {pause}", expected=expected)


def past_deadline(draw: Draw, place: str, mpi: str) -> Case:
    shape, seconds = draw.shape(place, mpi), draw.randint(2, 5)
    blame = Blame(says=f"after its deadline of {seconds} s")
    policy = {"activeDeadlineSeconds": seconds}
    return replace(shape, command=waits(draw), run_policy=policy, expected=fails(blame, names.REASON_DEADLINE))


def retried(draw: Draw, place: str, mpi: str) -> Case:
    shape, code = replace(draw.shape(place, mpi), in_foreground=False), draw.choice((1, 9, 77))
    rank = draw.randrange(shape.ranks)
    act = f"[ -e {SCRATCH}/failed ] || {{ touch {SCRATCH}/failed; exit {code}; }}"
    program = ("sh", "-c", f'echo begun $RANK; [ "$RANK" = {rank} ] || exit 0; {act}')
    blame = Blame(ranks=(rank,), code=code)
    expected = Expected(attempts=(names.FAILED, names.SUCCEEDED), first_blame=blame, lines=begun(shape.ranks))
    return replace(shape, command=program, run_policy={"backoffLimit": 2}, expected=expected)


def given_up(draw: Draw, place: str, mpi: str) -> Case:
    shape, code = replace(draw.shape(place, mpi), in_foreground=False), draw.choice((1, 9, 77))
    rank = draw.randrange(shape.ranks)
    blame = Blame(ranks=(rank,), code=code)
    expected = fails(blame, names.REASON_BACKOFF, attempts=(names.FAILED, names.FAILED), first_blame=blame)
    program = either(draw, rank, f"os._exit({code})", f"exit {code}")
    return replace(shape, command=program, run_policy={"backoffLimit": 1}, expected=expected)


def suspended(draw: Draw, place: str, mpi: str) -> Case:
    shape = replace(draw.shape(place, mpi), in_foreground=False)
    expected = Expected(attempts=("Suspended", names.SUCCEEDED), lines=begun(shape.ranks))
    return replace(shape, command=waits_for("go"), meanwhile="suspend", expected=expected)


def stopped(draw: Draw, place: str, mpi: str) -> Case:
    shape = replace(draw.shape(place, mpi), in_foreground=False)
    expected = replace(fails(Blame(says="stopped by the user"), names.REASON_STOPPED), state="Stopped")
    return replace(shape, command=waits(draw), meanwhile="stop", expected=expected)


Kind = Callable[[Draw, str, str], Case]
# By the name that a case has; the place, where a kind has only one.
KINDS: Final[dict[str, tuple[Kind, str]]] = {
    "success": (success, ""),
    "exit-code": (exit_code, ""),
    "exit-code-too": (exit_code, ""),
    "signal": (ended_by_signal, ""),
    "signal-too": (ended_by_signal, ""),
    "abort": (abort, ""),
    "traceback": (traceback, ""),
    "missing-module": (missing_module, ""),
    "missing-program": (missing_program, ""),
    "missing-launcher": (missing_launcher, ""),
    "missing-there": (missing_there, names.SSH),
    "not-executable": (not_executable, ""),
    "two-worlds": (two_worlds, ""),
    "two-worlds-too": (two_worlds, ""),
    "standard-input": (standard_input, ""),
    "progress": (progress, ""),
    "limits": (limits, names.LOCAL),  # hosts of an inventory are used as they are
    "killed-rank": (killed_rank, names.LOCAL),
    "lost-host": (lost_host, ""),
    "scaled-up": (scaled_up, ""),
    "scaled-down": (scaled_down, ""),
    "queued": (queued, ""),
    "starved": (starved, ""),
    "past-deadline": (past_deadline, ""),
    "retried": (retried, ""),
    "given-up": (given_up, ""),
    "suspended": (suspended, ""),
    "stopped": (stopped, ""),
}
