"""The steps of a job's life as a drawing: when each was reached, and how long it took from the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from nicegui import ui

from oarsman.console.parts import amounts
from oarsman.console.words import Words
from oarsman.sdk.models import Step

# step -> what it is called
STEPS = {
    "submitted": "Submitted",
    "queued": "Queued",
    "admitted": "Admitted",
    "hostsUp": "Hosts up",
    "launched": "Launched",
    "firstOutput": "First output",
    "ended": "Ended",
}
_LAST = "ended"


class Mark(NamedTuple):
    name: str
    time: datetime | None  # None: not reached, or passed over
    took: str  # from the last step that was reached to this one


def marks(steps: Sequence[Step]) -> Iterator[Mark]:
    reached = {step.name: step.time for step in steps}
    before: datetime | None = None
    for name in STEPS:
        time = reached.get(name)
        yield Mark(name, time, amounts.duration(before, time) if before is not None and time is not None else "")
        before = time or before


def timeline(say: Words, steps: Sequence[Step], *, ending: str = "is-reached") -> None:
    """`ending`: the class of the last step's colour, which tells how it ended."""
    with ui.element("ol").classes("oarsman-card oarsman-steps").props(f'aria-label="{say("Timeline")}"'):
        for mark in marks(steps):
            colour = ending if mark.name == _LAST else "is-reached"
            with ui.element("li").classes("oarsman-step " + (colour if mark.time is not None else "is-ahead")):
                ui.label(mark.took or "\u00a0").classes("oarsman-step-took")
                ui.element("span").classes("oarsman-step-dot").props('aria-hidden="true"')
                ui.label(say(STEPS[mark.name])).classes("oarsman-step-name")
                ui.label(amounts.moment(mark.time) or "–").classes("oarsman-note")
