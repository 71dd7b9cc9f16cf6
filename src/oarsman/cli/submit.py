"""`oarsman submit`: hand jobs to the supervisor and return."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from oarsman.cli import documents, options
from oarsman.cli.failures import note
from oarsman.cli.inputs import JobInput, WithCommand, hand_in, job_asked_for
from oarsman.cli.messages import t
from oarsman.cli.run import exit_code, show_failure
from oarsman.cli.session import Session, pass_session, short
from oarsman.cli.verbs import verb
from oarsman.cli.waiting import Reasons, told_if_nothing_happens

if TYPE_CHECKING:
    from oarsman.backends.base import JobRecord


@verb(
    "submit",
    cls=WithCommand,
    help=t(
        "Submit jobs and return at once. The supervisor runs them whether or not this terminal stays open; "
        "the names of the jobs are printed. Give manifests, - for standard input, or -n and a command."
    ),
    examples=[
        ("oarsman submit job.yaml other.yaml", t("every job of both files, or none if one has a mistake")),
        ("oarsman submit -n 4 --name night-run -- python3 -m mpi4py train.py", t("a command, without a manifest")),
        ("sed s/SEED/7/ job.yaml | oarsman submit -", t("a manifest from a pipe")),
        ("oarsman submit --wait job.yaml", t("return when it has ended, with its exit code")),
    ],
)
@job_asked_for
@click.option("--wait", is_flag=True, help=t("Return when the jobs have ended; the exit code is the first failure's."))
@click.option("--replace", is_flag=True, help=t("Take the place of an ended job of the same name."))
@options.output("json", "yaml", "name")
@options.place_long
@pass_session
def command(session: Session, asked: JobInput, wait: bool, replace: bool, output: str | None) -> int:
    wanted = asked.documents(session)  # all are read and checked before the first is submitted
    records = []
    for document in wanted:
        record = hand_in(session, document, replace=replace)
        records.append(record)
        if output in (None, "name"):
            click.echo(documents.reference(record) if output else short(record.job.key))
    if wait:
        records = [_ended(session, record) for record in records]
    if output in ("json", "yaml"):
        if len(records) == 1:
            documents.emit_record(records[0], output)
        else:
            documents.emit_records(records, output)
    return next(filter(None, (exit_code(record.status) for record in records)), 0) if wait else 0


def _ended(session: Session, record: JobRecord) -> JobRecord:
    reasons = Reasons()
    with told_if_nothing_happens(session, record.job.key, note):
        for record in session.jobs.watch(record.job.key):  # noqa: B020 - the newest is the one wanted
            for text in [] if session.quiet else reasons.news(record):
                note(text)
            if record.status.finished:
                if exit_code(record.status):
                    note(t("{name} failed", name=short(record.job.key)))
                    show_failure(record.status)
                break
    return record
