"""`oarsman top`: what jobs use right now."""

from __future__ import annotations

from oarsman.cli import documents, options, render
from oarsman.cli.failures import note
from oarsman.cli.messages import t
from oarsman.cli.session import Session, pass_session, short
from oarsman.cli.verbs import verb


@verb(
    "top",
    help=t(
        "Show what every host of a job uses now: processes, CPU, memory, GPUs. Without a name, of every job that runs."
    ),
    examples=[("oarsman top", ""), ("oarsman top pi -o json", t("of one job, for a program"))],
)
@options.maybe_job
@options.output("json", "yaml")
@options.all_namespaces
@options.place
@pass_session
def command(session: Session, name: str | None, output: str | None) -> None:
    keys = [session.key(name)] if name else [row.key for row in session.rows() if not render.finished(row)]
    found = [(key, use) for key in keys for use in session.run(session.service.usage_now(key))]
    if output:
        documents.emit(
            [
                {
                    "job": key,
                    "host": use.host,
                    "role": use.role,
                    "processes": use.processes,
                    "cpuPercent": use.cpu_percent,
                    "memoryBytes": use.memory_bytes,
                    "memoryLimitBytes": use.memory_limit_bytes,
                    "gpus": use.gpus,
                }
                for key, use in found
            ],
            output,
        )
    elif found:
        render.usage_table([(short(key), use) for key, use in found])
    elif not session.quiet:
        note(t("nothing is running"))
