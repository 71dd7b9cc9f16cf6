"""`oarsman suspend`: end the processes, keep the job."""

from __future__ import annotations

from oarsman.cli import change, options
from oarsman.cli.messages import t
from oarsman.cli.session import Session, pass_session
from oarsman.cli.verbs import verb


@verb(
    "suspend",
    help=t(
        "Suspend jobs: their processes end, their records and logs stay. "
        "`oarsman resume` starts them again from the beginning of their work."
    ),
    examples=[("oarsman suspend pi", t("make room without losing the job"))],
)
@options.jobs
@options.output("json", "yaml", "name")
@options.place
@pass_session
def command(session: Session, names: tuple[str, ...], output: str | None) -> None:
    change.each(session, names, session.jobs.suspend, said=t("{name} is being suspended"), output=output)
