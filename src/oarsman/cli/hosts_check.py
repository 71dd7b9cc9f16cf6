"""`oarsman hosts check`: every host and every way between two of them, step by step, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from oarsman.cli import documents, hosts_named, options
from oarsman.cli.failures import note
from oarsman.cli.hosts_shown import Shown, network_table
from oarsman.cli.messages import of, t
from oarsman.cli.progress import Progress
from oarsman.cli.session import Session, pass_session
from oarsman.cli.verbs import verb

if TYPE_CHECKING:
    from oarsman.engines.bare.over_ssh.checking import Course, Finding
    from oarsman.engines.bare.over_ssh.checking.network import Speed
    from oarsman.engines.bare.over_ssh.inventory import Inventory


@verb(
    "check",
    help=t(
        "Check the hosts, and every way from one to another: names, ports, host keys, logins, users, clocks, MPI, "
        "PATH, folders, disks, GPUs, and whether each can connect to an mpirun on the others; then run a real mpirun "
        "over all of them. Nothing is changed on any host. The exit code is 0 if nothing failed.\n\n"
        "Warnings are about what other programs need; jobs of oarsman run all the same."
    ),
    examples=[
        ("oarsman hosts check", ""),
        ("oarsman hosts check node1 node2 --network", t("two of them, and how fast the way between them is")),
        ("oarsman hosts check --leave-out", t("hosts that fail get no jobs until they pass")),
        ("oarsman hosts check -o json", t("every step, for programs")),
    ],
)
@hosts_named.names
@click.option("--leave-out", is_flag=True, help=t("Give hosts that fail no jobs, until a later check finds them well."))
@click.option("--network", is_flag=True, help=t("Also measure latency and bandwidth between all hosts."))
@options.output("wide", "json")
@hosts_named.inventory_option
@pass_session
def command(session: Session, names: tuple[str, ...], leave_out: bool, network: bool, output: str | None) -> int:
    import asyncio

    from oarsman.engines.bare.over_ssh.checking import FAIL, Course, unfit
    from oarsman.engines.bare.over_ssh.client import Ssh
    from oarsman.runtime.rack_trial import mpirun_or_job

    inventory = hosts_named.inventory_of(session)
    hosts = hosts_named.chosen(inventory, names)
    progress = Progress(wanted=not session.quiet)
    shown = Shown(every_step=output == "wide", quiet=session.quiet, progress=progress)
    course = Course(
        Ssh(inventory), hosts, real_run=mpirun_or_job,
        tell=(lambda findings: None) if output == "json" else shown.show,
        stage=lambda name: progress.show(_stage(name)),
    )  # fmt: skip
    try:
        findings, speeds = asyncio.run(_go(course, network=network, progress=progress))
    finally:
        progress.end()
    bad = unfit([host.name for host in hosts], findings)
    _keep(session, inventory, course, bad if leave_out else {})
    if output == "json":
        documents.emit(_document(inventory, findings, bad if leave_out else {}, speeds), "json")
    else:
        if network:
            network_table(speeds)
        shown.summary(findings, len(hosts))
        _say_left_out(bad, leave_out=leave_out)
    return 1 if any(finding.level == FAIL for finding in findings) else 0


def _stage(name: str) -> str:
    match name:
        case "hosts":
            return t("asking the hosts")
        case "ways":
            return t("trying the ways between the hosts")
        case _:
            return t("running mpirun over all hosts")


async def _go(course: Course, *, network: bool, progress: Progress) -> tuple[Sequence[Finding], Sequence[Speed]]:
    from oarsman.engines.bare.over_ssh.checking import OK
    from oarsman.engines.bare.over_ssh.checking.network import measure

    findings = await course.run()
    if not network or course.networks is None:
        return findings, []
    logins = {(found.host, found.other) for found in findings if found.step == "login" and found.level == OK}
    ends = course.networks.ends
    hosts = [host for host in course.hosts if host.name in ends]
    progress.show(t("measuring the network"))
    speeds = await measure(
        course.ssh, hosts, {name: end.address for name, end in ends.items()},
        lambda host, other: (host, other) in logins,
    )  # fmt: skip
    return findings, speeds


def _keep(session: Session, inventory: Inventory, course: Course, bad: dict[str, Finding]) -> None:
    from oarsman.engines.bare.over_ssh.checking import unfit
    from oarsman.runtime import rack_state

    def now() -> float:
        return session.now().timestamp()

    names = [host.name for host in course.hosts]
    failed = unfit(names, course.findings)
    rack_state.remember(inventory, course.seen.values(), clock=now)
    rack_state.checked(
        inventory, course.findings, fit=[name for name in names if name not in failed],
        unfit={name: finding.message for name, finding in bad.items()}, clock=now,
    )  # fmt: skip


def _say_left_out(bad: dict[str, Finding], *, leave_out: bool) -> None:
    for name, finding in bad.items():
        if leave_out:
            note(t("{name} is left out: {why}", name=name, why=of(finding.message)))
    if bad and not leave_out:
        note(t("`oarsman hosts check --leave-out` gives {names} no jobs until they pass", names=", ".join(bad)))


def _document(
    inventory: Inventory, findings: Sequence[Finding], bad: dict[str, Finding], speeds: Sequence[Speed]
) -> dict[str, Any]:
    from oarsman.engines.bare.over_ssh.checking import FAIL
    from oarsman.engines.bare.over_ssh.checking.network import BANDWIDTH_IS, LATENCY_IS

    found: dict[str, Any] = {
        "inventory": str(inventory.file),
        "ok": all(finding.level != FAIL for finding in findings),
        "findings": [asdict(finding) for finding in findings],
        "leftOut": {name: finding.message for name, finding in bad.items()},
    }
    if speeds:
        found["network"] = {
            "latencyIs": LATENCY_IS, "bandwidthIs": BANDWIDTH_IS, "ways": [asdict(speed) for speed in speeds],
        }  # fmt: skip
    return found
