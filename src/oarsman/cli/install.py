"""`oarsman install`: MPIJobs and their operator for a cluster. `oarsman uninstall`: the operator goes, jobs stay."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from oarsman.cli import documents, options
from oarsman.cli.session import Session
from oarsman.cli.text import t
from oarsman.cli.verbs import option, verb
from oarsman.errors import AccessError, ClusterError, UsageError
from oarsman.text.sentence import Text, sentences

if TYPE_CHECKING:
    from oarsman.backends.kube.install import InstallStep


@verb(
    "install",
    t(
        "Install Oarsman on a Kubernetes cluster: the definition of MPIJobs, the operator and its rights. "
        "Prints each object and whether it was created or changed. Run it again to upgrade."
    ),
    (
        "oarsman install --image registry.example/oarsman:1.0",
        t("on the cluster of your kubeconfig, with an image that you built and pushed"),
    ),
    ("oarsman install --image registry.example/oarsman:1.0 --context lab", t("on another cluster")),
    ("oarsman install --dry-run", t("only say what would be done")),
    (
        "oarsman install --image registry.example/oarsman:1.0 -o yaml | kubectl apply -f -",
        t("the objects, for another tool"),
    ),
    of_place=True,
)
@option("--namespace NS", t("Where the operator lives; default: mpi-operator."), default="mpi-operator")
@option("--image IMAGE", t("The operator's image, with its tag; build and push one first."))
@option("--kubectl-delivery-image IMAGE", t("An image with kubectl, for launchers of v1 jobs."), "kubectl_image")
@option("--watch-namespaces NS,...", t("Only jobs of these namespaces; default: all."), "watch", default="")
@option("--dry-run", t("Change nothing."))
@option("--force", t("Take over what a Helm release brought."))
@option("--no-wait", t("Do not wait until the operator runs."))
@option("--timeout TIME", t("Wait no longer than this; default: 5m."), callback=options.seconds, default="5m")
@options.output("json", "yaml")
@options.cluster
def command(
    session: Session,
    watch: str,
    dry_run: bool,
    force: bool,
    no_wait: bool,
    timeout: float,
    output: str | None,
    **more: Any,
) -> None:
    from oarsman.backends.kube import install
    from oarsman.backends.kube.lookups import in_plain_words

    watched = tuple(name.strip() for name in watch.split(",") if name.strip())
    wanted = install.documents(install.InstallSettings(watch=watched, **more))
    if output == "yaml":
        from oarsman.manifest import to_yaml

        click.echo(to_yaml(wanted).rstrip("\n"))
        return
    if output:
        documents.emit({"apiVersion": "v1", "kind": "List", "items": wanted}, output)
        return
    cluster = session.cluster()
    with in_plain_words(cluster.access):
        kube = session.run(cluster.kube())
        for step in session.iterate((install.preview if dry_run else install.apply)(kube, wanted, force=force)):
            show(step, session)
        if not (dry_run or no_wait):
            for step in session.iterate(install.ready(kube, wanted, timeout)):
                show(step, session)


def show(step: InstallStep, session: Session) -> None:
    words = {
        "created": t("created"),
        "configured": t("configured"),
        "unchanged": t("unchanged"),
        "missing": t("would be created"),
        "present": t("is there, and would be brought up to date"),
        "deleted": t("deleted"),
        "absent": t("was not there"),
        "kept": t("kept"),
        "waiting": t("starting, {detail} pods", detail=step.detail),
        "stuck": t("waits: {detail}", detail=step.detail),
        "ready": t("runs, {detail} pods", detail=step.detail),
    }
    if not session.quiet:
        click.echo(f"{step.object} {words[step.what]}")
        if step.no_image:
            click.echo(f"  {t('hint: ')}{t('--image names an image that the cluster can pull')}")


@verb(
    "uninstall",
    t(
        "Remove the operator and its rights from a cluster. The definition of MPIJobs and all jobs stay; "
        "--with-crd deletes them too, and ends running jobs."
    ),
    ("oarsman uninstall", t("the operator alone")),
    ("oarsman uninstall --with-crd --yes", t("everything, without a question")),
    of_place=True,
)
@option("--namespace NS", t("Where the operator lives; default: mpi-operator."), default="mpi-operator")
@option("--with-crd", t("Delete the definition of MPIJobs too, and so every job."))
@option("--force", t("Also remove what a Helm release installed."))
@option("-y, --yes", t("Do not ask."))
@options.cluster
def uninstall_verb(session: Session, namespace: str, with_crd: bool, force: bool, yes: bool) -> None:
    from oarsman.backends.kube import install
    from oarsman.backends.kube.lookups import in_plain_words

    try:
        cluster = session.cluster()
        kube = session.run(cluster.kube())
        wanted = install.documents(install.InstallSettings(namespace=namespace))
        if not yes:
            _ask(cluster.access.server, session.run(install.count_jobs(kube)) if with_crd else None)
        with in_plain_words(cluster.access):
            for step in session.iterate(install.remove(kube, wanted, with_definition=with_crd, force=force)):
                show(step, session)
    except (AccessError, ClusterError) as error:
        error.hint = sentences(filter(None, (error.hint, _FROM_THIS_MACHINE)))
        raise


_FROM_THIS_MACHINE = Text(
    "this verb is for clusters. From this machine Oarsman is removed with `oarsman delete --all --yes`, "
    "`oarsman supervisor stop`, `rm -rf ~/.local/state/oarsman` and `pip uninstall oarsman`"
)


def _ask(server: str, jobs: int | None) -> None:
    if not sys.stdin.isatty():
        raise UsageError(t("this takes the operator away and asks first"), hint=t("--yes answers the question"))
    if jobs is None:
        question = t("Take the operator away from {server}? Type yes", server=server)
    else:
        question = t("Take the operator and {count} jobs away from {server}? Type yes", count=jobs, server=server)
    if click.prompt(question, default="no", show_default=False, err=True).strip().lower() not in ("yes", t("yes")):
        raise click.Abort
