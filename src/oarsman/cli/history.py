"""`oarsman history`: the runs of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oarsman.cli import options, render
from oarsman.cli.session import Session, short
from oarsman.cli.text import local, t
from oarsman.cli.verbs import verb
from oarsman.text import units

if TYPE_CHECKING:
    from oarsman.service.models import JobSummary


@verb(
    "history",
    t(
        'Show the runs of a job, the newest first. `run --replace` and "Run again" in the console start the next run. '
        "Oarsman keeps the ten runs before it (OARSMAN_RUNS_KEPT: how many), on Kubernetes none. "
        "Without a name: the runs of every job."
    ),
    "oarsman history pi",
    ("oarsman logs pi --run 2", t("what the second run wrote")),
    ("oarsman history pi -o json | jq -r '.[].state'", t("for a script")),
)
@options.maybe_job
@options.output("json", "yaml")
@options.all_namespaces
@options.place
def command(session: Session, name: str | None, output: str | None) -> None:
    found: list[JobSummary] = []
    for row in session.rows() if name is None else [None]:
        if row is not None and row.run == 1:
            found.append(row)
        else:
            found += session.run(session.service.runs(row.key if row is not None else session.key(name or "")))
    data = [row.model_dump(mode="json", by_alias=True) for row in found]
    headers = [t("NAME"), t("RUN"), t("STATE"), t("SUBMITTED"), t("DURATION"), t("MESSAGE")]
    rows = [_row(session, row) for row in found]
    render.listing(session, output, data, headers, rows, t("no jobs"))


def _row(session: Session, row: JobSummary) -> list[str]:
    took = units.took(row.started, row.ended, session.now())
    return [short(row.key), str(row.run), row.state, local(row.created), took, render.message(row)]
