"""How jobs look where Python programs show them: in a notebook, on a terminal, in a file.

Names, messages and log lines can contain anything. In HTML they are escaped, on a terminal control characters are
shown instead of obeyed. Nothing here needs IPython; it is used where it is already there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from html import escape
from typing import Any, TypeVar

from oarsman.service.models import CauseView, HostView, JobSummary, JobView, QueueEntry, SweepPoint, SweepView
from oarsman.text import units
from oarsman.text.sentence import visible

T = TypeVar("T")
ROWS = 50  # of a long list that are shown
_MARKS = {"Succeeded": "#2e7d32", "Failed": "#c62828", "Running": "#1565c0", "Restarting": "#ef6c00"}


# -- words ------------------------------------------------------------------------------------------
def _took(summary: JobSummary) -> str:
    return units.took(summary.started, summary.ended, datetime.now(UTC))


def _shape(summary: JobSummary) -> str:
    ranks = f", {summary.ranks} ranks" if summary.ranks is not None else ""
    return f"{summary.workers_ready}/{summary.workers} workers{ranks}"


def job_text(key: str, summary: JobSummary | None) -> str:
    if summary is None:
        return f"<job {visible(key)}>"
    parts = [f"<job {visible(key)} {summary.state}", _shape(summary), _took(summary)]
    if summary.cause or (summary.reason and summary.state not in ("Running", "Succeeded")):
        parts.append(visible(summary.cause or summary.message or summary.reason))
    return ", ".join(part for part in parts if part) + ">"


def jobs_text(rows: Sequence[JobSummary], total: int) -> str:
    lines = [job_text(row.key, row) for row in rows]
    if total > len(rows):
        lines.append(f"... and {total - len(rows)} more")
    return "\n".join(lines) or "no jobs"


# -- HTML -------------------------------------------------------------------------------------------
def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are markup already: whoever makes them has escaped them."""
    top = "".join(f"<th style='text-align:left'>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _state(state: str) -> str:
    return f"<b style='color:{_MARKS.get(state, 'inherit')}'>{escape(state)}</b>"


def jobs_html(rows: Sequence[JobSummary], total: int) -> str:
    more = f"<p>and {total - len(rows)} more</p>" if total > len(rows) else ""
    return _listed(_COLUMNS[JobSummary], rows) + more if rows else "<p>no jobs</p>"


def job_html(key: str, summary: JobSummary | None, job: JobView | None) -> str:
    if summary is None:
        return f"<p>{escape(key)}</p>"
    used = job.mpi if job is not None else ""  # the manifest's word may be a default that nobody chose
    facts = [_shape(summary), used or summary.implementation, summary.engine, _took(summary)]
    head = f"<p><b>{escape(key)}</b> {_state(summary.state)} {escape(', '.join(f for f in facts if f))}</p>"
    if job is not None and job.cause is not None:
        return head + cause_html(job.cause)
    why = summary.cause or summary.message
    return head + (f"<p>{escape(why)}</p>" if why else "")


def cause_html(cause: CauseView) -> str:
    facts = {
        "rank {}": cause.rank,
        "{}": cause.host or None,
        "exit code {}": cause.exit_code,
        "signal {}": cause.signal,
    }
    words = [text.format(value) for text, value in facts.items() if value is not None]
    where = ", ".join([*words, "memory limit hit"] if cause.memory_limit_hit else words)
    said = "\n".join(visible(line) for line in cause.last_lines)
    return (
        "<div style='border-left:4px solid #c62828;padding-left:8px'>"
        f"<p><b>{escape(cause.summary)}</b></p>"
        + (f"<p>{escape(where)}</p>" if where else "")
        + (f"<pre>{escape(said)}</pre>" if said else "")
        + (f"<p>{escape(cause.hint)}</p>" if cause.hint else "")
        + "</div>"
    )


def _counts(view: SweepView) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(view.states.items()))


def sweep_text(view: SweepView) -> str:
    return f"<sweep {visible(view.key)} {view.state}, {view.total} points: {visible(_counts(view))}>"


def sweep_html(view: SweepView) -> str:
    """A row per point, of a long sweep the first ones."""
    head = f"<p><b>{escape(view.key)}</b> {_state(view.state)} {escape(_counts(view))}</p>"
    columns = ("point", *view.parameters, "state", "metric", "took", "why")
    shown = view.points[:ROWS]
    more = f"<p>and {len(view.points) - len(shown)} more</p>" if len(view.points) > len(shown) else ""
    return head + _table(columns, (_point_row(view, point) for point in shown)) + more


