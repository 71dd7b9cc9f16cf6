"""`oarsman completion`: the script that lets a shell complete verbs, options and names of jobs."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from oarsman.cli.messages import t
from oarsman.cli.verbs import verb
from oarsman.errors import UnsupportedError


@verb(
    "completion",
    help=t("Print a script for shell completion: of verbs, options and jobs. Load it from the shell's profile."),
    examples=[
        ('eval "$(oarsman completion bash)"', t("in ~/.bashrc")),
        ('eval "$(oarsman completion zsh)"', t("in ~/.zshrc")),
        ("oarsman completion fish | source", t("in ~/.config/fish/config.fish")),
    ],
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    from oarsman.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise UnsupportedError(t("no completion for {shell}", shell=shell))
    script = kind(cli, {}, "oarsman", "_OARSMAN_COMPLETE")
    click.echo(script.source_template % script.source_vars())
