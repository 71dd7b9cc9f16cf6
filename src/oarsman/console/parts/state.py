"""A state: an icon, a colour and, for those who see neither, the word."""

from __future__ import annotations

from nicegui import ui

from oarsman.console.parts.style import STATES
from oarsman.console.words import Words


def state_badge(say: Words, state: str) -> None:
    icon, colour = STATES.get(state, ("help", "is-idle"))
    with ui.element("span").classes(f"oarsman-state {colour}"):
        ui.icon(icon).props('aria-hidden="true"')
        ui.label(say(state))
