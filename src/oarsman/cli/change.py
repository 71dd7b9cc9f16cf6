"""The verbs that change jobs: each does one thing to some of them and says so."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from oarsman.cli import documents, failures, options
from oarsman.cli.render import shown
from oarsman.cli.session import Session, short
from oarsman.cli.text import t
from oarsman.cli.verbs import PlainVerb, Verb, option, verb
from oarsman.errors import NotFoundError, UsageError
from oarsman.status.words import DELETING

if TYPE_CHECKING:
    from oarsman.service.contract import Service
    from oarsman.service.models import JobView


def plain_verb(name: str, plain: PlainVerb) -> Verb:
    @verb(name, plain.help, *plain.examples)
    @options.jobs
    @options.output("json", "yaml", "name")
    @options.place
    def command(session: Session, names: tuple[str, ...], output: str | None) -> None:
        each(session, names, lambda service, key: getattr(service, name)(key), said=t.of(plain.said), output=output)

    return command


def each(
    session: Session,
    names: Iterable[str],
    act: Callable[[Service, str], Coroutine[Any, Any, JobView]],
    *,
    said: str,
    output: str | None,
) -> None:
    """Act on every name in turn; say what was done (`said` has a place for {name}), or print the job as it is now."""
    views = []
    for name in names:
        key = session.key(name)
        views.append(session.run(act(session.service, key)))
        if output is None:
            session.say(said.format(name=shown(short(key))))
    documents.emit_views(views, output)


@verb(
    "scale",
    t(
        "Change the number of workers. A running elastic job (Horovod) learns of it through discover_hosts.sh; "
        "workers with the highest numbers go first."
    ),
    "oarsman scale pi 4",
    ("oarsman scale pi --workers 4", t("the same")),
    ("oarsman scale pi --replicas 1", t("in Kubernetes' word")),
)
@options.job
@click.argument("count", type=options.COUNT, required=False, metavar="[N]")
@option("--workers, --replicas N", t("The new number of workers."), "workers", type=options.COUNT)
@options.output("json", "yaml", "name")
@options.place
def scale_verb(session: Session, name: str, count: int | None, workers: int | None, output: str | None) -> None:
    if (count is None) == (workers is None):
        raise UsageError(t("say once how many workers there shall be"), hint=f"oarsman scale {name} 4")
    wanted = count or workers or 1
    each(
        session,
        [name],
        lambda service, key: service.scale(key, wanted),
        said=t("{name} is to have {workers} workers", name="{name}", workers=wanted)
        if wanted != 1
        else t("{name} is to have 1 worker", name="{name}"),
        output=output,
    )


@verb(
    "delete",
    t(
        "Delete jobs with their records, logs and earlier runs. Running jobs are stopped first. --all asks for "
        "confirmation, unless --yes is given; where no terminal can answer it needs --yes."
    ),
    ("oarsman delete pi other/pi", t("two jobs, the second in namespace `other`")),
    ("oarsman delete --wait pi && oarsman run pi.yaml", t("when nothing of it is left, the next one")),
    ("oarsman delete --all --yes", t("everything, without a question")),
)
@options.any_jobs
@option("--all", t("Every job, or every one in --namespace."), "everything")
@option("--wait", t("Return when nothing of them is left."))
@option("-y, --yes", t("Do not ask."))
@options.output("name")
@options.place
def delete_verb(
    session: Session, names: tuple[str, ...], everything: bool, wait: bool, yes: bool, output: str | None
) -> int:
    if everything == bool(names):
        raise UsageError(t("say which jobs: names, or --all"))
    if everything and not yes and not sys.stdin.isatty():
        raise UsageError(t("this deletes every job and asks first"), hint=t("--yes answers the question"))
    keys = [row.key for row in session.rows()] if everything else None
    if keys and not yes:
        click.confirm(t("Delete {count} jobs with their logs?", count=len(keys)), abort=True, err=True)
    code = 0
    marked = []
    for key in keys if keys is not None else [session.key(name) for name in names]:
        failed = _delete(session, key, output, waits=wait)
        code = failed or code
        if not failed:
            marked.append(key)
    for key in marked if wait else ():  # all are marked by now: they go side by side
        with suppress(NotFoundError):
            if _is_there(session, key):
                for _ in session.iterate(session.service.watch(key)):
                    pass
        if not output:
            session.say(t("{name} deleted", name=shown(short(key))))
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
        said = t("{name} is being deleted") if _is_there(session, key) else t("{name} deleted")
        click.echo(said.format(name=shown(short(key))))
    return 0


def _is_there(session: Session, key: str) -> bool:
    """A cluster's job is marked at once and gone when its pods are. One of the same name may be new: it counts not."""
    try:
        return session.run(session.service.job(key)).summary.state == DELETING
    except NotFoundError:
        return False
