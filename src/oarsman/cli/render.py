"""Everything for human eyes: tables, colours, pages and the card that explains a failure.

Tables are plain columns, as wide as they need to be: they survive pipes, and nothing is cut off. rich draws
the card, on a terminal alone, and is imported there.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import IO, TYPE_CHECKING, Any

import click

from oarsman import names
from oarsman.cli import documents
from oarsman.cli.session import Session, short
from oarsman.cli.text import clipped, of, pad, safe, t, width
from oarsman.status import words
from oarsman.text import units

if TYPE_CHECKING:
    from oarsman.job.job import Job
    from oarsman.job.state import Cause
    from oarsman.service.models import EventView, JobSummary

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

_NARROWEST = 20  # columns that the last cell of a table has in any case

Style = Callable[[str], str]


def coloured(stream: IO[str]) -> bool:
    """Whether colours go to this stream: on a terminal, unless switched off."""
    ctx = click.get_current_context(silent=True)
    wanted = ctx.color if ctx is not None else None
    return stream.isatty() if wanted is None else wanted


def shown(text: str, stream: IO[str] | None = None) -> str:
    return safe(text) if (stream or sys.stdout).isatty() else text


@cache
def _colours(_language: str) -> Mapping[str, str]:
    return {of(word): colour for word, colour in _COLOURS.items()} | _COLOURS


def by_word(text: str) -> str:
    colour = _colours(t.language).get(text.strip())
    return click.style(text, fg=colour) if colour else text


def table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], *, indent: str = "", columns: int | None = None
) -> None:
    """Columns two spaces apart; the words of `_COLOURS` are coloured wherever they fill a cell. columns: as many as a
    line may take; the last cell is cut to that."""
    cells = [list(headers)] + [[" ".join(shown(cell).split("\n")) or "-" for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    if columns is not None:
        room = max(columns - sum(widths[:-1]) - 2 * (len(widths) - 1), _NARROWEST)
        cells = [[*row[:-1], clipped(row[-1], room)] for row in cells]
    for number, row in enumerate(cells):
        style: Style = by_word if number else (lambda text: click.style(text, bold=True))
        padded = [style(pad(cell, needed)) for cell, needed in zip(row[:-1], widths, strict=False)]
        click.echo(indent + "  ".join([*padded, style(row[-1])]))


def pairs(rows: Iterable[tuple[str, str]], *, indent: str = "") -> None:
    """Facts with their names: `State:  Running`. Facts that are empty are left out."""
    kept = [(t("{name}:", name=name), value) for name, value in rows if value]
    column = max((width(name) for name, _ in kept), default=0) + 2
    for name, value in kept:
        click.echo(f"{indent}{pad(name, column)}{by_word(shown(value))}")


def warning(text: str) -> str:
    return f"{by_word(t('warning: '))}{shown(of(text))}"


def heading(text: str) -> None:
    click.echo()
    click.echo(click.style(text, bold=True))


def section(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        heading(title)
        table(headers, rows, indent="  ")


def host_table(headers: Sequence[str], cells: Mapping[str, Sequence[str]], machines: Mapping[str, str]) -> None:
    """What there is to say of each host, and its machine, where that is not one of its own."""
    if machines:
        headers, cells = [t("MACHINE"), *headers], {host: [machines.get(host, ""), *row] for host, row in cells.items()}
    table([t("HOST"), *headers], [[host, *row] for host, row in cells.items()], indent="  ")


def by_host(hosts: Iterable[str], placement: Mapping[int, str]) -> dict[str, str]:
    """The ranks on each host; those of the job come first, and are there without ranks, too."""
    ranks: dict[str, list[int]] = {host: [] for host in hosts}
    for rank, host in placement.items():
        ranks.setdefault(host, []).append(rank)
    return {host: units.ranges(found) for host, found in ranks.items()}


def block(title: str, text: str) -> None:
    if text.strip():
        heading(title)
        for line in text.rstrip("\n").split("\n"):
            click.echo(f"  {shown(line)}".rstrip())


# -- jobs --------------------------------------------------------------------------------------------
def job_table(rows: Sequence[JobSummary], now: datetime, *, wide: bool = False) -> None:
    """Where a job is, and which run it is, are shown where that differs. A wide one may exceed a terminal."""
    several, again = len({row.engine for row in rows}) > 1, any(row.run > 1 for row in rows)

    def cells(row: JobSummary) -> dict[str, str]:
        workers = str(row.workers) if finished(row) else f"{row.workers_ready}/{row.workers}"
        found = {t("NAME"): short(row.key), t("STATE"): row.state, t("WORKERS"): workers}
        found |= {t("AGE"): units.age(row.created, now), t("DURATION"): units.took(row.started, row.ended, now)}
        found |= {t("RUN"): str(row.run)} if again else {}
        if not wide:
            return found | ({t("ENGINE"): row.engine} if several else {}) | {t("MESSAGE"): _more_than_its_state(row)}
        engine = f"{row.engine} ({row.machines})" if row.machines else row.engine
        found |= {t("REASON"): row.reason, t("SLOTS"): str(row.slots), "MPI": row.implementation, t("ENGINE"): engine}
        return found | {t("OWNER"): row.owner, t("ATTEMPT"): str(row.attempt or ""), t("MESSAGE"): message(row)}

    lines = [cells(row) for row in rows]
    room = None if wide or not sys.stdout.isatty() else shutil.get_terminal_size().columns
    table(list(lines[0]), [list(line.values()) for line in lines], columns=room)


_SAYS_ITS_STATE = (names.REASON_CREATED, names.REASON_RUNNING, names.REASON_SUCCEEDED, names.REASON_SUSPENDED)


def _more_than_its_state(row: JobSummary) -> str:
    return "" if row.reason in _SAYS_ITS_STATE and not row.queue_position else message(row)


def finished(row: JobSummary) -> bool:
    """Also of one that is being deleted; another operator's may have no time of its end."""
    return row.ended is not None or row.state in words.ENDED


