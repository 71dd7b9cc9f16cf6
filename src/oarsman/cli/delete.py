"""`oarsman delete`: jobs with all their traces."""

from __future__ import annotations

import sys

import click

from oarsman.cli import documents, failures, options
from oarsman.cli.messages import t
from oarsman.cli.render import shown
from oarsman.cli.session import Session, pass_session, short
from oarsman.cli.verbs import verb
from oarsman.errors import NotFoundError, UsageError


@verb(
    "delete",
    help=t(
        "Delete jobs with their records and logs. Running ones are stopped first. "
        "Only --all on a terminal asks back, unless --yes is given."
    ),
    examples=[
        ("oarsman delete pi other/pi", t("two jobs, the second in namespace `other`")),
        ("oarsman delete --all --yes", t("everything, without a question")),
    ],
)
@options.any_jobs
@click.option("--all", "everything", is_flag=True, help=t("Every job, or every one in --namespace."))
@click.option("-y", "--yes", is_flag=True, help=t("Do not ask."))
@options.output("name")
@options.place
@pass_session
def command(session: Session, names: tuple[str, ...], everything: bool, yes: bool, output: str | None) -> int:
    if everything == bool(names):
        raise UsageError(t("say which jobs: names, or --all"))
    keys = [record.job.key for record in session.jobs.list(session.scope)] if everything else None
    if keys and not yes and sys.stdin.isatty():
        click.confirm(t("Delete {count} jobs with their logs?", count=len(keys)), abort=True, err=True)
    code = 0
    for key in keys if keys is not None else [session.key(name) for name in names]:
        code = _delete(session, key, output) or code
    return code


def _delete(session: Session, key: str, output: str | None) -> int:
    """One missing job does not keep the others."""
    try:
        session.jobs.delete(key)
    except NotFoundError as error:
        error.hint = error.hint or t("`oarsman list` shows the jobs there are")
        return failures.report(error, session)
    if output:
        click.echo(f"{documents.PREFIX}{short(key)}")
    elif not session.quiet:
        click.echo(t("{name} deleted", name=shown(short(key))))
    return 0
