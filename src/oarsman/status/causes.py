"""Why it failed: the first thing that went wrong, not the last thing that was said.

When one rank fails, the launcher ends all others and then itself, and its own exit code tells next to
nothing. So the cause is looked for where it began: a host that was lost, else the first rank that
failed, else the process the launcher blames, else the launcher's own words. Always one line, always
with a name in it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from oarsman import names
from oarsman.job.job import Job
from oarsman.job.observed import Exit, Member, Observed, RankReport
from oarsman.job.state import Cause
from oarsman.plan import placement
from oarsman.status import exits, known_errors, launcher_causes, mpirun_words, other_mpi, speakers
from oarsman.text.sentence import Text

_LATE: Final = datetime.max.replace(tzinfo=UTC)
# Hosts' clocks differ a little; within this, a rank that failed by itself comes before one that was terminated.
_SKEW: Final = timedelta(seconds=2)
_TERMINATED: Final = 128 + exits.SIGTERM


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A worker that can no longer carry ranks. `words` say what became of it."""

    host: str
    reason: str
    words: str
    at: datetime | None = None
    memory_limit_hit: bool = False
    disrupted: bool = False


def of_failed_launcher(job: Job, seen: Observed, launcher: Member, lost: Sequence[Lost] = ()) -> Cause:
    named = mpirun_words.blamed(seen.launcher_lines, launcher.exit)
    aborted = _who_aborted(named, seen)
    if named is not None and named.aborted and aborted is None and not lost:
        return launcher_causes.of_named(
            job, named, seen
        )  # it was ended before it could report; the others only followed
    if not seen.ranks_report:
        return _by_launcher(job, seen, launcher, named, lost)
    rank = aborted or first_failure(
        seen.ranks,
        mpirun_words.lost_their_peers(seen.launcher_lines),
        blamed=named.rank if named else None,
        by_hydra=mpirun_words.is_hydra(seen.launcher_lines),
        code=launcher.exit.code if launcher.exit else None,
    )
    if named is not None and named.unfinalized and not lost and (rank is None or _followed(rank)):
        return launcher_causes.of_named(job, named, seen)
    gone = _first_lost(lost, before=rank)
    if gone is not None:
        return _lost(gone, seen)
    if taken := _taken_away(job, seen, rank):
        return _scaled_away(job, seen, taken)
    if rank is not None and launcher.exit is not None and _killed_for_an_abort(rank, launcher.exit, seen):
        told = [r for r in seen.ranks if _tells_an_error(r)]
        if len(told) == 1:
            return _rank(job, replace(told[0], exit=launcher.exit), seen)
        return launcher_causes.of_launcher(job, seen, launcher)
    killed = rank is not None and (_terminated(rank) or _killed_by_nobody_known(rank))
    if killed and not lost and mpirun_words.misses_host(seen.launcher_lines):
        return launcher_causes.of_launcher(job, seen, launcher)
    if rank is not None and not _ended_with(launcher, rank):
        return _rank(job, rank, seen)
    if lost:
        return _lost(lost[0], seen)
    named = named or launcher_causes.unnamed(job, seen, launcher)
    return launcher_causes.of_named(job, named, seen) if named else launcher_causes.of_launcher(job, seen, launcher)


def _by_launcher(
    job: Job, seen: Observed, launcher: Member, named: mpirun_words.NamedProcess | None, lost: Sequence[Lost]
) -> Cause:
    """Where all output comes through the launcher: its words count, and what ranks wrote down adds to them."""
    if lost:
        return _lost(lost[0], seen)
    if named is None or named.rank is None:
        named = _written_down(job, seen, launcher, named) or named or launcher_causes.unnamed(job, seen, launcher)
    return launcher_causes.of_named(job, named, seen) if named else launcher_causes.of_launcher(job, seen, launcher)


