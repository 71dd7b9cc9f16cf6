"""The options and arguments that verbs share, each defined once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from oarsman import names
from oarsman.cli.session import Session, short
from oarsman.cli.text import parse_duration, t
from oarsman.cli.verbs import Common, remember
from oarsman.errors import OarsmanError

F = TypeVar("F", bound=Callable[..., Any])


def place(command: F) -> F:
    """Where the jobs are: engine, cluster and namespace."""
    return _place(command, "-n")


def place_long(command: F) -> F:
    """The same for verbs whose -n is the number of ranks."""
    return _place(command)


def _place(command: F, *short: str) -> F:
    return engine(_kept("namespace", "NS", t("The namespace meant by names that mention none."), *short)(command))


class _PlaceType(click.Choice[str]):
    """Also takes what a place was called before."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(names.PLACE_ALIASES.get(value, value), param, ctx)


def engine(command: F) -> F:
    """Which engine, which hosts and which cluster, for verbs that have no jobs to name."""
    command = _kept("token-file", "FILE", t("With --server, the file with its token (also: OARSMAN_TOKEN)."))(command)
    command = click.option(
        "--server",
        cls=Common,
        metavar="URL",
        envvar="OARSMAN_SERVER",
        expose_value=False,
        is_eager=True,
        callback=_chosen("server"),
        help=t("The jobs of a server, as `oarsman serve` starts one (also: OARSMAN_SERVER)."),
    )(command)
    command = _kept("kubeconfig", "FILE", t("The file that says how to reach the cluster."))(command)
    command = _kept("context", "NAME", t("The context of the kubeconfig to use."))(command)
    command = _kept("hosts", "FILE", t("With --on ssh, the file that names the hosts (also: OARSMAN_HOSTS)."))(command)
    return click.option(
        "--on",
        cls=Common,
        type=_PlaceType(names.PLACES),
        metavar="[local|ssh|kube]",
        envvar="OARSMAN_ON",
        expose_value=False,
        is_eager=True,
        callback=_chosen("engine"),
        help=t("Where jobs run: on this machine (the default), on SSH hosts or on a cluster."),
    )(command)


def _chosen(attribute: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Keeps the value and where it comes from: what is on the command line goes before variables."""

    def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if not value:
            return
        session = ctx.ensure_object(Session)
        typed = ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if typed or session.said.get(attribute) != "option":
            setattr(session, attribute, value)
            session.said[attribute] = "option" if typed else "variable"

    return keep


def cluster(command: F) -> F:
    """For verbs that are about a cluster and nothing else: no --on is needed, and one is not in the way."""

    def choose(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
        ctx.ensure_object(Session).engine = "kube"

    command = _kept("kubeconfig", "FILE", t("The file that says how to reach the cluster."))(command)
    command = _kept("context", "NAME", t("The context of the kubeconfig to use."))(command)
    return click.option(
        "--on", cls=Common, type=click.Choice(["kube"]), hidden=True, expose_value=False, is_eager=True, callback=choose
    )(command)


def namespace(command: F) -> F:
    return _kept("namespace", "NS", t("The namespace meant by names that mention none."))(command)


def _kept(name: str, metavar: str, help: str, *short: str) -> Callable[[F], F]:
    return click.option(
        *short,
        f"--{name}",
        cls=Common,
        metavar=metavar,
        expose_value=False,
        is_eager=True,
        callback=remember(name.replace("-", "_")),
        help=help,
    )


def all_namespaces(command: F) -> F:
    return click.option(
        "-A",
        "--all-namespaces",
        is_flag=True,
        expose_value=False,
        callback=remember("everywhere"),
        help=t("Of every namespace; on a cluster the default is one."),
    )(command)


def output(*forms: str) -> Callable[[F], F]:
    """`-o`; None means the form for people."""
    return click.option(
        "-o", "--output", type=click.Choice(forms), metavar="FORM", help=t("Print as {forms}.", forms=", ".join(forms))
    )


def complete_job(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of jobs for the shell. A completion that cannot look is empty, never noisy."""
    try:
        rows = ctx.ensure_object(Session).rows()
    except (OarsmanError, OSError, ImportError):
        return []
    known = [(short(row.key), row.state) for row in rows]
    return [CompletionItem(name, help=word) for name, word in known if name.startswith(incomplete)]


job = click.argument("name", metavar="NAME", shell_complete=complete_job)
jobs = click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_job)
any_jobs = click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_job)
maybe_job = click.argument("name", metavar="[NAME]", required=False, shell_complete=complete_job)
file = click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
files = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True))


def seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A callback for options that take 30, 30s, 5m or 1m30s."""
    return None if value is None else parse_duration(value)
