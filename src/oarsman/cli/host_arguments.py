"""Which SSH hosts a command means: the inventory, and names of hosts in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from oarsman.cli.session import Session
from oarsman.cli.text import t
from oarsman.cli.verbs import Common, remember
from oarsman.errors import NotFoundError, OarsmanError

if TYPE_CHECKING:
    from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost

F = TypeVar("F", bound=Callable[..., Any])


def option() -> click.Option:
    return Common(
        ["--hosts"],
        metavar="FILE",
        expose_value=False,
        is_eager=True,
        callback=remember("hosts"),
        help=t("The hosts: an Open MPI hostfile, or YAML that says more (also: OARSMAN_HOSTS)."),
    )


def inventory_option(command: F) -> F:
    """--hosts behind the verb; the family takes it in front of it."""
    if not hasattr(command, "__click_params__"):
        command.__click_params__ = []  # type: ignore[attr-defined]
    command.__click_params__.append(option())  # type: ignore[attr-defined]
    return command


def inventory_of(session: Session) -> Inventory:
    from oarsman.engines.hosts.ssh.inventory_file import find, load

    return load(find(session.hosts))


def chosen(inventory: Inventory, names: Sequence[str]) -> list[SshHost]:
    """The hosts of these names; all of them without any."""
    for name in names:
        if inventory.host(name) is None:
            from difflib import get_close_matches

            near = get_close_matches(name, [host.name for host in inventory.hosts], n=1)
            hint = t("did you mean {names}?", names=near[0]) if near else t("`oarsman hosts list` shows the hosts")
            raise NotFoundError(t("there is no host '{name}' in {file}", name=name, file=inventory.file), hint=hint)
    return [host for host in inventory.hosts if not names or host.name in names]


def _complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A completion that cannot look is empty, never noisy."""
    try:
        found = inventory_of(ctx.ensure_object(Session)).hosts
    except (OarsmanError, OSError, ImportError):
        return []
    return [CompletionItem(host.name) for host in found if host.name.startswith(incomplete)]


names = click.argument("names", metavar="[HOST]...", nargs=-1, shell_complete=_complete)