def _point_row(view: SweepView, point: SweepPoint) -> Sequence[str]:
    took = units.took(point.started, point.ended, datetime.now(UTC))
    values = (escape(str(point.parameters.get(name, ""))) for name in view.parameters)
    metric = "" if point.metric is None else f"{point.metric:g}"
    return (str(point.index), *values, _state(point.state), metric, took, escape(point.cause))


# What a row shows of each kind of thing, by the heads of the columns.
_COLUMNS: dict[type, dict[str, Callable[[Any], str]]] = {
    JobSummary: {
        "job": lambda row: escape(row.key),
        "state": lambda row: _state(row.state),
        "workers": lambda row: f"{row.workers_ready}/{row.workers}",
        "ranks": lambda row: "" if row.ranks is None else str(row.ranks),
        "owner": lambda row: escape(row.owner),
        "created": lambda row: f"{row.created:%Y-%m-%d %H:%M}",
        "took": _took,
        "why": lambda row: escape(row.cause or row.message),
    },
    HostView: {
        "host": lambda host: escape(host.name),
        "state": lambda host: escape(f"{host.state}: {host.message}" if host.message else host.state),
        "CPUs held": lambda host: f"{units.number(host.held.cpus)} of {units.number(host.total.cpus)}",
        "memory held": lambda host: f"{units.size(host.held.memory_bytes)} of {units.size(host.total.memory_bytes)}",
        "GPUs held": lambda host: f"{host.held.gpus} of {host.total.gpus}",
        "jobs": lambda host: escape(", ".join(held.key for held in host.holdings)),
    },
    QueueEntry: {
        "place": lambda entry: str(entry.position),
        "job": lambda entry: escape(entry.key),
        "priority": lambda entry: str(entry.priority),
        "owner": lambda entry: escape(entry.owner),
        "waits": lambda entry: units.age(entry.since, datetime.now(UTC)),
        "why": lambda entry: escape(entry.reason),
    },
    SweepView: {
        "sweep": lambda view: escape(view.key),
        "state": lambda view: _state(view.state),
        "points": lambda view: str(view.total),
        "states": lambda view: escape(_counts(view)),
        "owner": lambda view: escape(view.owner),
        "created": lambda view: f"{view.created:%Y-%m-%d %H:%M}",
    },
}


def _listed(columns: Mapping[str, Callable[[Any], str]], found: Iterable[object]) -> str:
    return _table(list(columns), ([cell(one) for cell in columns.values()] for one in found))


class Table(list[T]):
    """A list that a notebook shows as a table."""

    def __repr__(self) -> str:
        return "\n".join(visible(repr(item)) for item in self) or "nothing"

    def _repr_html_(self) -> str:
        columns = _COLUMNS.get(type(self[0])) if self else None
        return f"<pre>{escape(repr(self))}</pre>" if columns is None else _listed(columns, self)


# -- progress ---------------------------------------------------------------------------------------
class LiveLine:
    """What a job does now: one live line in a notebook or on a terminal, otherwise a line for each change."""

    def __init__(self, *, wanted: bool = True) -> None:
        self._show = _way() if wanted else None
        self._last = ""

    def show(self, text: str) -> None:
        if self._show is not None and text != self._last:
            self._last = text
            with suppress(OSError):  # nobody reads it any more; the job matters
                self._show.line(visible(text))

    def __enter__(self) -> LiveLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._show is not None:
            with suppress(OSError):
                self._show.end(visible(self._last))


def in_notebook() -> bool:
    """Whether output goes to a notebook's page. IPython on a terminal is a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return shell is not None and hasattr(shell, "kernel")


def _way() -> _Lines:
    if in_notebook():
        return _HtmlPage()
    return _Terminal() if sys.stderr is not None and sys.stderr.isatty() else _Lines()


class _Lines:
    """Each is written when it is news."""

    def __init__(self) -> None:
        self._shown: Any = None  # what is rewritten in place

    def line(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - this is what the class is for

    def end(self, text: str) -> None:
        """The last line stays."""


class _HtmlPage(_Lines):
    """A line of the page that is rewritten in place."""

    def line(self, text: str) -> None:
        from IPython import display

        shown = display.HTML(f"<pre>{escape(text)}</pre>")
        if self._shown is None:
            self._shown = display.display(shown, display_id=True)
        else:
            self._shown.update(shown)


class _Terminal(_Lines):
    """A spinner; at the end the last line stays."""

    def line(self, text: str) -> None:
        from rich.console import Console
        from rich.text import Text

        if self._shown is None:
            self._shown = Console(file=sys.stderr).status(Text(text))
            self._shown.start()
        else:
            self._shown.update(Text(text))

    def end(self, text: str) -> None:
        if self._shown is not None:
            self._shown.stop()
            super().line(text)
