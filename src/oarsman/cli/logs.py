"""`oarsman logs`: what ranks and launcher wrote, now or as it comes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from oarsman.cli import options, render
from oarsman.cli.failures import note
from oarsman.cli.messages import t
from oarsman.cli.session import Session, pass_session, short
from oarsman.cli.times import parse_moment
from oarsman.cli.verbs import verb
from oarsman.cli.waiting import Reasons, never_started
from oarsman.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from oarsman.backends.base import JobRecord, LogQuery


@verb(
    "logs",
    help=t(
        "Show what a job wrote, in the order it was written. Every line carries its rank and host. "
        "Logs stay until the job is deleted."
    ),
    examples=[
        ("oarsman logs -f pi", t("follow until the job ends")),
        ("oarsman logs pi --rank 0 --rank 3 --no-tags", t("two ranks, without tags")),
        ("oarsman logs pi --worker 1 --stderr --tail 50", t("the last errors of one host")),
        ("oarsman logs pi --since 5m --timestamps", t("the last five minutes, with times")),
        ("oarsman logs pi --attempt 1", t("the attempt before the retry")),
    ],
)
@options.job
@click.option("-f", "--follow", is_flag=True, help=t("Go on until the job ends."))
@click.option(
    "--rank", "ranks", type=click.IntRange(min=0), multiple=True, metavar="N", help=t("Only this rank; repeatable.")
)
@click.option(
    "--worker",
    "workers",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help=t("Only ranks on this worker; repeatable."),
)
@click.option("--launcher", is_flag=True, help=t("Only what the launcher itself wrote."))
@click.option("--stderr", is_flag=True, help=t("Only what was written to stderr."))
@click.option("--since", metavar="TIME", help=t("Only lines since: 5m (ago), or 2026-01-31T08:00:00Z."))
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help=t("Only the last N lines."))
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help=t("Of this attempt; default: the newest."))
@click.option("--timestamps", is_flag=True, help=t("Begin every line with its time."))
@click.option("--no-tags", is_flag=True, help=t("Do not say which rank wrote a line."))
@options.output("json")
@options.place
@pass_session
def command(
    session: Session,
    name: str,
    follow: bool,
    ranks: tuple[int, ...],
    workers: tuple[int, ...],
    launcher: bool,
    stderr: bool,
    since: str | None,
    tail: int | None,
    attempt: int | None,
    timestamps: bool,
    no_tags: bool,
    output: str | None,
) -> None:
    from oarsman.backends.base import LogQuery
    from oarsman.cli.logview import Printer

    if launcher and (ranks or workers):
        raise UsageError(t("--launcher leaves out every rank: it goes with neither --rank nor --worker"))
    query = LogQuery(
        ranks=ranks,
        workers=workers,
        launcher_only=launcher,
        stream="err" if stderr else None,
        since=parse_moment(since, session.now()) if since else None,
        tail=tail,
        attempt=attempt,
        follow=follow,
    )
    key = session.key(name)
    _no_such_rank(session, key, query)
    silent = True
    try:
        with Printer(tags=not no_tags, timestamps=timestamps, as_json=output == "json") as printer:
            for part in _every_attempt(session, key, query) if follow and attempt is None else [query]:
                for line in session.jobs.logs(key, part):
                    silent = False
                    printer.write(line)
    except NotFoundError:  # a log that never began is not missed
        if not silent or _unstarted(session, key) is None:
            raise
    if silent and not session.quiet and (record := _unstarted(session, key)) is not None:
        why = render.message(record.status)
        said = t("{name} has not started: it is {state}", name=short(key), state=render.state(record))
        note(f"{said}: {render.shown(why, sys.stderr)}" if why else said)


def _no_such_rank(session: Session, key: str, query: LogQuery) -> None:
    """A rank that is not there would be waited for in silence. Of earlier attempts nobody knows how many they had."""
    if not query.ranks:
        return
    record = session.jobs.get(key)
    newest = record.status.attempt
    number = _ranks_there(record)
    missing = [rank for rank in query.ranks if number is not None and rank >= number]
    if number is None or not missing or (query.attempt and newest and query.attempt != newest.number):
        return
    raise NotFoundError(
        t("{name} has no rank {rank}", name=short(key), rank=", ".join(map(str, missing))),
        hint=t("its ranks are 0 to {last}", last=number - 1) if number > 1 else t("its only rank is 0"),
    )


def _ranks_there(record: JobRecord) -> int | None:
    """How many ranks a job has; None where only its launcher knows."""
    from oarsman.service.views import ranks_asked_for

    line, status = record.job.launch, record.status
    stated = ranks_asked_for(record.job) if line is not None and not line.in_shell and not line.elastic else None
    seen = max(status.placement, default=-1) + 1
    if stated is None:
        return seen if seen and status.finished else None
    return max(stated, seen)


def _unstarted(session: Session, key: str) -> JobRecord | None:
    """The job, if it never got so far that it could write anything."""
    try:
        record = session.jobs.get(key)
    except NotFoundError:
        return None
    return record if never_started(record.status) else None


def _every_attempt(session: Session, key: str, query: LogQuery) -> Iterator[LogQuery]:
    """The newest attempt, then those that follow it, until the job ends. `tail` counts for the first."""
    seen = 0
    reasons = Reasons()
    for record in session.jobs.watch(key):
        for text in [] if session.quiet or record.status.finished else reasons.news(record):
            note(text)
        numbers = [attempt.number for attempt in record.status.attempts if attempt.number > seen]
        for number in numbers if seen else numbers[-1:]:
            yield replace(query, attempt=number)
            query, seen = replace(query, tail=None), number
        if record.status.finished:
            return