def _written_down(
    job: Job, seen: Observed, launcher: Member, named: mpirun_words.NamedProcess | None
) -> mpirun_words.NamedProcess | None:
    """The rank that failed first, if the launcher ended for it: a script may have gone on, and failed in its own way.

    `named`: a process that Hydra blames, perhaps one of those that it killed itself."""
    lines, code = seen.launcher_lines, launcher.exit.code if launcher.exit else None
    by_hydra = mpirun_words.is_hydra(lines)
    # Those that Hydra killed are left out, unless there are no others.
    ranks = [r for r in seen.ranks if r.exit and not (by_hydra and _killed_by_nobody_known(r))] or seen.ranks
    rank = first_failure(ranks, mpirun_words.lost_their_peers(lines), by_hydra=by_hydra, code=code)
    killed = launcher.exit is not None and exits.signal_of(launcher.exit.code, launcher.exit.signal) == exits.SIGKILL
    if rank is None or rank.exit is None or (killed and _may_have_followed(rank)):
        return None
    by_mpirun = named is not None or (job.launch is not None and not job.launch.in_shell)
    if not (by_mpirun or rank.exit.code == code):
        return None
    return mpirun_words.NamedProcess(rank=rank.rank, host=rank.host, exit=rank.exit)


def of_missing_launcher(job: Job, seen: Observed, lost: Sequence[Lost] = ()) -> Cause:
    if lost:
        return _lost(lost[0], seen)
    rank = first_failure(seen.ranks)
    if rank is not None:
        return _rank(job, rank, seen)
    summary = Text("launcher lost: {host} vanished before it ended", host=job.launcher_host)
    return Cause(summary=summary, host=job.launcher_host, last_lines=launcher_causes.tail(seen.launcher_lines))


def of_lost_worker(seen: Observed, lost: Sequence[Lost]) -> Cause:
    """The launcher still runs, but the worker it needs is gone."""
    return _lost(lost[0], seen)


def first_failure(
    ranks: Sequence[RankReport],
    followers: Collection[int] = (),
    *,
    blamed: int | None = None,
    by_hydra: bool = False,
    code: int | None = None,
) -> RankReport | None:
    """The rank whose failure came first. Those terminated because of it, and its `followers`, are not the cause.

    blamed: whom the launcher says it was. by_hydra: the launcher is Hydra, which kills the others where Open MPI
    terminates them. code: what the launcher ended with, which is the code of the rank that it ended for.
    """
    failed = [r for r in ranks if r.exit is not None and (r.exit.code != 0 or _amiss(r))]
    failed.sort(key=lambda r: (r.finished_at or _LATE, _followed(r), r.rank))
    failed = [r for r in failed if r.rank not in followers] or failed
    if not failed:
        return None
    called_abort = next((r for r in failed if mpirun_words.abort_code(r.last_lines, r.rank) is not None), None)
    if called_abort is not None:
        return called_abort
    first = failed[0]
    if code == _TERMINATED:  # it ended for one that was terminated, not for who missed that one, perhaps without a word
        first = next(filter(_terminated, failed), first)
    if not _followed(first) or first.rank == blamed or (_terminated(first) and code == _TERMINATED):
        return first
    by_itself = next((r for r in failed if not (_followed(r) or (by_hydra and _killed_by_nobody_known(r)))), first)
    known = first.finished_at is not None and by_itself.finished_at is not None
    later = (by_itself.finished_at or _LATE) - (first.finished_at or _LATE) > _SKEW
    return first if known and later else by_itself


def _who_aborted(named: mpirun_words.NamedProcess | None, seen: Observed) -> RankReport | None:
    """The rank the launcher says called MPI_Abort. Others notice at once, and may be gone before it is."""
    if named is None or not named.aborted:
        return None
    return next((r for r in seen.ranks if r.rank == named.rank and r.exit is not None and r.exit.code != 0), None)


def _ended_with(launcher: Member, rank: RankReport) -> bool:
    """A launcher that was killed takes its ranks along: they are signalled, and not to blame."""
    return launcher.exit is not None and launcher.exit.signal == exits.SIGKILL and _may_have_followed(rank)


def _may_have_followed(rank: RankReport) -> bool:
    assert rank.exit is not None
    signalled = exits.signal_of(rank.exit.code, rank.exit.signal) in (exits.SIGTERM, exits.SIGKILL)
    return signalled and not rank.exit.memory_limit_hit


