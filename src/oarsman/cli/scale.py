"""`oarsman scale`: more workers or fewer, while the job runs."""

from __future__ import annotations

import click

from oarsman.cli import change, options
from oarsman.cli.messages import t
from oarsman.cli.session import Session, pass_session
from oarsman.cli.verbs import verb
from oarsman.errors import UsageError


@verb(
    "scale",
    help=t(
        "Change the number of workers. A running elastic job (Horovod) learns of it through discover_hosts.sh; "
        "workers with the highest numbers go first."
    ),
    examples=[
        ("oarsman scale pi 4", ""),
        ("oarsman scale pi --workers 4", t("the same")),
        ("oarsman scale pi --replicas 1", t("in Kubernetes' word")),
    ],
)
@options.job
@click.argument("count", type=click.IntRange(min=1), required=False, metavar="[N]")
@click.option(
    "--workers",
    "--replicas",
    "workers",
    type=click.IntRange(min=1),
    metavar="N",
    help=t("How many workers there shall be."),
)
@options.output("json", "yaml", "name")
@options.place
@pass_session
def command(session: Session, name: str, count: int | None, workers: int | None, output: str | None) -> None:
    if (count is None) == (workers is None):
        raise UsageError(t("say once how many workers there shall be"), hint=f"oarsman scale {name} 4")
    wanted = count or workers or 1
    change.each(
        session,
        [name],
        lambda service, key: service.scale(key, wanted),
        said=t("{name} is to have {workers} workers", name="{name}", workers=wanted),
        output=output,
    )
