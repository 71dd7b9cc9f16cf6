"""`oarsman events`: what happened, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oarsman.cli import documents, options, render
from oarsman.cli.failures import note
from oarsman.cli.messages import t
from oarsman.cli.session import Session, pass_session, short
from oarsman.cli.verbs import verb

if TYPE_CHECKING:
    from oarsman.service.models import EventView


@verb(
    "events",
    help=t("Show what happened to a job, oldest first. Without a name, to every job."),
    examples=[("oarsman events pi", ""), ("oarsman events -o json", t("of every job, for a program"))],
)
@options.maybe_job
@options.output("json", "yaml")
@options.all_namespaces
@options.place
@pass_session
def command(session: Session, name: str | None, output: str | None) -> None:
    found = of_jobs(session, [session.key(name)] if name else None)
    if output:
        documents.emit_list([document(job, event) for job, event in found], output)
    elif found:
        render.event_table([(short(job), event) for job, event in found], session.now(), with_job=name is None)
    elif not session.quiet:
        note(t("no events"))


def of_jobs(session: Session, keys: list[str] | None) -> list[tuple[str, EventView]]:
    """(key, event), oldest first; of all jobs where no keys are given."""
    if keys is None:
        keys = [row.key for row in session.rows()]
    found = [(key, event) for key in keys for event in session.run(session.service.events(key))]
    return sorted(found, key=lambda pair: pair[1].time)


def document(key: str, event: EventView) -> dict[str, Any]:
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
