"""`oarsman list`: one line per job."""

from __future__ import annotations

import click

from oarsman.cli import documents, lookups, options, render
from oarsman.cli.failures import note
from oarsman.cli.messages import t
from oarsman.cli.session import Session, pass_session
from oarsman.cli.verbs import verb


@verb(
    "list",
    help=t("List the jobs, the newest last. Without --namespace, those of every namespace; on a cluster, of one."),
    examples=[
        ("oarsman list", ""),
        ("oarsman list -o wide", t("with slots, MPI, owner, attempt and what each job says of itself")),
        ("oarsman list --state Failed -o name | xargs oarsman delete", t("delete the jobs that failed")),
    ],
)
@click.option("--state", metavar="STATE", help=t("Only jobs in this state: Running, Queued, Failed, ..."))
@options.output("json", "yaml", "wide", "name")
@options.all_namespaces
@options.place
@pass_session
def command(session: Session, state: str | None, output: str | None) -> None:
    records = sorted(session.jobs.list(session.scope), key=lambda record: (record.created_at, record.job.key))
    if not records and session.scope is not None and lookups.lacks(session, session.scope):
        from oarsman.backends.kube.errors import no_namespace

        raise no_namespace(session.scope)
    if state is not None:
        wanted = state.lower()
        records = [one for one in records if wanted in (render.state(one).lower(), render.plain_state(one).lower())]
    if output in (None, "wide"):
        if records:
            render.job_table(records, session.now(), wide=output == "wide")
        elif not session.quiet:
            note(t("no jobs"))
    else:
        documents.emit_records(records, output)
