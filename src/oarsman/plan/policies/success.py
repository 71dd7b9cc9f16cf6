"""A job has succeeded when its launcher has, unless the ranks ran somewhere else than planned.

This is looked at first: work that is done stays done, whatever was asked in the meantime.
"""

from __future__ import annotations

from oarsman import names
from oarsman.job.launch import starts_ranks_without_mpi
from oarsman.job.observed import Phase
from oarsman.job.state import Cause
from oarsman.plan import finish, placement
from oarsman.plan.turn import Turn
from oarsman.text.sentence import Text


def launcher_succeeded(turn: Turn) -> Turn:
    launcher = turn.launcher
    if launcher is None or launcher.phase is not Phase.SUCCEEDED:
        return turn
    wrong = misplaced(turn, complete=True)
    if wrong:
        return finish.fail(turn, names.REASON_PLACEMENT, wrong, Cause(summary=wrong))
    starts_ranks = turn.job.launch is not None or starts_ranks_without_mpi(turn.job.launcher.container.argv)
    if starts_ranks and not turn.seen.ranks and (turn.seen.ranks_report or turn.seen.unverified):
        turn = turn.tell(names.REASON_UNVERIFIED, Text("placement not verified: no rank reported its host"))
    return finish.succeed(turn)


def placement_while_running(turn: Turn) -> Turn:
    """Ranks on the wrong host are not waited for: the answer would be right and the numbers wrong."""
    if turn.launcher is None or turn.launcher.phase.ended:
        return turn
    wrong = misplaced(turn, complete=False)
    return finish.fail(turn, names.REASON_PLACEMENT, wrong, Cause(summary=wrong)) if wrong else turn


def misplaced(turn: Turn, *, complete: bool) -> str | None:
    seen = turn.seen
    found = (
        placement.mistake(turn.job, world, turn.open_attempt, complete=complete, machines=seen.machines)
        for world in seen.worlds
    )
    return next(filter(None, found), None)
