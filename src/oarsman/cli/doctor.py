"""`oarsman doctor`: what this machine has, what it lacks, and what to install."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from oarsman.cli import documents, options, render
from oarsman.cli.session import Session
from oarsman.cli.text import of, t
from oarsman.cli.verbs import verb

if TYPE_CHECKING:
    from oarsman.backends.base import DoctorFinding


@verb(
    "doctor",
    t(
        "Check this machine: MPI, ssh, GPUs, cgroups, namespaces, and what to install. With --on ssh, check "
        "the hosts: whether they answer, and which MPI they have. With --on kube, check the cluster: server, "
        "MPIJobs, operator, nodes and your rights. The exit code is 0 unless no job could run at all."
    ),
    "oarsman doctor",
    ("oarsman doctor --on ssh --hosts hostfile", t("the hosts of that file")),
    ("oarsman doctor --on kube", t("the cluster of your kubeconfig")),
    ("oarsman doctor -o json", t("the findings as data")),
    of_place=True,
)
@options.output("json", "yaml")
@options.place
def command(session: Session, output: str | None) -> int:
    findings = _findings(session)
    hopeless = any(finding.blocking and finding.level == "missing" for finding in findings)
    if output:
        documents.emit([asdict(finding) for finding in findings], output)
    else:
        _show(findings, session, hopeless=hopeless)
    return 1 if hopeless else 0


def _findings(session: Session) -> Sequence[DoctorFinding]:
    if session.engine == "kube":
        from oarsman.backends.kube import doctor

        return session.run(doctor.examine(session.cluster()))
    if session.engine == "ssh":
        from oarsman.backends.local.doctor import examine_ssh_hosts

        return session.run(examine_ssh_hosts(session.hosts))
    from oarsman.backends.local.doctor import examine

    return examine()


def _show(findings: Sequence[DoctorFinding], session: Session, *, hopeless: bool) -> None:
    shown = [f for f in findings if f.level != "ok"] if session.quiet else findings
    if shown:
        render.table([t("STATE"), t("WHAT"), t("FOUND")], [[of(f.level), of(f.subject), of(f.message)] for f in shown])
    advice = [f for f in findings if f.advice]
    if advice:
        render.heading(t("What would help"))
        render.pairs([(of(f.subject), of(f.advice or "")) for f in advice], indent="  ")
    if not session.quiet:
        click.echo()
        click.echo(_verdict(session.engine, hopeless=hopeless))


def _verdict(engine: str, *, hopeless: bool) -> str:
    if engine == "kube":
        return t("No job can run on this cluster before that.") if hopeless else t("Jobs can run on this cluster.")
    if engine == "ssh":
        return t("No job can run on these hosts before that.") if hopeless else t("Jobs can run on these hosts.")
    return t("No job can run here before that.") if hopeless else t("Jobs can run here.")
