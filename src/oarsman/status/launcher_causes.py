"""The cause of a failure in the launcher's words: the process that it blames, or how it ended itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from oarsman import names
from oarsman.job.job import Job
from oarsman.job.observed import Exit, Member, Observed
from oarsman.job.state import Cause
from oarsman.plan import placement
from oarsman.status import exits, known_errors, mpirun_words, speakers, stacks
from oarsman.text import units
from oarsman.text.sentence import Text, cut, one_line

LINES: Final = 20  # of what was last written, kept with the cause
_LONGEST: Final = 300
_LIMIT_OF_WORKER: Final = Text(
    "the worker's memory limit is {limit}: raise it (limits.memory in a manifest, --memory on the command line), "
    "or use less memory per rank"
)
_LIMIT_OF_LAUNCHER: Final = Text(
    "the launcher's memory limit is {limit}: raise it (limits.memory of the launcher), or use less memory"
)


def unnamed(job: Job, seen: Observed, launcher: Member) -> mpirun_words.NamedProcess | None:
    """A rank failed and mpirun does not tell which. Its own code is that rank's, unless a shell stands between."""
    told = launcher.exit is not None and mpirun_words.tells_of_a_rank(seen.launcher_lines)
    if not told or job.launch is None or job.launch.in_shell:
        return None
    assert launcher.exit is not None
    return mpirun_words.NamedProcess(exit=launcher.exit)


def of_named(job: Job, named: mpirun_words.NamedProcess, seen: Observed) -> Cause:
    rank, host = _who_and_where(job, named, seen)
    if named.unstarted:
        return _unstarted(named, rank, host, seen)
    killed = exits.signal_of(named.exit.code, named.exit.signal) == exits.SIGKILL
    ending = told_of(job, host, replace(named.exit, memory_limit_hit=killed and host in seen.out_of_memory))
    who = _who(rank, host, seen)
    did = Text("called MPI_Abort with code {code}", code=named.exit.code) if named.aborted else ending.words
    did = Text("ended without calling MPI_Finalize") if named.unfinalized else did
    words = Text("{who} {did}", who=who, did=did)
    lines = speakers.of_rank(seen, rank)
    evidence = speakers.evidence(job, seen, rank, named.exit)
    known = known_errors.recognise(evidence, code=named.exit.code, aftermath=False)
    last = crashed_at(ending, lines)
    if ending.signal is None:
        error = mpirun_words.mpi_error(seen.launcher_lines, rank) if rank is not None else None
        last = error or speakers.last_word_of_rank(job, seen, rank, named.exit)
    why = known[1] if known else last
    tells_more = why is not None and "MPI_ABORT" not in why.upper()
    return Cause(
        summary=line(Text("{what}: {why}", what=words, why=why) if tells_more else words),
        rank=rank,
        host=host,
        exit_code=ending.code,
        signal=ending.signal,
        memory_limit_hit=ending.memory_limit_hit,
        last_lines=tail(lines),
        hint=advice(known[0], job, seen) if known and not ending.memory_limit_hit else ending.hint,
    )


def _unstarted(named: mpirun_words.NamedProcess, rank: int | None, host: str | None, seen: Observed) -> Cause:
    known = known_errors.recognise(seen.launcher_lines, code=126, aftermath=False)
    return Cause(
        summary=line(Text("{what}: {why}", what=_who(rank, host, seen), why=named.unstarted)),
        rank=rank,
        host=host,
        exit_code=named.exit.code,
        last_lines=tail(seen.launcher_lines),
        hint=known[0].hint if known else None,
    )


def _who(rank: int | None, host: str | None, seen: Observed) -> str:
    if not host:
        return Text("a rank") if rank is None else Text("rank {rank}", rank=rank)
    on = on_machine(host, seen)
    return Text("a rank on {host}", host=on) if rank is None else Text("rank {rank} on {host}", rank=rank, host=on)


def _who_and_where(job: Job, named: mpirun_words.NamedProcess, seen: Observed) -> tuple[int | None, str | None]:
    """What the launcher left out, from where ranks were seen, or else from where they were to run."""
    planned = placement.expected_of_newest(job, seen)
    rank, host = named.rank, placement.short(named.host) if named.host else None
    if rank is None:
        fitting = [number for number, where in planned.items() if host in (None, where)]
        rank = fitting[0] if len(fitting) == 1 else None
    if host is None and rank is not None:
        seen_on = (r.host.split(".", 1)[0] for r in seen.ranks if r.rank == rank)
        host = next(seen_on, None) or planned.get(rank)
    return rank, host