def _followed(rank: RankReport) -> bool:
    """It was terminated, or gave up because its peer was gone: somebody else failed before, however little."""
    return _terminated(rank) or mpirun_words.lost_its_peer(rank.last_lines)


def _terminated(rank: RankReport) -> bool:
    return rank.exit is not None and exits.signal_of(rank.exit.code, rank.exit.signal) == exits.SIGTERM


def _first_lost(lost: Sequence[Lost], before: RankReport | None) -> Lost | None:
    """The loss that explains a rank's failure: of the rank's own host, or one that came earlier."""
    if before is None:
        return None
    for gone in lost:
        earlier = gone.at is not None and before.finished_at is not None and gone.at <= before.finished_at + _SKEW
        if gone.host == before.host.split(".", 1)[0] or earlier:
            return gone
    return None


def _lost(gone: Lost, seen: Observed) -> Cause:
    ranks = [r for r in seen.ranks if r.host.split(".", 1)[0] == gone.host]
    return Cause(
        summary=launcher_causes.line(Text("{host} was lost: {why}", host=gone.host, why=gone.words)),
        host=gone.host,
        rank=ranks[0].rank if len(ranks) == 1 else None,
        memory_limit_hit=gone.memory_limit_hit,
        last_lines=launcher_causes.tail(seen.launcher_lines),
    )


def _taken_away(job: Job, seen: Observed, first: RankReport | None) -> list[RankReport]:
    """Ranks whose host went when the job was scaled down, if that explains the failure that came first."""
    stay = {job.launcher_host, *job.hosts}
    ours = names.worker_name(job.name, 0)[:-1]
    ran = [r for r in seen.ranks if r.exit is None or r.exit.code != 0]
    away = [r for r in ran if (host := placement.short(r.host)).startswith(ours) and host not in stay]
    if first is None or _followed(first) or _killed_by_nobody_known(first):
        return away
    # Open MPI 5 has a rank that lost its peers end with a code of its own, without a word: then the time tells.
    went = min((seen.taken_away.get(placement.short(r.host), _LATE) for r in away), default=_LATE)
    return away if first.finished_at is not None and went <= first.finished_at else []


def _killed_by_nobody_known(rank: RankReport) -> bool:
    assert rank.exit is not None
    return exits.signal_of(rank.exit.code, rank.exit.signal) == exits.SIGKILL and not rank.exit.memory_limit_hit


def _killed_for_an_abort(rank: RankReport, ended: Exit, seen: Observed) -> bool:
    """Hydra kills all ranks when one calls MPI_Abort, ends with its code, and may do so before its words arrive. Of a
    rank that was killed by anything else every launcher tells."""
    heard = any(map(str.strip, seen.launcher_lines)) or mpirun_words.abort_code(rank.last_lines, rank.rank) is not None
    killed_too = ended.signal is not None or ended.code in (0, exits.SIGKILL, 128 + exits.SIGKILL)
    return not heard and not killed_too and all(r.exit and _killed_by_nobody_known(r) for r in seen.ranks)


def _tells_an_error(rank: RankReport) -> bool:
    traceback = any(line.startswith("Traceback (most recent call last)") for line in rank.last_lines)
    return traceback or known_errors.recognise(rank.last_lines) is not None


def _scaled_away(job: Job, seen: Observed, ranks: Sequence[RankReport]) -> Cause:
    host = placement.short(ranks[0].host)
    here = [r.rank for r in ranks if placement.short(r.host) == host]
    template = Text("{host} was removed while rank {ranks} ran there: the number of workers was set to {count}")
    return Cause(
        summary=launcher_causes.line(Text(template, host=host, ranks=", ".join(map(str, here)), count=job.workers)),
        host=host,
        rank=here[0] if len(here) == 1 else None,
        last_lines=launcher_causes.tail(seen.launcher_lines),
    )


