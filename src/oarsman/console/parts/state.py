"""A state: an icon, a colour and, for those who see neither, the word."""

from __future__ import annotations

from nicegui import ui

from oarsman import names
from oarsman.console.parts.style import BADGES
from oarsman.console.words import Words


def shown_state(state: str, reason: str) -> str:
    """A job that somebody stopped has failed as far as programs are concerned; people did what they wanted."""
    return "Stopped" if state == "Failed" and reason == names.REASON_STOPPED else state


def state_badge(say: Words, state: str) -> None:
    icon, colour = BADGES.get(state, ("help", "is-idle"))
    with ui.element("span").classes(f"oarsman-state {colour}"):
        ui.icon(icon).props('aria-hidden="true"')
        ui.label(say(state))
