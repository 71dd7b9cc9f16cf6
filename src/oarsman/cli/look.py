"""The verbs that show several jobs at once: in lines, as documents, what happened to them, what they use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from oarsman.cli import documents, options, render
from oarsman.cli.session import Session, short
from oarsman.cli.text import t
from oarsman.cli.verbs import option, verb
from oarsman.names import QUEUED
from oarsman.text import units

if TYPE_CHECKING:
    from oarsman.service.models import EventView, HostUsageView, JobSummary


@verb(
    "list",
    t(
        "List the jobs, the newest last (with --state Queued, the next to start first), with the cause of each that "
        "failed and what each that waits is waiting for. "
        "Without --namespace, those of every namespace; on a cluster, of one."
    ),
    "oarsman list",
    ("oarsman list -o wide", t("with reason, slots, MPI, owner and attempt, and messages in full")),
    ("oarsman list --state Failed -o name | xargs oarsman delete", t("delete the jobs that failed")),
)
@option("--state STATE", t("Only jobs in this state: Running, Queued, Failed, ..."))
@options.output("json", "yaml", "wide", "name")
@options.all_namespaces
@options.place
def list_verb(session: Session, state: str | None, output: str | None) -> None:
    from oarsman.status.words import known

    wanted = known(state) if state is not None else None
    found: Iterable[tuple[JobSummary, Mapping[str, Any]]]
    found = session.rows_with_documents(documents=output in ("json", "yaml"))
    if wanted is not None:
        found = [(row, whole) for row, whole in found if row.state == wanted]
    if wanted == QUEUED:  # those far from the head have no number
        found = sorted(found, key=lambda pair: pair[0].queue_position or math.inf)
    if output not in (None, "wide"):
        documents.emit_jobs([(row.key, whole) for row, whole in found], output)
    elif rows := [row for row, _ in found]:
        render.job_table(rows, session.now(), wide=output == "wide")
    else:
        session.note(t("no jobs"))


@verb(
    "get",
    t("Show jobs by name. With -o yaml or json, the whole MPIJob with its status, as Kubernetes would print it."),
    "oarsman get pi",
    ("oarsman get pi -o yaml", t("the document, status included")),
    ("oarsman get pi -o json | jq -r .status.cause.summary", t("one field, for a script")),
)
@options.jobs
@options.output("json", "yaml", "wide", "name")
@options.place
def get_verb(session: Session, names: tuple[str, ...], output: str | None) -> None:
    views = [session.run(session.service.job(session.key(name))) for name in names]
    if output in (None, "wide"):
        render.job_table([view.summary for view in views], session.now(), wide=output == "wide")
    else:
        documents.emit_views(views, output)


@verb(
    "events",
    t("Show what happened to a job, oldest first. Without a name, to every job."),
    "oarsman events pi",
    ("oarsman events -o json", t("of every job, for a program")),
)
@options.maybe_job
@options.output("json", "yaml")
@options.all_namespaces
@options.place
def events_verb(session: Session, name: str | None, output: str | None) -> None:
    found = events_of(session, [session.key(name)] if name else None)
    if output:
        documents.emit_list([_event(job, event) for job, event in found], output)
    elif found:
        render.event_table([(short(job), event) for job, event in found], session.now(), with_job=name is None)
    else:
        session.note(t("no events"))


def events_of(session: Session, keys: list[str] | None, run: int | None = None) -> list[tuple[str, EventView]]:
    """(key, event), oldest first; of all jobs where no keys are given."""
    if keys is None:
        keys = [row.key for row in session.rows()]
    found = [(key, event) for key in keys for event in session.run(session.service.events(key, run=run))]
    return sorted(found, key=lambda pair: pair[1].time)


def _event(key: str, event: EventView) -> dict[str, Any]:
    """The event as Kubernetes would print it."""
    namespace, _, name = key.partition("/")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {"kind": "MPIJob", "namespace": namespace, "name": name},
        "type": event.severity,
        "reason": event.reason,
        "message": event.message,
        "count": event.count,
        "firstTimestamp": event.first_time,
        "lastTimestamp": event.time,
    }


@verb(
    "top",
    t("Show what every host of a job uses now: processes, CPU, memory, GPUs. Without a name, of every job that runs."),
    "oarsman top",
    ("oarsman top pi -o json", t("of one job, for a program")),
)
@options.maybe_job
@options.output("json", "yaml")
@options.all_namespaces
@options.place
def top_verb(session: Session, name: str | None, output: str | None) -> None:
    keys = [session.key(name)] if name else [row.key for row in session.rows() if not render.finished(row)]
    found = [(key, use) for key in keys for use in session.run(session.service.usage_now(key))]
    data = [{"job": key, **use.model_dump(mode="json", by_alias=True)} for key, use in found]
    headers = [t("NAME"), t("HOST"), t("ROLE"), t("PROCESSES"), "CPU", t("MEMORY"), t("LIMIT"), t("GPUS")]
    rows = [[short(key), *_usage(use)] for key, use in found]
    render.listing(session, output, data, headers, rows, t("nothing is running"))


def _usage(use: HostUsageView) -> list[str]:
    processes, gpus = "" if use.processes is None else str(use.processes), ",".join(map(str, use.gpus))
    memory, limit = units.size(use.memory_bytes), units.size(use.memory_limit_bytes)
    return [use.host, use.role, processes, f"{use.cpu_percent:.0f}%", memory, limit, gpus]
