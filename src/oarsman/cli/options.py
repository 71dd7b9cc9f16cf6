"""The options and arguments that verbs share, each defined once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from oarsman import names as words
from oarsman.cli.session import Session, short
from oarsman.cli.text import of, parse_duration, t
from oarsman.cli.verbs import Common, Decorator, option, remember, together
from oarsman.errors import OarsmanError, UsageError
from oarsman.text.sentence import listed

if TYPE_CHECKING:
    from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost

COUNT = click.IntRange(min=1)
FROM_ZERO = click.IntRange(min=0)
PORT = click.IntRange(0, 65535)


class SecretFile(click.Path):
    """It is noted down, so that it is never copied to hosts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from oarsman.store.paths import note_secret

        if value != "-":
            note_secret(value)
        return super().convert(value, param, ctx)


SECRET = SecretFile(allow_dash=True)


# -- where the jobs are ------------------------------------------------------------------------------------
class _PlaceType(click.Choice[str]):
    """Also takes what a place was called before."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(words.PLACE_ALIASES.get(value, value), param, ctx)


def _chosen(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Keeps the value and where it comes from: what is on the command line goes before variables."""
    session, name = ctx.ensure_object(Session), param.name or ""
    typed = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    if value and (typed or session.said.get(name) != "option"):
        setattr(session, name, value)
        session.said[name] = "option" if typed else "variable"


def _on_cluster(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    ctx.ensure_object(Session).engine = "kube"


_ON = t("Where jobs run: on this machine (the default), on SSH hosts or on a cluster.")
_SERVER = t("Use the jobs of a server started with `oarsman serve` (also: OARSMAN_SERVER).")
_NAMESPACE = t("The namespace of jobs named without one.")
_context = option("--context NAME", t("The context of the kubeconfig to use."), cls=Common)
_kubeconfig = option("--kubeconfig FILE", t("The file that says how to reach the cluster."), cls=Common, type=SECRET)
_place = _PlaceType(words.PLACES)
_engine = together(
    option("--on [local|ssh|kube]", _ON, "engine", cls=Common, type=_place, envvar="OARSMAN_ON", callback=_chosen),
    option("--hosts FILE", t("With --on ssh, the file that names the hosts (also: OARSMAN_HOSTS)."), cls=Common),
    _context,
    _kubeconfig,
    option("--server URL", _SERVER, cls=Common, envvar="OARSMAN_SERVER", callback=_chosen),
    option(
        "--token-file FILE",
        t("With --server, the file with its token (also: OARSMAN_TOKEN)."),
        cls=Common,
        type=SECRET,
    ),
)
place = together(_engine, option("-n, --namespace NS", _NAMESPACE, cls=Common))
place_long = together(_engine, option("--namespace NS", _NAMESPACE, cls=Common))  # where -n is the number of ranks
# For verbs that are about a cluster and nothing else: no --on is needed, and one is not in the way.
cluster = together(
    click.option("--on", cls=Common, type=click.Choice(["kube"]), hidden=True, callback=_on_cluster),
    _context,
    _kubeconfig,
)
all_namespaces = option(
    "-A, --all-namespaces",
    t("Of every namespace; on a cluster the default is one."),
    "everywhere",
    expose_value=False,
    callback=remember,
)


# -- which jobs, files and times ---------------------------------------------------------------------------
def completing(look: Callable[[Session], Iterable[tuple[str, str | None]]]) -> Callable[..., list[CompletionItem]]:
    """Names for the shell, each with a word about it. A completion that cannot look is empty, never noisy."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            known = list(look(ctx.ensure_object(Session)))
        except (OarsmanError, OSError, ImportError):
            return []
        return [CompletionItem(name, help=word) for name, word in known if name.startswith(incomplete)]

    return complete


_complete = completing(lambda session: [(short(row.key), row.state) for row in session.rows()])
job = click.argument("name", metavar="NAME", shell_complete=_complete)
jobs = click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=_complete)
any_jobs = click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=_complete)
maybe_job = click.argument("name", metavar="[NAME]", required=False, shell_complete=_complete)
file = click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
files = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True))


run = option("--run N", t("Of this run, as `oarsman history` numbers them; default: the newest."), type=COUNT)


def output(*forms: str) -> Decorator:
    """`-o`; None means the form for people."""
    return option("-o, --output FORM", t("Print as {forms}.", forms=of(listed(forms))), type=click.Choice(forms))


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from oarsman.version import __version__

        click.echo(f"oarsman {__version__}")
        ctx.exit()


version = option("--version", t("Show the version."), is_eager=True, expose_value=False, callback=_version)


def seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A callback for options that take 30, 30s, 5m or 1m30s."""
    try:
        return None if value is None else parse_duration(value)
    except UsageError as error:
        raise UsageError(
            t("{option}: {problem}", option=param.opts[-1], problem=error.message), hint=error.hint
        ) from None


# -- which SSH hosts ---------------------------------------------------------------------------------------
_HOSTS = t("The hosts: an Open MPI hostfile, or YAML that says more (also: OARSMAN_HOSTS).")
inventory = option("--hosts FILE", _HOSTS, cls=Common)


def inventory_of(session: Session) -> Inventory:
    from oarsman.engines.hosts.ssh.inventory_file import find, load

    return load(find(session.hosts))


hosts = click.argument(
    "names",
    metavar="[HOST]...",
    nargs=-1,
    shell_complete=completing(lambda session: [(host.name, None) for host in inventory_of(session).hosts]),
)


def chosen_hosts(inventory: Inventory, names: Sequence[str]) -> list[SshHost]:
    """The hosts of these names; all of them without any."""
    from oarsman.backends.ssh.check import chosen

    return chosen(inventory, names)
