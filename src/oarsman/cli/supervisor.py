"""`oarsman supervisor`: see and end the process behind the jobs. Nobody needs it day to day."""

from __future__ import annotations

import click

from oarsman.cli.messages import t
from oarsman.cli.verbs import verb


@verb(
    "supervisor",
    of_place=True,
    help=t(
        "See or end the process that looks after jobs. It starts by itself when it is needed and leaves when nothing "
        "is left to do. Ending it ends no job: they go on, and the next command takes them up again."
    ),
    examples=[("oarsman supervisor status", ""), ("oarsman supervisor stop", "")],
)
@click.argument("what", type=click.Choice(["status", "stop"]))
def command(what: str) -> None:
    from oarsman.backends.local.supervisor_link import SupervisorLink
    from oarsman.store.paths import Paths

    caller = SupervisorLink(Paths.default())
    pid = caller.pid()
    if pid is None:
        click.echo(t("no supervisor is running"))
    elif what == "status":
        click.echo(t("the supervisor runs as process {pid}", pid=pid))
    else:
        caller.stop()
        click.echo(t("the supervisor has ended"))
