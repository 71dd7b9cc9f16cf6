"""How it looks: one sheet for all pages, light and dark, in style.css beside this."""

from __future__ import annotations

from importlib import resources

PRIMARY = "#0b6e99"

# state -> (icon, class of its colour); the words say it too, nobody has to know the colours
STATES = {
    "Pending": ("schedule", "is-idle"),
    "Queued": ("hourglass_empty", "is-wait"),
    "Running": ("play_circle", "is-busy"),
    "Restarting": ("restart_alt", "is-wait"),
    "Suspended": ("pause_circle", "is-idle"),
    "Stopping": ("stop_circle", "is-wait"),
    "Deleting": ("delete", "is-idle"),
    "Succeeded": ("check_circle", "is-good"),
    "Failed": ("error", "is-bad"),
}

# Those that only people see: programs are told that a stopped job failed
BADGES = {**STATES, "Stopped": ("stop_circle", "is-idle")}

CSS = resources.files(__package__).joinpath("style.css").read_text("utf-8")