def of_launcher(job: Job, seen: Observed, launcher: Member) -> Cause:
    # An engine that has ranks report starts an mpirun it has looked at; else the image decides which one runs.
    implementation = None if seen.ranks_report else job.implementation
    code = launcher.exit.code if launcher.exit is not None else None
    evidence = speakers.of_launcher(job, seen, launcher.exit)
    known = known_errors.recognise((*evidence, launcher.message), implementation, code=code)
    ending = _launchers_ending(job, seen, launcher.exit) if launcher.exit is not None else None
    meant = known_errors.misspelt_launcher(known[1]) if known and known[0].name == "command-not-found" else None
    return Cause(
        summary=line(known[0].sentence if known and known[0].sentence else _told(job, seen, launcher, ending, known)),
        host=launcher.name or job.launcher_host,
        exit_code=ending.code if ending else None,
        signal=ending.signal if ending else None,
        memory_limit_hit=ending.memory_limit_hit if ending else False,
        last_lines=tail(seen.launcher_lines),
        hint=meant or (advice(known[0], job, seen) if known else (ending.hint if ending else None)),
    )


def _launchers_ending(job: Job, seen: Observed, ended: Exit) -> exits.Ending:
    """Where it explains what it could not do, it was not killed, whatever signal its code is the number of."""
    by_number = not ended.signal and not ended.memory_limit_hit
    if by_number and mpirun_words.gives_up(seen.launcher_lines):
        return exits.Ending(code=ended.code, signal=None, words=exits.with_code(ended.code))
    return told_of(job, job.launcher_host, ended)


def told_of(job: Job, host: str | None, ended: Exit) -> exits.Ending:
    """How a process on that host ended, with the memory limit that the host has."""
    ending = exits.tell(ended)
    worker = job.worker if host != job.launcher_host else None
    limit = (worker or job.launcher).container.resources.limits.get("memory")
    if not ending.memory_limit_hit or host is None or not limit:
        return ending
    template = _LIMIT_OF_WORKER if worker else _LIMIT_OF_LAUNCHER
    return replace(ending, hint=Text(template, limit=units.quantity(int(limit))))


def _told(
    job: Job,
    seen: Observed,
    launcher: Member,
    ending: exits.Ending | None,
    known: tuple[known_errors.KnownError, str] | None,
) -> str:
    """How the launcher ended, with its own words where it has any that say more."""
    did: str
    if ending is None:
        did = Text("failed ({reason})", reason=launcher.reason) if launcher.reason else Text("failed")
    elif ending.code == 255 and known is None:
        did = Text("ended with code 255, as it does when a host or the daemon on it is lost")
    else:
        did = ending.words
    said = known[1] if known else speakers.last_word_of_launcher(job, seen, launcher.exit) or launcher.message
    said = mpirun_words.whole(seen.launcher_lines, said)
    if not said and not any(line.strip() for line in seen.launcher_lines):
        said = Text("it wrote nothing")
    who = Text("the launcher")
    if ending is not None and ending.signal and _passed_on(launcher):
        ranks = job.launch is not None
        who = Text("a rank or the launcher itself") if ranks else Text("the launcher or a program that it started")
    words = Text("{who} {did}", who=who, did=did)
    return Text("{what}: {why}", what=words, why=said) if said else words


def _passed_on(launcher: Member) -> bool:
    """Whether the signal may be that of another program: mpirun and shells end with the number of whoever they ran."""
    return launcher.exit is not None and not launcher.exit.signal and not launcher.exit.memory_limit_hit


def advice(error: known_errors.KnownError, job: Job, seen: Observed) -> str:
    one_machine = seen.ranks_report and not job.annotation(names.ANNOTATION_INVENTORY)
    return (error.on_one_machine if one_machine else "") or error.hint


def on_machine(host: str, seen: Observed) -> str:
    """With the machine that it is on, where that has another name."""
    machine = seen.machines.get(host) or seen.status.machines.get(host)
    return Text("{host} ({machine})", host=host, machine=machine) if machine else host


def crashed_at(ending: exits.Ending, lines: Sequence[str]) -> str | None:
    frame = stacks.first_frame(lines) if ending.signal in exits.CRASHES else None
    return Text("in {frame}", frame=frame) if frame else None


def tail(lines: Sequence[str]) -> tuple[str, ...]:
    return stacks.shortened(lines, LINES)


def line(text: str) -> str:
    return cut(one_line(text), _LONGEST)
