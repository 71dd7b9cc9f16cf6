"""`oarsman stop`: end jobs and keep their records."""

from __future__ import annotations

from oarsman.cli import change, options
from oarsman.cli.messages import t
from oarsman.cli.session import Session, pass_session
from oarsman.cli.verbs import verb


@verb(
    "stop",
    help=t(
        "Stop jobs for good: their processes end, their records and logs stay. "
        "A stopped job counts as failed, with the reason StoppedByUser."
    ),
    examples=[
        ("oarsman stop pi", ""),
        ("oarsman stop pi && oarsman wait pi --for finished", t("until nothing of it runs")),
    ],
)
@options.jobs
@options.output("json", "yaml", "name")
@options.place
@pass_session
def command(session: Session, names: tuple[str, ...], output: str | None) -> None:
    change.each(session, names, session.jobs.stop, said=t("{name} is being stopped"), output=output)
