"""`oarsman convert`: a manifest in the other version of the API."""

from __future__ import annotations

import click

from oarsman.cli import files, options
from oarsman.cli.failures import note
from oarsman.cli.messages import of, t
from oarsman.cli.text import safe
from oarsman.cli.verbs import verb


@verb(
    "convert",
    help=t(
        "Write a manifest in another version of the MPIJob API. The result goes to standard output; "
        "what the other version cannot say is named on standard error."
    ),
    examples=[
        ("oarsman convert old.yaml --to v2beta1 > new.yaml", ""),
        ("cat new.yaml | oarsman convert - --to v1", t("the other way, from a pipe")),
    ],
)
@options.file
@click.option("--to", "target", required=True, type=click.Choice(["v1", "v2beta1"]), help=t("The version to write."))
def command(file: str, target: str) -> None:
    from oarsman import manifest
    from oarsman.job.job import ApiVersion

    raw, source = files.read(file)
    converted = manifest.convert(raw, source, ApiVersion[target.upper()])
    click.echo(converted.text.rstrip("\n"))
    for loss in converted.losses:
        note(t("not kept: {loss}", loss=safe(of(loss))))
