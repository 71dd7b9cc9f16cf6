"""Verbs about the command itself and the process behind it: `version`, `completion`, `supervisor`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from oarsman.cli import documents, options
from oarsman.cli.session import Session
from oarsman.cli.text import t
from oarsman.cli.verbs import verb
from oarsman.errors import UnsupportedError
from oarsman.version import __version__


@verb(
    "version",
    t("Show the version of oarsman, of Python and of the system. Put its output into a report."),
    "oarsman version",
    ("oarsman version -o json", t("the same, for a program")),
)
@options.output("json", "yaml")
def version_verb(_: Session, output: str | None) -> None:
    import platform

    facts = {"oarsman": __version__, "python": platform.python_version(), "system": platform.platform()}
    if output:
        documents.emit(facts, output)
    else:
        for name, value in facts.items():
            click.echo(f"{name} {value}")


@verb(
    "completion",
    t("Print a script for shell completion: of verbs, options and jobs. Load it from the shell's profile."),
    ('eval "$(oarsman completion bash)"', t("in ~/.bashrc")),
    ('eval "$(oarsman completion zsh)"', t("in ~/.zshrc")),
    ("oarsman completion fish | source", t("in ~/.config/fish/config.fish")),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_verb(_: Session, shell: str) -> None:
    from oarsman.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise UnsupportedError(t("no completion for {shell}", shell=shell))
    script = kind(cli, {}, "oarsman", "_OARSMAN_COMPLETE")
    click.echo(script.source_template % script.source_vars())


@verb(
    "supervisor",
    t(
        "Show or stop the supervisor, the process that manages jobs. It starts when it is needed and exits "
        "when there is nothing to do. Stopping it stops no job: jobs keep running, and the next command "
        "starts a new supervisor.\n\n"
        "A state folder has one supervisor, even if several machines share it. take-over is for a machine "
        "that is gone for good: jobs that were running there count as lost."
    ),
    "oarsman supervisor status",
    "oarsman supervisor stop",
    ("oarsman supervisor take-over", t("the machine that managed the jobs is gone for good")),
    of_place=True,
)
@click.argument("what", type=click.Choice(["status", "stop", "take-over"]))
def supervisor_verb(_: Session, what: str) -> None:
    from oarsman.backends.local.follow import SupervisorLink
    from oarsman.store.paths import Paths

    paths = Paths.default()
    if what == "take-over":
        paths.take_over()
        click.echo(t("{path} belongs to this machine now", path=paths.state))
        return
    caller = SupervisorLink(paths)
    pid = caller.pid()
    if pid is None:
        click.echo(t("no supervisor is running"))
    elif what == "status":
        click.echo(t("the supervisor runs as process {pid}", pid=pid))
    else:
        caller.stop()
        click.echo(t("the supervisor has ended"))
