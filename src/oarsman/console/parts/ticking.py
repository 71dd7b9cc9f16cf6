"""Durations that count up in the browser: nothing is sent for the seconds that pass."""

from __future__ import annotations

from datetime import UTC, datetime

from nicegui.element import Element


class Ticking(Element, component="ticking.js"):
    """Once per page. It fills every element that has `data-since`."""

    def __init__(self) -> None:
        super().__init__()
        self._props["now"] = milliseconds(datetime.now(UTC))


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
