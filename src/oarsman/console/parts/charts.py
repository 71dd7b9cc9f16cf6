"""Charts of numbers over time or steps, drawn in the browser from points that are handed over as they come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import nicegui.elements.echart  # noqa: F401  (pages know its drawing library from then on; ours draws with it)
from nicegui.element import Element

from oarsman.console.words import Words

Point = tuple[float, float]  # milliseconds or step, value


@dataclass(slots=True)
class Panel:
    """One chart: a line per name."""

    id: str
    title: str
    unit: Literal["percent", "bytes", "rate", "number"]
    x: Literal["time", "step"] = "time"
    lines: dict[str, list[Point]] = field(default_factory=dict)

    def add(self, line: str, at: float, value: float | None) -> None:
        if value is not None:
            self.lines.setdefault(line, []).append((at, value))

    def told(self) -> Mapping[str, Any]:
        return {"id": self.id, "title": self.title, "unit": self.unit, "x": self.x, "lines": self.lines}


class Charts(Element, component="charts.js"):
    """`on_ready` is called when the browser can take points: what is sent before is lost."""

    def __init__(self, say: Words, empty: str, on_ready: Callable[[], Any]) -> None:
        super().__init__()
        self._props["words"] = {"empty": empty, "step": say("step"), "more": say("{count} more")}
        self.on("ready", on_ready, args=[])

    def add(self, panels: Sequence[Panel], *, whole: bool) -> None:
        """`whole`: instead of what is shown; else behind it. Panels without points are not shown."""
        found = [panel.told() for panel in panels if panel.lines]
        if found or whole:
            self.run_method("add", found, whole)

    def clear_all(self) -> None:
        self.run_method("clear")
