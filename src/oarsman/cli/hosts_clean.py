"""`oarsman hosts clean`: the copies of jobs' folders that are left on hosts."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from oarsman.cli import options, render
from oarsman.cli.session import Session
from oarsman.cli.text import of, t
from oarsman.cli.verbs import option, verb
from oarsman.errors import UsageError
from oarsman.text import units

if TYPE_CHECKING:
    from oarsman.engines.hosts.ssh.code.clean import FolderCopy
    from oarsman.engines.hosts.ssh.inventory import Inventory


@verb(
    "clean",
    t(
        "Remove the copies of jobs' folders from all hosts of an inventory, with everything that jobs wrote "
        "into them. Lists them first, and asks. Copies that a job still needs stay. Copied files are removed "
        "without this command when their last job is deleted."
    ),
    ("oarsman hosts clean --hosts hosts.txt --dry-run", t("only say what is there")),
    "oarsman hosts clean --hosts hosts.txt --yes",
)
@option("-y, --yes", t("Do not ask."))
@option("--dry-run", t("Remove nothing, only say what would be removed."))
@option(
    "--all",
    t("Also remove copies of jobs that this machine does not know, such as those of another machine."),
    "everything",
)
@options.inventory
def command(session: Session, yes: bool, dry_run: bool, everything: bool) -> int:
    from oarsman.backends.ssh.backend import SshBackend

    inventory = options.inventory_of(session)
    if not yes and not dry_run and not sys.stdin.isatty():
        raise UsageError(t("there is no terminal to ask on"), hint=t("use --yes, or --dry-run to look first"))
    found = look(session, inventory)
    jobs = session.run(SshBackend(str(inventory.file)).list())
    over = {record.job.uid: record.status.finished for record in jobs}
    chosen = {
        host: [one.name for one in there if all(over.get(uid, everything) for uid in one.jobs)]
        for host, there in found.items()
    }
    headers, stays = [t("HOST"), t("COPY"), t("SIZE"), ""], t("needed by a job")
    rows = [
        [host, one.name, units.size(one.bytes), "" if one.name in chosen[host] else stays]
        for host, there in found.items()
        for one in there
    ]
    if rows and not session.quiet:
        render.table(headers, rows)
    if not any(chosen.values()):
        if len(found) == len(inventory.hosts):
            session.say(t("nothing to do"))
    elif not dry_run:
        if not yes:
            click.confirm(t("Remove these, with what jobs wrote into them?"), abort=True, err=True)
        found = look(session, inventory, chosen)
    unseen = [host.name for host in inventory.hosts if host.name not in found]
    if unseen:
        session.note(t("not looked at: {hosts}; copies may be left there", hosts=", ".join(unseen)))
    return 1 if unseen else 0


def look(
    session: Session, inventory: Inventory, remove: Mapping[str, Sequence[str]] | None = None
) -> dict[str, list[FolderCopy]]:
    """What lies on each host that can be reached, once these have been removed; for the others it says why."""
    from oarsman.engines.hosts.ssh.client import Ssh, Trouble, on_all
    from oarsman.engines.hosts.ssh.code.clean import copies

    ssh = Ssh(inventory)
    found = asyncio.run(
        on_all(inventory.hosts, lambda host: copies(ssh, host, remove=(remove or {}).get(host.name, ())))
    )
    for trouble in found.values():
        if isinstance(trouble, Trouble):
            session.note(of(str(trouble)))
    return {name: there for name, there in found.items() if not isinstance(there, Trouble)}
