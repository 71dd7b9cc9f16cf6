"""`oarsman version`: what to put into a report."""

from __future__ import annotations

import click

from oarsman.cli import documents, options
from oarsman.cli.messages import t
from oarsman.cli.verbs import verb
from oarsman.version import __version__


@verb(
    "version",
    help=t("Show the version of oarsman, of Python and of the system. Put its output into a report."),
    examples=[("oarsman version", ""), ("oarsman version -o json", t("the same, for a program"))],
)
@options.output("json", "yaml")
def command(output: str | None) -> None:
    import platform

    facts = {"oarsman": __version__, "python": platform.python_version(), "system": platform.platform()}
    if output:
        documents.emit(facts, output)
    else:
        for name, value in facts.items():
            click.echo(f"{name} {value}")
