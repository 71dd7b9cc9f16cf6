"""Turns the crank: the loop that plans and acts, the supervisor it lives in, and the door for the faces."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oarsman.runtime.jobs import Jobs


def open_jobs(engine: str = "embedded") -> Jobs:
    """The jobs of this user on that engine. Imported late, so that `oarsman --version` stays quick."""
    from oarsman.errors import UnsupportedError

    if engine != "embedded":
        raise UnsupportedError(f"jobs cannot be run on '{engine}' yet")
    from oarsman.runtime.embedded import EmbeddedJobs

    return EmbeddedJobs()
