"""Whose the last lines of a launcher are, and which of them tell why it failed.

Where a launcher relays what its ranks write, tags say who wrote a line; without them it may be anybody's, and the last
one is mostly that of a rank that was well.
"""

from __future__ import annotations

from collections.abc import Sequence

from oarsman.job.job import Job
from oarsman.job.observed import Exit, Observed
from oarsman.plan import placement
from oarsman.status import exits, mpirun_words

_NEVER_STARTED = (126, 127)  # the shell says why, whoever's shell it was


def of_rank(seen: Observed, rank: int | None) -> Sequence[str]:
    """Of what the launcher passed on: what this rank wrote, or else what the launcher did; all of it without tags."""
    if rank is None or not seen.launcher_ranks:
        return seen.launcher_lines
    return _written_by(seen, rank) or _written_by(seen, None)


def of_launcher_itself(seen: Observed) -> Sequence[str]:
    """Without tags, all of them."""
    return _written_by(seen, None) if seen.launcher_ranks else seen.launcher_lines


def evidence(job: Job, seen: Observed, rank: int | None, ended: Exit) -> Sequence[str]:
    """What may be taken for the reason why that rank ended so; None: a rank that nobody named."""
    if _one_voice(job, seen):
        return seen.launcher_lines
    if seen.launcher_ranks and rank is not None:
        return (*_written_by(seen, rank), *_written_by(seen, None))
    return _telling(seen, ended)


def of_launcher(job: Job, seen: Observed, ended: Exit | None) -> Sequence[str]:
    """What may be taken for the reason why the launcher ended; without tags its ssh may have written any line."""
    if not seen.launcher_ranks or _one_voice(job, seen):
        return seen.launcher_lines
    return (*of_launcher_itself(seen), *(_telling(seen, ended) if ended else ()))


def last_word_of_rank(job: Job, seen: Observed, rank: int | None, ended: Exit) -> str | None:
    if _one_voice(job, seen):
        return mpirun_words.programs_last_word(seen.launcher_lines)
    if seen.launcher_ranks and rank is not None:
        return mpirun_words.programs_last_word(_written_by(seen, rank))
    return _end_of_a_program(seen, ended)


def last_word_of_launcher(job: Job, seen: Observed, ended: Exit | None) -> str | None:
    """The last line that tells something, if it is the launcher's own or tells how a program ended."""
    if job.launch is None or _one_voice(job, seen):
        return mpirun_words.last_word(seen.launcher_lines)
    own = _written_by(seen, None) if seen.launcher_ranks else mpirun_words.report(seen.launcher_lines)[:1]
    return (_end_of_a_program(seen, ended) if ended else None) or mpirun_words.last_word(own)


def _one_voice(job: Job, seen: Observed) -> bool:
    """Whether all lines are of one: of the launcher itself, or of the only rank."""
    alone = job.launch is not None and job.launch.processes == 1
    return not seen.launcher_relays or alone or len(placement.expected_of_newest(job, seen)) == 1


def _written_by(seen: Observed, rank: int | None) -> Sequence[str]:
    return [line for line, who in zip(seen.launcher_lines, seen.launcher_ranks, strict=True) if who == rank]


def _telling(seen: Observed, ended: Exit) -> Sequence[str]:
    if ended.code in _NEVER_STARTED:
        return seen.launcher_lines
    end = _end_of_a_program(seen, ended)
    return (*mpirun_words.report(seen.launcher_lines), *([end] if end else ()))


def _end_of_a_program(seen: Observed, ended: Exit) -> str | None:
    """Words that only a process that ends so writes, whichever it was."""
    lines = list(seen.launcher_lines)
    if seen.launcher_ranks:  # a traceback in one piece
        by_rank = sorted(
            zip(seen.launcher_ranks, lines, strict=True), key=lambda each: -1 if each[0] is None else each[0]
        )
        lines = [line for _, line in by_rank]
    if exits.signal_of(ended.code, ended.signal) == exits.SIGABRT:
        return mpirun_words.dying_words(lines)
    return mpirun_words.exception(lines) if ended.code == 1 else None
