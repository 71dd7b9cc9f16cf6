"""`oarsman logs`: what ranks and launcher wrote, now or as it comes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from oarsman.cli import options, render
from oarsman.cli.session import Session, short
from oarsman.cli.text import note, parse_moment, t
from oarsman.cli.verbs import option, verb
from oarsman.cli.waiting import Reasons, ShownJob, never_started
from oarsman.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from oarsman.cli.logview import Printer
    from oarsman.service.models import JobSummary, LogFilter


@verb(
    "logs",
    t(
        "Show what a job wrote, in the order it was written. Every line carries its rank and host. "
        "Logs stay until the job is deleted. `oarsman history` shows which earlier runs have theirs."
    ),
    ("oarsman logs -f pi", t("follow until the job ends")),
    ("oarsman logs pi --rank 0 --rank 3 --no-tags", t("two ranks, without tags")),
    ("oarsman logs pi --worker 1 --stderr --tail 50", t("the last errors of one host")),
    ("oarsman logs pi --since 5m --timestamps", t("the last five minutes, with times")),
    ("oarsman logs pi --attempt 1", t("the attempt before the retry")),
    ("oarsman logs pi --run 2", t("what the second run wrote")),
)
@options.job
@option("-f, --follow", t("Follow until the job ends."))
@option("--rank N", t("Only this rank; repeatable."), "ranks", type=options.FROM_ZERO, multiple=True)
@option("--worker N", t("Only ranks on this worker; repeatable."), "workers", type=options.FROM_ZERO, multiple=True)
@option("--launcher", t("Only what the launcher itself wrote."))
@option("--stderr", t("Only what was written to stderr."))
@option("--since TIME", t("Only lines since: 5m (ago), or 2026-01-31T08:00:00Z."))
@option("--tail N", t("Only the last N lines."), type=options.FROM_ZERO)
@option("--attempt N", t("Of this attempt; default: the newest."), type=options.COUNT)
@options.run
@option("--timestamps", t("Begin every line with its time."))
@option("--no-tags", t("Do not print rank and host before each line."))
@options.output("json")
@options.place
def command(
    session: Session,
    name: str,
    follow: bool,
    stderr: bool,
    since: str | None,
    tail: int | None,
    timestamps: bool,
    no_tags: bool,
    output: str | None,
    **filters: Any,
) -> None:
    from oarsman.cli.logview import Printer
    from oarsman.service.models import LogFilter
    from oarsman.store.live_lines import LiveLines

    only = LogFilter(stream="err" if stderr else None, **filters)
    if only.launcher and (only.ranks or only.workers):
        raise UsageError(t("--launcher leaves out every rank: it goes with neither --rank nor --worker"))
    moment = parse_moment(since, session.now()) if since else None
    key = session.key(name)
    _nobody_there(session, key, only)
    silent = True
    try:
        with Printer(tags=not no_tags, timestamps=timestamps, as_json=output == "json") as printer:
            every = follow and only.attempt is None and only.run is None
            if not every and not no_tags:
                printer.place(_machines(session, key, only))
            for number in _every_attempt(session, key, printer) if every else [only.attempt]:
                part = only.model_copy(update={"attempt": number})
                live = follow and printer.shows_live
                lines = session.service.lines(key, part, since=moment, tail=tail, follow=follow, live=live)
                for block in session.iterate(lines):
                    if isinstance(block, LiveLines):
                        printer.show_live(block)
                        continue
                    for line in block:
                        silent = False
                        printer.write(line)
                    printer.go_on()
                tail = None  # it counts for the first
    except NotFoundError:  # a log that never began is not missed
        if not silent or _unstarted(session, key, only.run) is None:
            raise
    if silent and not session.quiet and (row := _unstarted(session, key, only.run)) is not None:
        why = render.message(row)
        said = t("{name} has not started: it is {state}", name=short(key), state=row.state)
        note(t("{what}: {why}", what=said, why=render.shown(why, sys.stderr)) if why else said)


def _nobody_there(session: Session, key: str, only: LogFilter) -> None:
    """What does not exist would be waited for in silence."""
    if not only.ranks and not only.workers and not only.attempt:
        return
    name = short(key)
    shown = ShownJob.of(session.run(session.service.job(key, run=only.run)))
    newest = shown.status.attempt.number if shown.status.attempt is not None else None
    if newest and only.attempt and only.attempt > newest:
        hint = t("its attempts are 1 to {last}", last=newest) if newest > 1 else t("its only attempt is 1")
        raise NotFoundError(t("{name} has no attempt {number}", name=name, number=only.attempt), hint=hint)
    ranks = _ranks_there(shown)
    missing = [rank for rank in only.ranks if ranks is not None and rank >= ranks]
    # Of earlier attempts nobody knows how many ranks they had.
    if ranks is not None and missing and not (only.attempt and newest and only.attempt != newest):
        hint = t("its ranks are 0 to {last}", last=ranks - 1) if ranks > 1 else t("its only rank is 0")
        raise NotFoundError(t("{name} has no rank {rank}", name=name, rank=", ".join(map(str, missing))), hint=hint)
    workers = shown.job.workers
    missing = [number for number in only.workers if number >= workers and not _wrote(session, key, only, number)]
    if missing:
        hint = t("its workers are 0 to {last}", last=workers - 1) if workers > 1 else t("its only worker is 0")
        raise NotFoundError(
            t("{name} has no worker {number}", name=name, number=", ".join(map(str, missing))),
            hint=hint if workers else t("it has a launcher and no workers"),
        )


def _wrote(session: Session, key: str, only: LogFilter, worker: int) -> bool:
    """Whether a worker that is gone, as the job was made smaller, has left lines."""
    part = only.model_copy(update={"workers": (worker,)})
    return any(session.iterate(session.service.lines(key, part, since=None, tail=1, follow=False)))


def _ranks_there(shown: ShownJob) -> int | None:
    """How many ranks a job has; None where only its launcher knows."""
    line, status = shown.job.launch, shown.status
    stated = shown.summary.ranks if line is not None and not line.in_shell and not line.elastic else None
    seen = max(status.placement, default=-1) + 1
    if line is not None and line.in_shell:
        return None  # those that are seen are of the last launch; an earlier one may have had more
    if stated is None:
        return seen if seen and status.finished else None
    return max(stated, seen)


def _unstarted(session: Session, key: str, run: int | None) -> JobSummary | None:
    """The job, if it never got so far that it could write anything."""
    try:
        shown = ShownJob.of(session.run(session.service.job(key, run=run)))
    except NotFoundError:
        return None
    return shown.summary if never_started(shown.status) else None


def _machines(session: Session, key: str, only: LogFilter) -> Mapping[str, str]:
    """Known of the newest attempt only."""
    status = ShownJob.of(session.run(session.service.job(key, run=only.run))).status
    newest = status.attempt.number if status.attempt is not None else None
    return status.machines if only.attempt in (None, newest) else {}


def _every_attempt(session: Session, key: str, printer: Printer) -> Iterator[int]:
    """The newest attempt, then those that follow it, until the job ends."""
    seen = 0
    reasons = Reasons()
    for view in session.iterate(session.service.watch(key)):
        shown = ShownJob.of(view)
        for text in [] if session.quiet or shown.status.finished else reasons.news(shown):
            note(text)
        numbers = [attempt.number for attempt in shown.status.attempts if attempt.number > seen]
        for number in numbers if seen else numbers[-1:]:
            printer.place(shown.status.machines)
            yield number
            seen = number
        if shown.status.finished:
            return
