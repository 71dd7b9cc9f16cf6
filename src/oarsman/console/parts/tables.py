"""Tables whose rows are replaced while they are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicegui import ui

_ROWS = 25


def table(key: str, columns: Mapping[str, str], *, title: str | None = None, sortable: bool = True) -> ui.table:
    """`columns`: field -> what it is called. Paged in the browser, in words that need no language."""
    found = [
        {"name": name, "label": label, "field": name, "align": "left", "sortable": sortable}
        for name, label in columns.items()
    ]
    made = ui.table(columns=found, rows=[], row_key=key, title=title, pagination=_ROWS)
    made.props(f"flat dense wrap-cells :rows-per-page-options=[{_ROWS}]").classes("oarsman-card w-full")
    made.props[":pagination-label"] = "(first, last, all) => `${first}–${last} / ${all}`"
    return made


def fill(shown: ui.table, rows: list[dict[str, Any]]) -> None:
    """Only what changed goes to the browser; page and order stay as the reader chose."""
    if rows != shown.rows:
        shown.rows = rows
