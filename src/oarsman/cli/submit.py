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
from oarsman.cli.shown_job import ShownJob
from oarsman.cli.verbs import verb
from oarsman.cli.waiting import Reasons, told_if_nothing_happens

if TYPE_CHECKING:
    from oarsman.service.models import JobView


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
    views = []
    for document in wanted:
        view = hand_in(session, document, replace=replace)
        views.append(view)
        if output in (None, "name"):
            click.echo(documents.reference(view.summary.key) if output else short(view.summary.key))
    if wait:
        views = [_ended(session, view) for view in views]
    if output in ("json", "yaml"):
        documents.emit_views(views, output)
    return next(filter(None, (exit_code(ShownJob.of(view)) for view in views)), 0) if wait else 0


def _ended(session: Session, view: JobView) -> JobView:
    key, reasons = view.summary.key, Reasons()
    with told_if_nothing_happens(session, key, note):
        for view in session.iterate(session.service.watch(key)):
            shown = ShownJob.of(view)
            for text in [] if session.quiet else reasons.news(shown):
                note(text)
            if shown.status.finished:
                if exit_code(shown):
                    note(t("{name} failed", name=short(key)))
                    show_failure(shown)
                break
    return view
