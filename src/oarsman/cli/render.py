"""Everything for human eyes: tables, colours, pages and the card that explains a failure.

Tables are plain columns, as wide as they need to be: they survive pipes, and nothing is cut off. rich draws
the card, on a terminal alone, and is imported there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import IO, TYPE_CHECKING

import click

from oarsman import names
from oarsman.cli.messages import of, t
from oarsman.cli.session import short
from oarsman.cli.text import pad, safe, width
from oarsman.status import words
from oarsman.text import units

if TYPE_CHECKING:
    from oarsman.backends.base import EventRecord, JobRecord
    from oarsman.engines.contract import HostUsage
    from oarsman.job.state import Cause, Status

_COLOURS = {
    names.SUCCEEDED: "green",
    names.FAILED: "red",
    names.RUNNING: "cyan",
    names.RESTARTING: "yellow",
    names.SUSPENDED: "magenta",
    names.QUEUED: "yellow",
    "Warning": "yellow",
    "ok": "green",
    "warn": "yellow",
    "missing": "red",
}

_MACHINES = 4  # named in a row of a table

Style = Callable[[str], str]


def coloured(stream: IO[str]) -> bool:
    """Whether colours go to this stream: on a terminal, unless switched off."""
    ctx = click.get_current_context(silent=True)
    wanted = ctx.color if ctx is not None else None
    return stream.isatty() if wanted is None else wanted


def shown(text: str, stream: IO[str] | None = None) -> str:
    return safe(text) if (stream or sys.stdout).isatty() else text


def by_word(text: str) -> str:
    """A state or a severity in its colour."""
    colour = _COLOURS.get(text.strip())
    return click.style(text, fg=colour) if colour else text


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, indent: str = "") -> None:
    """Columns two spaces apart; the words of `_COLOURS` are coloured wherever they fill a cell."""
    cells = [list(headers)] + [[" ".join(shown(cell).split("\n")) or "-" for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    for number, row in enumerate(cells):
        style: Style = by_word if number else (lambda text: click.style(text, bold=True))
        padded = [style(pad(cell, columns)) for cell, columns in zip(row[:-1], widths, strict=False)]
        click.echo(indent + "  ".join([*padded, style(row[-1])]))


def pairs(rows: Iterable[tuple[str, str]], *, indent: str = "") -> None:
    """Facts with their names: `State:  Running`. Facts that are empty are left out."""
    kept = [(f"{name}:", value) for name, value in rows if value]
    column = max((width(name) for name, _ in kept), default=0) + 2
    for name, value in kept:
        click.echo(f"{indent}{pad(name, column)}{by_word(shown(value))}")


def heading(text: str) -> None:
    click.echo()
    click.echo(click.style(text, bold=True))


# -- jobs --------------------------------------------------------------------------------------------


def job_table(records: Sequence[JobRecord], now: datetime, *, wide: bool = False) -> None:
    """Where a job is, is shown where that differs; a wide table has it anyway."""
    headers = [t("NAME"), t("STATE"), t("WORKERS"), t("AGE"), t("DURATION"), t("REASON")]
    several = len({record.engine for record in records}) > 1
    if wide:
        headers += [t("SLOTS"), "MPI", t("ENGINE"), t("OWNER"), t("ATTEMPT"), t("MESSAGE")]
    elif several:
        headers.append(t("ENGINE"))

    def more(record: JobRecord) -> list[str]:
        return _wide_row(record) if wide else [record.engine] if several else []

    table(headers, [_job_row(record, now) + more(record) for record in records])


def _job_row(record: JobRecord, now: datetime) -> list[str]:
    status = record.status
    workers = str(record.job.workers) if status.finished else f"{status.worker.ready}/{record.job.workers}"
    return [
        short(record.job.key),
        state(record),
        workers,
        units.age(record.created_at, now),
        duration(status, now),
        words.reason(status),
    ]


def _wide_row(record: JobRecord) -> list[str]:
    attempt = record.status.attempt
    return [
        str(record.job.slots),
        record.job.implementation.value,
        where(record),
        record.owner,
        str(attempt.number) if attempt else "",
        message(record.status),
    ]


def where(record: JobRecord) -> str:
    """The engine, and the machines of an inventory: `ssh (node1, node2 +3)`."""
    machines = list(dict.fromkeys(record.status.machines.values()))
    more = f" +{len(machines) - _MACHINES}" if len(machines) > _MACHINES else ""
    return f"{record.engine} ({', '.join(machines[:_MACHINES])}{more})" if machines else record.engine


def state(record: JobRecord) -> str:
    return words.for_people(plain_state(record), words.reason(record.status))


def plain_state(record: JobRecord) -> str:
    """As programs are told it."""
    return words.state(record.status, deleting=record.deleting, stop_requested=record.stop_requested)


def message(status: Status) -> str:
    """Why it is as it is, in a sentence: the cause, the queue, or what the condition says."""
    if status.cause is not None:
        return of(status.cause.summary)
    if status.queue is not None:
        queue = status.queue
        if not queue.position:
            return of(queue.reason)
        return t("place {position} in the queue: {reason}", position=queue.position, reason=of(queue.reason))
    return of(words.message(status))


def kept_workers(count: int, name: str) -> str:
    return t(
        "{count} worker pods still run, as its cleanPodPolicy None says; `oarsman delete {name}` removes them",
        count=count,
        name=name,
    )


def duration(status: Status, now: datetime) -> str:
    return units.took(status.start_time, status.completion_time, now)


def event_table(events: Iterable[tuple[str, EventRecord]], now: datetime, *, with_job: bool, indent: str = "") -> None:
    """(job, event) pairs, oldest first."""
    headers = [t("AGE"), t("KIND"), t("NAME"), t("REASON"), t("MESSAGE")]
    rows = [[units.age(event.time, now), event.severity, job, event.reason, _times(event)] for job, event in events]
    if not with_job:
        for row in (headers, *rows):
            del row[2]
    table(headers, rows, indent=indent)


def _times(event: EventRecord) -> str:
    return of(event.message) + (f" (x{event.count})" if event.count > 1 else "")


def usage_table(usages: Iterable[tuple[str, HostUsage]]) -> None:
    headers = [t("NAME"), t("HOST"), t("ROLE"), t("PROCESSES"), "CPU", t("MEMORY"), t("LIMIT"), t("GPUS")]
    table(
        headers,
        [
            [
                job,
                use.host,
                use.role,
                "" if use.processes is None else str(use.processes),
                f"{use.cpu_percent:.0f}%",
                units.size(use.memory_bytes),
                units.size(use.memory_limit_bytes),
                ",".join(map(str, use.gpus)),
            ]
            for job, use in usages
        ],
    )


# -- why it failed -----------------------------------------------------------------------------------


def cause_card(cause: Cause, *, err: bool = False) -> None:
    """Summary, facts, last lines, hint: as a panel on a terminal, as indented lines elsewhere."""
    stream = sys.stderr if err else sys.stdout
    summary, body = of(cause.summary), _cause_lines(cause, stream)
    if not stream.isatty():
        click.echo(f"{t('cause:')} {summary}", err=err)
        click.echo("".join(f"  {line}\n" for line in body), err=err, nl=False)
        return
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    text = Text("\n".join([safe(summary), *body]))
    text.highlight_regex(rf"(?m)^{t('hint:')}", "cyan")
    text.stylize("bold", 0, len(safe(summary)))
    Console(file=stream, no_color=not coloured(stream), highlight=False).print(
        Panel(text, title=t("Cause"), title_align="left", border_style="red", expand=False)
    )


def _cause_lines(cause: Cause, stream: IO[str]) -> list[str]:
    facts: Mapping[str, object | None] = {
        t("rank"): cause.rank,
        t("host"): cause.host,
        t("exit code"): cause.exit_code,
        t("signal"): cause.signal,
        t("memory limit"): t("reached") if cause.memory_limit_hit else None,
    }
    lines = [", ".join(f"{name} {shown(str(value), stream)}" for name, value in facts.items() if value is not None)]
    if cause.last_lines:
        lines += [t("last lines:"), *(f"  | {shown(line, stream)}" for line in cause.last_lines)]
    if cause.hint:
        lines.append(f"{t('hint:')} {shown(of(cause.hint), stream)}")
    return [line for line in lines if line]
