"""`oarsman get`: jobs as lines, or as the documents a cluster would show."""

from __future__ import annotations

from oarsman.cli import documents, options, render
from oarsman.cli.messages import t
from oarsman.cli.session import Session, pass_session
from oarsman.cli.verbs import verb


@verb(
    "get",
    help=t("Show jobs by name. With -o yaml or json, the whole MPIJob with its status, as Kubernetes would print it."),
    examples=[
        ("oarsman get pi", ""),
        ("oarsman get pi -o yaml", t("the document, status included")),
        ("oarsman get pi -o json | jq -r .status.cause.summary", t("one field, for a script")),
    ],
)
@options.jobs
@options.output("json", "yaml", "wide", "name")
@options.place
@pass_session
def command(session: Session, names: tuple[str, ...], output: str | None) -> None:
    views = [session.run(session.service.job(session.key(name))) for name in names]
    if output in (None, "wide"):
        render.job_table([view.summary for view in views], session.now(), wide=output == "wide")
    else:
        documents.emit_views(views, output)
