"""`oarsman plan`: everything a job would be, before it is. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oarsman.cli import documents, options, render
from oarsman.cli.inputs import JobInput, WithCommand, job_asked_for
from oarsman.cli.session import Session
from oarsman.cli.text import of, t
from oarsman.cli.verbs import verb

if TYPE_CHECKING:
    from oarsman.job.job import Job
    from oarsman.service.models import FitView, PlanView


@verb(
    "plan",
    t(
        "Show how a job would run: hosts, slots, where each rank goes, hostfile, environment, the launch "
        "line as written and as it would run, and every object that would be created. Changes nothing."
    ),
    "oarsman plan job.yaml",
    ("oarsman plan -n 6 --workers 3 -- ./solver", t("of a command, without a manifest")),
    ("oarsman plan --on ssh --hosts hostfile job.yaml", t("on which hosts it would be")),
    ("oarsman plan job.yaml -o json", t("the same, for a program")),
    ("oarsman plan -n 4 -o manifest -- ./solver > job.yaml", t("the manifest that -n stands for, to keep")),
    cls=WithCommand,
)
@job_asked_for
@options.output("json", "yaml", "manifest")
@options.place_long
def command(session: Session, asked: JobInput, output: str | None) -> None:
    document = asked.document(session, "plan")
    if output == "manifest":
        documents.emit(document, "yaml")
        return
    from oarsman.manifest import job_from_document
    from oarsman.service.models import Create

    found = session.run(session.service.plan(Create(document=document)))
    job = job_from_document(document)
    if output:
        documents.emit(as_data(job, found), output)
    else:
        show(job, found)


def as_data(job: Job, found: PlanView) -> dict[str, object]:
    fit = {"fits": found.fit.now, "reason": found.fit.reason} if found.fit is not None else {}
    machines = {host: {"machine": machine} for host, machine in found.machines.items()}
    return {
        "job": job.key,
        **fit,
        "mpi": found.mpi,
        "hosts": [{"name": host, "slots": job.slots_per_worker, **machines.get(host, {})} for host in found.hosts],
        "ranks": found.ranks,
        "hostfile": found.hostfile,
        "discoverHosts": found.discover_hosts,
        "environment": found.environment,
        "launchLine": found.launch_line,
        "rewrittenLaunchLine": found.rewritten,
        "objects": found.objects,
        "notHonoured": found.not_honoured,
        "warnings": found.warnings,
    }


def show(job: Job, found: PlanView) -> None:
    render.pairs(
        [
            (t("Name"), job.key),
            (t("Room"), _room(found.fit) if found.fit is not None else ""),
            ("MPI", found.mpi or (t("none found; `oarsman doctor` says what to install") if found.fit is None else "")),
            *render.size_of(job),
        ]
    )
    render.heading(t("Hosts"))
    ranks = render.by_host(found.hosts, found.ranks)
    placed = {host: [str(job.slots_per_worker), own] for host, own in ranks.items()}
    launcher = {job.launcher_host: ["", ""]} if found.machines and job.launcher_host not in placed else {}
    render.host_table([t("SLOTS"), t("RANKS")], launcher | placed, found.machines)
    render.block(t("Launch line"), found.launch_line)
    if found.rewritten != found.launch_line:
        render.block(t("Launch line as it would run"), found.rewritten)
    render.block("/etc/mpi/hostfile", found.hostfile)
    render.block("/etc/mpi/discover_hosts.sh", found.discover_hosts)
    render.block(t("Environment"), "\n".join(f"{name}={value}" for name, value in sorted(found.environment.items())))
    render.block(t("Would be made"), "\n".join(map(of, found.objects)))
    render.block(t("Cannot be honoured here"), "\n".join(map(of, found.not_honoured)))
    render.block(t("Warnings"), "\n".join(map(of, found.warnings)))


def _room(fit: FitView) -> str:
    if fit.now:
        return t("fits: it can start now")
    why = of(fit.reason)
    return t("does not fit now: {why}", why=why) if fit.ever else t("does not fit, ever: {why}", why=why)
