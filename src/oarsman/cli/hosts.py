"""`oarsman hosts`: the SSH hosts that jobs run on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from oarsman.cli import documents, host_arguments, hosts_check, hosts_trust, options, render
from oarsman.cli.host_arguments import option
from oarsman.cli.session import Session, pass_session
from oarsman.cli.text import of, rfc3339, t
from oarsman.cli.verbs import family, verb
from oarsman.cli.waiting import StatusLine
from oarsman.text import units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oarsman.control.host_state import KnownHost
    from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
    from oarsman.plan.capacity.amounts import Capacity

FRESH_SECONDS = 60.0  # so long an answer of a host is repeated
LEFT_OUT = "left-out"


@verb(
    "list",
    help=t(
        "List the hosts: slots, load, memory, GPUs and MPI of each, and what jobs have of it. Hosts that said nothing "
        "within the last minute are asked again; those that cannot be reached show why."
    ),
    examples=[
        ("oarsman hosts list", ""),
        ("oarsman hosts list --hosts hostfile --refresh", t("as it is right now")),
        ("oarsman hosts list -o json", t("for programs")),
    ],
)
@click.option("--refresh", is_flag=True, help=t("Ask every host, however fresh its last answer is."))
@options.output("json", "wide", "name")
@host_arguments.inventory_option
@pass_session
def list_(session: Session, refresh: bool, output: str | None) -> None:
    inventory = host_arguments.inventory_of(session)
    if output == "name":
        for host in inventory.hosts:
            click.echo(host.name)
        return
    from oarsman.backends.ssh.backend import SshBackend
    from oarsman.control import host_state

    _ask(session, inventory, refresh=refresh)
    known, held = host_state.known(inventory), session.run(SshBackend(str(inventory.file)).held())
    rows = [Row(host, known[host.name], held.get(host.name)) for host in inventory.hosts]
    if output == "json":
        documents.emit([row.document() for row in rows], "json")
    else:
        _show(rows, session.now(), wide=output == "wide")


def _ask(session: Session, inventory: Inventory, *, refresh: bool) -> None:
    import asyncio

    from oarsman.control import host_state
    from oarsman.engines.hosts.ssh.client import Ssh, on_all
    from oarsman.engines.hosts.ssh.diagnose import HostSeen, ask

    oldest = session.now().timestamp() - FRESH_SECONDS
    known = host_state.known(inventory)
    stale = [host for host in inventory.hosts if refresh or _is_stale(known[host.name], oldest)]
    if not stale:
        return
    ssh, progress = Ssh(inventory), StatusLine(wanted=not session.quiet)
    left = {host.name for host in stale}

    async def one(host: SshHost) -> HostSeen:
        seen = await ask(ssh, host)
        left.discard(host.name)
        if left:
            progress.show(t("waiting for {names}", names=", ".join(sorted(left))))
        return seen

    progress.show(t("waiting for {names}", names=", ".join(sorted(left))))
    try:
        seen = asyncio.run(on_all(stale, one))
    finally:
        progress.end()
    host_state.remember(inventory, seen.values(), clock=lambda: session.now().timestamp())


def _is_stale(known: KnownHost, oldest: float) -> bool:
    """What was in the way may be out of it by now: people look here right after they have repaired something."""
    return known.at is None or known.at < oldest or known.trouble is not None


class Row:
    """One host, as it is shown."""

    def __init__(self, host: SshHost, known: KnownHost, held: Capacity | None) -> None:
        self.host, self.known, self.facts, self.held = host, known, known.facts, held

    @property
    def state(self) -> str:
        if self.known.left_out:
            return LEFT_OUT
        if self.known.trouble is not None:
            return self.known.trouble.kind
        return "ready" if self.known.ready else "unknown"

    @property
    def why(self) -> str:
        trouble = self.known.trouble
        return self.known.left_out or (trouble.message if trouble else "")

    @property
    def slots(self) -> int | None:
        return self.host.slots if self.host.slots is not None else self.facts.processors if self.facts else None

    @property
    def used(self) -> int:
        return round(self.held.cpus) if self.held else 0

    @property
    def free(self) -> int | None:
        """Of a host that cannot be used, nothing is free."""
        return None if self.slots is None or not self.known.ready else max(self.slots - self.used, 0)

    @property
    def gpus(self) -> int | None:
        return self.host.gpus if self.host.gpus is not None else len(self.facts.gpus) if self.facts else None

    @property
    def mpi(self) -> str:
        from oarsman.engines.hosts.ssh.diagnose.judge import first_mpi

        found = first_mpi(self.facts) if self.facts else None
        return str(found) if found else ""

    def cells(self, now: datetime, *, wide: bool) -> list[str]:
        facts = self.facts
        memory = f"{units.size(facts.memory_available)}/{units.size(facts.memory)}" if facts else ""
        mpi = self.mpi if wide else self.mpi.partition(" (")[0]
        at = datetime.fromtimestamp(self.known.at, UTC) if self.known.at else None
        cells = [
            self.host.name,
            self.state,
            _text(self.slots),
            _text(self.free),
            str(self.used),
            f"{facts.load:.2f}" if facts else "",
            memory,
            _text(self.gpus),
            mpi,
            units.age(at, now),
        ]
        if wide:
            who = f"{facts.user} ({facts.uid})" if facts else self.host.user
            cells += [facts.reached if facts else self.host.address, who, facts.folder if facts else self.host.folder]
        return cells

    def document(self) -> dict[str, Any]:
        facts, known = self.facts, self.known
        found: dict[str, Any] = {
            "name": self.host.name,
            "state": self.state,
            "slots": self.slots,
            "free": self.free,
            "used": self.used,
            "gpus": self.gpus,
            "mpi": self.mpi,
            "labels": self.host.labels,
            "lastCheck": rfc3339(datetime.fromtimestamp(known.at, UTC)) if known.at else None,
        }
        if facts:
            found |= {"load": facts.load, "memoryFree": facts.memory_available, "memory": facts.memory}
            found |= {"hostname": facts.hostname, "address": facts.reached, "user": facts.user, "uid": facts.uid}
            found |= {"processors": facts.processors, "gpuNames": facts.gpus, "folder": facts.folder}
        if known.trouble:
            trouble = known.trouble
            found["trouble"] = {"kind": trouble.kind, "message": trouble.message, "hint": trouble.hint}
        if known.left_out:
            since = rfc3339(datetime.fromtimestamp(known.left_out_at, UTC)) if known.left_out_at else None
            found["leftOut"] = {"why": known.left_out, "since": since}
        return found


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _show(rows: Sequence[Row], now: datetime, *, wide: bool) -> None:
    headers = [
        t("NAME"),
        t("STATE"),
        t("SLOTS"),
        t("FREE"),
        t("USED"),
        t("LOAD"),
        t("MEMORY"),
        t("GPUS"),
        "MPI",
        t("CHECKED"),
    ]
    headers += [t("ADDRESS"), t("USER"), t("FOLDER")] if wide else []
    troubled = any(row.why for row in rows)
    table = [row.cells(now, wide=wide) + ([of(row.why)] if troubled else []) for row in rows]
    render.table([*headers, t("REASON")] if troubled else headers, table)


command = family(
    "hosts",
    of_place=True,
    help=t(
        "Look at SSH hosts: machines that are reached over ssh and have an MPI, and nothing else. A file "
        "names them, as mpirun's hostfile does: --hosts, OARSMAN_HOSTS, or hosts.yaml, hosts or hostfile in "
        "~/.config/oarsman."
    ),
    examples=[
        ("oarsman hosts --hosts hostfile list", t("what there is, and what is free")),
        ("oarsman hosts check", t("every host, and every way between two of them")),
    ],
)
command.params.insert(0, option())
command.add_command(list_)
command.add_command(hosts_check.command)
command.add_command(hosts_trust.command)