def message(row: JobSummary) -> str:
    """Why it is as it is, in a sentence: the cause, the queue, or what the condition says."""
    if row.cause or not row.queue_position:
        return of(row.cause or row.message)
    return t("number {position} in the queue: {reason}", position=row.queue_position, reason=of(row.message))


def listing(
    session: Session,
    output: str | None,
    data: Sequence[Any],
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    none: str,
) -> None:
    """What a verb lists, in the form that was asked for; `none`: what people are told if there is nothing."""
    if output == "name":
        for row in rows:
            click.echo(row[0])
    elif output:
        documents.emit(data, output)
    elif rows:
        table(headers, rows)
    else:
        session.note(none)


def size_of(job: Job) -> list[tuple[str, str]]:
    hosts, slots = len(job.hosts), job.slots_per_worker
    replicas = t("1 launcher + {workers} workers = {total}", workers=job.workers, total=job.total_replicas)
    on_hosts = t("{hosts} hosts x {slots} = {total}", hosts=hosts, slots=slots, total=job.slots)
    return [
        (t("Replicas"), replicas if job.workers != 1 else t("1 launcher + 1 worker = 2")),
        (t("Slots"), on_hosts if hosts != 1 else t("1 host x {slots} = {total}", slots=slots, total=job.slots)),
    ]


def kept_workers(count: int, name: str) -> str:
    if count == 1:
        return t(
            "one worker pod still runs, as its cleanPodPolicy None says; `oarsman delete {name}` removes it", name=name
        )
    return t(
        "{count} worker pods still run, as its cleanPodPolicy None says; `oarsman delete {name}` removes them",
        count=count,
        name=name,
    )


def event_table(events: Iterable[tuple[str, EventView]], now: datetime, *, with_job: bool, indent: str = "") -> None:
    """(job, event) pairs, oldest first."""
    headers = [t("AGE"), t("KIND"), t("NAME"), t("REASON"), t("MESSAGE")]
    rows = []
    for job, event in events:
        times = f" (x{event.count})" if event.count > 1 else ""
        rows.append([units.age(event.time, now), event.severity, job, event.reason, of(event.message) + times])
    if not with_job:
        for row in (headers, *rows):
            del row[2]
    table(headers, rows, indent=indent)


# -- why it failed -----------------------------------------------------------------------------------
def cause_card(cause: Cause, *, err: bool = False) -> None:
    """Summary, facts, last lines, hint: as a panel on a terminal, as indented lines elsewhere."""
    stream = sys.stderr if err else sys.stdout
    summary, body = of(cause.summary), _cause_lines(cause, stream)
    if not stream.isatty():
        click.echo(f"{t('cause: ')}{summary}", err=err)
        click.echo("".join(f"  {line}\n" for line in body), err=err, nl=False)
        return
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    text = Text("\n".join([safe(summary), *body]))
    text.highlight_regex(rf"(?m)^{t('hint: ')}", "cyan")
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
    lines = [t(", ").join(f"{name} {shown(str(value), stream)}" for name, value in facts.items() if value is not None)]
    if cause.last_lines:
        lines += [t("last lines:"), *(f"  | {shown(line, stream)}" for line in cause.last_lines)]
    if cause.hint:
        lines.append(f"{t('hint: ')}{shown(of(cause.hint), stream)}")
    return [line for line in lines if line]
