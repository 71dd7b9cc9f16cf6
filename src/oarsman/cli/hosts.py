"""`oarsman hosts`: the SSH hosts that jobs run on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from oarsman.cli import documents, hosts_check, hosts_clean, hosts_trust, options, render
from oarsman.cli.session import Session
from oarsman.cli.text import of, t
from oarsman.cli.verbs import family, option
from oarsman.cli.waiting import StatusLine
from oarsman.text import units

if TYPE_CHECKING:
    from oarsman.control.host_state import KnownHost
    from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
    from oarsman.plan.capacity.amounts import Capacity

FRESH_SECONDS = 60.0  # so long an answer of a host is repeated

command = family(
    "hosts",
    t(
        "List, check and set up SSH hosts: machines with an sshd and an MPI. A file names them, as mpirun's "
        "hostfile does: --hosts, OARSMAN_HOSTS, or hosts.yaml, hosts or hostfile in ~/.config/oarsman."
    ),
    ("oarsman hosts --hosts hostfile list", t("what there is, and what is free")),
    ("oarsman hosts check", t("every host, and every way between two of them")),
    of_place=True,
    options=[options.inventory],
)


@command.verb(
    "list",
    t(
        "List the hosts: slots, load, memory, GPUs and MPI of each, and how much of it jobs use. Answers "
        "older than a minute, or than a job's failure on that host, are asked for again. A host that cannot be "
        "reached shows the reason."
    ),
    "oarsman hosts list",
    ("oarsman hosts list --hosts hostfile --refresh", t("as it is right now")),
    ("oarsman hosts list -o json", t("for programs")),
)
@option("--refresh", t("Ask every host, however fresh its last answer is."))
@options.output("json", "wide", "name")
@options.inventory
def list_(session: Session, refresh: bool, output: str | None) -> None:
    inventory = options.inventory_of(session)
    if output == "name":
        for host in inventory.hosts:
            click.echo(host.name)
        return
    from oarsman.backends.ssh.backend import SshBackend
    from oarsman.control import host_state

    jobs = SshBackend(str(inventory.file))
    _ask(session, inventory, session.run(jobs.failed_on()), refresh=refresh)
    known, held = host_state.known(inventory), session.run(jobs.held())
    rows = [_row(host, known[host.name], held.get(host.name)) for host in inventory.hosts]
    if output == "json":
        documents.emit(rows, "json")
    else:
        _show(inventory, rows, session.now(), wide=output == "wide")


def _ask(session: Session, inventory: Inventory, failed_on: Mapping[str, float], *, refresh: bool) -> None:
    import asyncio

    from oarsman.control import host_state
    from oarsman.engines.hosts.ssh.client import Ssh, on_all
    from oarsman.engines.hosts.ssh.diagnose import HostSeen, ask

    def is_stale(known: KnownHost) -> bool:
        """What was in the way may be out of it by now: people look here right after they have repaired something."""
        oldest = session.now().timestamp() - FRESH_SECONDS
        oldest = max(oldest, failed_on.get(known.host, oldest))  # a job may have lost it since
        return refresh or known.at is None or known.at < oldest or known.trouble is not None

    known = host_state.known(inventory)
    stale = [host for host in inventory.hosts if is_stale(known[host.name])]
    if not stale:
        return
    ssh, progress = Ssh(inventory), StatusLine(wanted=not session.quiet)
    left = {host.name for host in stale}

    def show_progress() -> None:
        progress.show(t("waiting for {names}", names=", ".join(sorted(left))))

    async def one(host: SshHost) -> HostSeen:
        seen = await ask(ssh, host)
        left.discard(host.name)
        if left:
            show_progress()
        return seen

    show_progress()
    try:
        seen = asyncio.run(on_all(stale, one))
    finally:
        progress.end()
    host_state.remember(inventory, seen.values(), clock=lambda: session.now().timestamp())


def _row(host: SshHost, known: KnownHost, held: Capacity | None) -> dict[str, Any]:
    """One host, as programs are told of it."""
    from oarsman.engines.hosts.ssh.diagnose.judge import first_mpi

    facts, trouble = known.facts, known.trouble
    used = round(held.cpus) if held else 0
    slots, gpus, mpi = host.slots, host.gpus, None
    if facts:
        slots = facts.processors if slots is None else slots
        gpus = len(facts.gpus) if gpus is None else gpus
        mpi = first_mpi(facts)
    found: dict[str, Any] = {
        "name": host.name,
        "state": "ready" if known.ready else "unknown",
        "slots": slots,
        "free": max(slots - used, 0) if slots is not None and known.ready else None,  # what cannot be used is not free
        "used": used,
        "gpus": gpus,
        "mpi": str(mpi or ""),
        "labels": host.labels,
        "lastCheck": datetime.fromtimestamp(known.at, UTC) if known.at else None,
    }
    if facts:
        found |= {"load": facts.load, "memoryFree": facts.memory_available, "memory": facts.memory}
        found |= {"hostname": facts.hostname, "address": facts.reached, "user": facts.user, "uid": facts.uid}
        found |= {"processors": facts.processors, "gpuNames": facts.gpus, "folder": facts.folder}
    if trouble:
        found["state"] = trouble.kind
        found["trouble"] = {"kind": trouble.kind, "message": trouble.message, "hint": trouble.hint}
    if known.left_out:
        found["state"] = "left-out"
        since = datetime.fromtimestamp(known.left_out_at, UTC) if known.left_out_at else None
        found["leftOut"] = {"why": known.left_out, "since": since}
    return found


def _cells(host: SshHost, row: Mapping[str, Any], now: datetime, *, wide: bool) -> list[str]:
    slots, free, gpus = ("" if row[name] is None else str(row[name]) for name in ("slots", "free", "gpus"))
    load = memory = ""
    if "load" in row:
        load, memory = f"{row['load']:.2f}", f"{units.size(row['memoryFree'])}/{units.size(row['memory'])}"
    mpi = row["mpi"] if wide else row["mpi"].partition(" (")[0]
    age = units.age(row["lastCheck"], now)
    cells = [row["name"], row["state"], slots, free, str(row["used"]), load, memory, gpus, mpi, age]
    if wide:
        user = f"{row['user']} ({row['uid']})" if "user" in row else host.user
        cells += [row.get("address", host.address), user, row.get("folder", host.folder)]
    return cells


def _show(inventory: Inventory, rows: Sequence[Mapping[str, Any]], now: datetime, *, wide: bool) -> None:
    headers = [t("NAME"), t("STATE"), t("SLOTS"), t("FREE"), t("USED"), t("LOAD"), t("MEMORY"), t("GPUS"), "MPI"]
    headers += [t("CHECKED"), *([t("ADDRESS"), t("USER"), t("FOLDER")] if wide else [])]
    table = [_cells(host, row, now, wide=wide) for host, row in zip(inventory.hosts, rows, strict=True)]
    reasons = [row["leftOut"]["why"] if "leftOut" in row else row.get("trouble", {}).get("message", "") for row in rows]
    if any(reasons):
        headers.append(t("REASON"))
        table = [[*cells, of(why)] for cells, why in zip(table, reasons, strict=True)]
    render.table(headers, table)


command.add_command(hosts_check.command)
command.add_command(hosts_trust.command)
command.add_command(hosts_clean.command)