def _rank(job: Job, rank: RankReport, seen: Observed) -> Cause:
    assert rank.exit is not None
    host, aborted = placement.short(rank.host), mpirun_words.abort_code(rank.last_lines, rank.rank)
    # Hydra kills the rank that called MPI_Abort; its own words tell the code.
    ending = launcher_causes.told_of(job, host, rank.exit if aborted is None else Exit(code=aborted))
    who = Text("rank {rank} on {host}", rank=rank.rank, host=launcher_causes.on_machine(host, seen))
    said = mpirun_words.dying_words(rank.last_lines) if ending.signal == exits.SIGABRT else None
    said = said or launcher_causes.crashed_at(ending, rank.last_lines)
    if ending.signal is None:
        error = mpirun_words.mpi_error(seen.launcher_lines, rank.rank)
        said = error or mpirun_words.own_last_word(rank.last_lines)
    why = amiss if (amiss := _amiss(rank)) not in ending.words else ""
    words = Text("{who} {did}", who=who, did=ending.words)
    words = Text("{what} ({why})", what=words, why=why) if why else words
    return Cause(
        summary=launcher_causes.line(Text("{what}: {why}", what=words, why=said) if said else words),
        rank=rank.rank,
        host=host,
        exit_code=ending.code,
        signal=ending.signal,
        memory_limit_hit=ending.memory_limit_hit,
        last_lines=launcher_causes.tail(rank.last_lines),
        hint=ending.hint if ending.memory_limit_hit else _hint_for(job, rank, seen) or ending.hint,
    )


def _amiss(rank: RankReport) -> str:
    """Besides how it ended."""
    return rank.reason or other_mpi.reason(rank)


def _hint_for(job: Job, rank: RankReport, seen: Observed) -> str | None:
    """From what the rank itself wrote; else from what the launcher did, less what it says whenever a rank fails."""
    code = rank.exit.code if rank.exit else 0
    known = known_errors.recognise((_amiss(rank), *rank.last_lines), code=code)
    known = known or known_errors.recognise(speakers.of_launcher_itself(seen), code=code, aftermath=False)
    if known is None:
        return _left_alone(rank, seen)
    error, line = known
    if error.name == "command-not-found" and (meant := known_errors.misspelt_launcher(line)):
        return meant
    if error.name == "mpi-mismatch" and rank.other_mpi is not None:
        return other_mpi.hint(rank.other_mpi)
    host, lines = placement.short(rank.host), (seen.line, job.launch)
    program = next((each.program[0] for each in lines if each is not None and each.program), "")
    if error.name in ("command-not-found", "relative-path") and code == 127 and (others := _hosts_that_ran(rank, seen)):
        template = Text("{host} lacks the program, {others} started it: install it there as well, at the same path")
        return Text(template, host=host, others=", ".join(others[:3]))
    if error.name == "python-module" and program.rpartition("/")[2].startswith("python"):
        module = (error.pattern.search(line) or {"module": ""})["module"]
        template = Text("install {module} in the Python that ran on {host}, with {python} -m pip")
        if "Error:" not in line:  # python -m
            template = Text("check the spelling of {module}, or install it with {python} -m pip on {host}")
        return Text(template, module=module, host=host, python=program)
    return launcher_causes.advice(error, job, seen)


def _hosts_that_ran(rank: RankReport, seen: Observed) -> list[str]:
    """Other hosts whose ranks did run the program: it wrote something, or ended well."""
    others = [r for r in seen.ranks if r.host != rank.host]
    if any(r.exit is not None and r.exit.code == 127 for r in others):
        return []
    ran = (r for r in others if r.last_lines or (r.exit is not None and r.exit.code == 0))
    return list(dict.fromkeys(placement.short(r.host) for r in ran))


def _left_alone(rank: RankReport, seen: Observed) -> str | None:
    """Of a rank whose peer was gone: which one had ended before, and well as it seemed."""
    if not mpirun_words.lost_its_peer(rank.last_lines) and rank.rank not in mpirun_words.lost_their_peers(
        seen.launcher_lines
    ):
        return None
    by_then = rank.finished_at or _LATE
    well = (r.rank for r in seen.ranks if r.exit == Exit(code=0) and (r.finished_at or _LATE) < by_then)
    template = Text("rank {rank} had ended with code 0 while others still needed it: each has to reach MPI_Finalize")
    return next((Text(template, rank=gone) for gone in well), None)
