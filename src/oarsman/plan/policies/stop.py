"""The user asked for the end: everything ends, the record stays, nothing is tried again."""

from __future__ import annotations

from oarsman import names
from oarsman.job.state import Cause
from oarsman.plan import finish
from oarsman.plan.policies import cleanup
from oarsman.plan.turn import Turn


def stop(turn: Turn) -> Turn:
    if not turn.seen.stop_requested:
        return turn
    summary = "it was stopped because the user asked for it"
    message = f"MPIJob {turn.job.key} was stopped because the user asked for it"
    return finish.fail(cleanup.end_all(turn), names.REASON_STOPPED, message, Cause(summary=summary))
