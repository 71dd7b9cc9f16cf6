"""The user asked for the end: everything ends, the record stays, nothing is tried again."""

from __future__ import annotations

from oarsman import names
from oarsman.job.state import Cause
from oarsman.plan import finish
from oarsman.plan.policies import cleanup
from oarsman.plan.turn import Turn
from oarsman.status import exceptions
from oarsman.text.sentence import Text


def stop(turn: Turn) -> Turn:
    if not turn.seen.stop_requested:
        return turn
    ranks, machines = turn.seen.ranks, turn.status.machines
    cause = exceptions.when_ended(Cause(summary=Text("stopped by the user")), ranks, machines)
    ended = Text("MPIJob {key} was stopped by the user", key=turn.job.key)
    message = exceptions.and_before(ended, ranks, machines)
    return finish.fail(cleanup.end_all(turn), names.REASON_STOPPED, message, cause)
