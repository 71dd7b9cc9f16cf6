"""The options and arguments that verbs share, each defined once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from oarsman.cli.messages import t
from oarsman.cli.session import ENGINES, Session, short
from oarsman.cli.times import parse_duration
from oarsman.cli.verbs import Common, remember
from oarsman.errors import OarsmanError

F = TypeVar("F", bound=Callable[..., Any])


def place(command: F) -> F:
    """Where the jobs are: engine and namespace."""
    command = namespace(command)
    return click.option(
        "--on", cls=Common, type=click.Choice(ENGINES), envvar="OARSMAN_ON", expose_value=False, is_eager=True,
        callback=remember("engine"), help=t("Where jobs run; default: embedded, this machine."),
    )(command)  # fmt: skip


def namespace(command: F) -> F:
    return click.option(
        "--namespace", cls=Common, metavar="NS", expose_value=False, is_eager=True, callback=remember("namespace"),
        help=t("The namespace meant by names that mention none."),
    )(command)  # fmt: skip


def output(*forms: str) -> Callable[[F], F]:
    """`-o`; None means the form for people."""
    return click.option(
        "-o", "--output", type=click.Choice(forms), metavar="FORM", help=t("Print as {forms}.", forms=", ".join(forms))
    )


def complete_job(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of jobs for the shell. A completion that cannot look is empty, never noisy."""
    try:
        records = ctx.ensure_object(Session).jobs.list()
    except (OarsmanError, OSError, ImportError):
        return []
    known = [(short(record.job.key), record.status.phase) for record in records]
    return [CompletionItem(name, help=phase) for name, phase in known if name.startswith(incomplete)]


job = click.argument("name", metavar="NAME", shell_complete=complete_job)
jobs = click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_job)
any_jobs = click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_job)
maybe_job = click.argument("name", metavar="[NAME]", required=False, shell_complete=complete_job)
file = click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
files = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True))


def seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A callback for options that take 30, 30s, 5m or 1m30s."""
    return None if value is None else parse_duration(value)
