"""`oarsman list`: one line per job."""

from __future__ import annotations

import click

from oarsman.cli import documents, options, render
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
    found = session.rows_with_documents(documents=output in ("json", "yaml"))
    if state is not None:
        wanted = state.lower()
        found = ((row, whole) for row, whole in found if wanted in (row.state.lower(), render.state(row).lower()))
    if output not in (None, "wide"):
        documents.emit_jobs([(row.key, whole) for row, whole in found], output)
    elif rows := [row for row, _ in found]:
        render.job_table(rows, session.now(), wide=output == "wide")
    elif not session.quiet:
        note(t("no jobs"))
