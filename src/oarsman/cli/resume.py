"""`oarsman resume`: let suspended jobs go on."""

from __future__ import annotations

from oarsman.cli import change, options
from oarsman.cli.messages import t
from oarsman.cli.session import Session, pass_session
from oarsman.cli.verbs import verb


@verb(
    "resume",
    help=t("Resume suspended jobs. They queue for room again and start as a new attempt."),
    examples=[("oarsman resume pi", "")],
)
@options.jobs
@options.output("json", "yaml", "name")
@options.place
@pass_session
def command(session: Session, names: tuple[str, ...], output: str | None) -> None:
    change.each(session, names, session.jobs.resume, said=t("{name} goes on"), output=output)
