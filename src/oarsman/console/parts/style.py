"""How it looks: one sheet for all pages, light and dark, in style.css beside this."""

from __future__ import annotations

from importlib import resources

from oarsman.text.catalogue import N_

PRIMARY = "#0b6e99"

# state -> (icon, class of its colour); the words say it too, nobody has to know the colours
STATES = {
    N_("Pending"): ("schedule", "is-idle"),
    N_("Queued"): ("hourglass_empty", "is-wait"),
    N_("Running"): ("play_circle", "is-busy"),
    N_("Restarting"): ("restart_alt", "is-wait"),
    N_("Suspended"): ("pause_circle", "is-idle"),
    N_("Stopping"): ("stop_circle", "is-wait"),
    N_("Deleting"): ("delete", "is-idle"),
    N_("Succeeded"): ("check_circle", "is-good"),
    N_("Failed"): ("error", "is-bad"),
}

# Those that only people see: programs are told that a stopped job failed
BADGES = {**STATES, N_("Stopped"): ("stop_circle", "is-idle")}

CSS = resources.files(__package__).joinpath("style.css").read_text("utf-8")
