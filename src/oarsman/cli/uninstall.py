"""`oarsman uninstall`: take the operator away. Jobs stay unless they are meant."""

from __future__ import annotations

import sys

import click

from oarsman.cli import options
from oarsman.cli.install import show
from oarsman.cli.messages import t
from oarsman.cli.session import Session, pass_session
from oarsman.cli.verbs import verb
from oarsman.errors import UsageError


@verb(
    "uninstall",
    of_place=True,
    help=t(
        "Take the operator and its rights away from a cluster. The definition of MPIJobs stays, and every job with it; "
        "with --with-crd both go, and what runs ends."
    ),
    examples=[
        ("oarsman uninstall", t("the operator alone")),
        ("oarsman uninstall --with-crd --yes", t("everything, without a question")),
    ],
)
@click.option(
    "--namespace",
    "place",
    default="mpi-operator",
    metavar="NS",
    help=t("Where the operator lives; default: mpi-operator."),
)
@click.option("--with-crd", is_flag=True, help=t("Delete the definition of MPIJobs too, and so every job."))
@click.option("--force", is_flag=True, help=t("Take away what a Helm release brought, too."))
@click.option("-y", "--yes", is_flag=True, help=t("Do not ask."))
@options.cluster
@pass_session
def command(session: Session, place: str, with_crd: bool, force: bool, yes: bool) -> None:
    from oarsman.backends.kube import install
    from oarsman.backends.kube.errors import in_plain_words

    cluster = session.cluster()
    kube = session.run(cluster.kube())
    wanted = install.documents(install.InstallSettings(namespace=place))
    if not yes:
        _ask(cluster.access.server, session.run(install.count_jobs(kube)) if with_crd else None)
    with in_plain_words(cluster.access):
        for step in session.iterate(install.remove(kube, wanted, with_definition=with_crd, force=force)):
            show(step, session)


def _ask(server: str, jobs: int | None) -> None:
    if not sys.stdin.isatty():
        raise UsageError(t("this takes the operator away and asks first"), hint=t("--yes answers the question"))
    if jobs is None:
        question = t("Take the operator away from {server}? Type yes", server=server)
    else:
        question = t("Take the operator and {count} jobs away from {server}? Type yes", count=jobs, server=server)
    if click.prompt(question, default="no", show_default=False, err=True).strip().lower() not in ("yes", t("yes")):
        raise click.Abort
