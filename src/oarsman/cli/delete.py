"""`oarsman delete`: jobs with all their traces."""

from __future__ import annotations

import sys
from contextlib import suppress

import click

from oarsman.cli import documents, failures, options
from oarsman.cli.messages import t
from oarsman.cli.render import shown
from oarsman.cli.session import Session, pass_session, short
from oarsman.cli.verbs import verb
from oarsman.errors import NotFoundError, UsageError
from oarsman.status.words import DELETING


@verb(
    "delete",
    help=t(
        "Delete jobs with their records and logs. Running ones are stopped first. "
        "Only --all on a terminal asks back, unless --yes is given."
    ),
    examples=[
        ("oarsman delete pi other/pi", t("two jobs, the second in namespace `other`")),
        ("oarsman delete --wait pi && oarsman run pi.yaml", t("when nothing of it is left, the next one")),
        ("oarsman delete --all --yes", t("everything, without a question")),
    ],
)
@options.any_jobs
@click.option("--all", "everything", is_flag=True, help=t("Every job, or every one in --namespace."))
@click.option("--wait", is_flag=True, help=t("Return when nothing of them is left."))
@click.option("-y", "--yes", is_flag=True, help=t("Do not ask."))
@options.output("name")
@options.place
@pass_session
def command(
    session: Session, names: tuple[str, ...], everything: bool, wait: bool, yes: bool, output: str | None
) -> int:
    if everything == bool(names):
        raise UsageError(t("say which jobs: names, or --all"))
    keys = [row.key for row in session.rows()] if everything else None
    if keys and not yes and sys.stdin.isatty():
        click.confirm(t("Delete {count} jobs with their logs?", count=len(keys)), abort=True, err=True)
    code = 0
    marked = []
    for key in keys if keys is not None else [session.key(name) for name in names]:
        failed = _delete(session, key, output, waits=wait)
        code = failed or code
        if not failed:
            marked.append(key)
    for key in marked if wait else ():  # all are marked by now: they go side by side
        _await_end(session, key)
        if not output:
            _say_deleted(session, key)
    return code


def _delete(session: Session, key: str, output: str | None, *, waits: bool) -> int:
    """One missing job does not keep the others."""
    try:
        session.run(session.service.delete(key))
    except NotFoundError as error:
        error.hint = error.hint or t("`oarsman list` shows the jobs there are")
        return failures.report(error, session)
    if output:
        click.echo(documents.reference(key))
    elif not session.quiet and not waits:
        if _is_there(session, key):
            click.echo(t("{name} is being deleted", name=shown(short(key))))
        else:
            _say_deleted(session, key)
    return 0


def _say_deleted(session: Session, key: str) -> None:
    if not session.quiet:
        click.echo(t("{name} deleted", name=shown(short(key))))


def _is_there(session: Session, key: str) -> bool:
    """A cluster's job is marked at once and gone when its pods are. One of the same name may be new: it counts not."""
    try:
        return session.run(session.service.job(key)).summary.state == DELETING
    except NotFoundError:
        return False


def _await_end(session: Session, key: str) -> None:
    with suppress(NotFoundError):
        if _is_there(session, key):
            for _ in session.iterate(session.service.watch(key)):
                pass
