"""What happens when an attempt has failed.

| restartPolicy of the launcher | tried again                                              | limit unless stated |
|-------------------------------|----------------------------------------------------------|---------------------|
| Never                         | only if backoffLimit was stated                          | 0                   |
| OnFailure, Always             | yes                                                      | 6                   |
| ExitCode                      | codes 128-255, signals and lost hosts; 1-127 is permanent | 6                   |

Whatever the policy says, what the next attempt would only repeat is not tried again (`status/lasting.py`). Where
retries are allowed, an attempt that the cluster disrupted (a drain, preemption, a taint) is tried again at no cost.

The gang restarts as one: the launcher of the failed attempt goes, dead workers are replaced, and after 10 s, 20 s,
40 s ... at most 6 min the next attempt starts through the barrier. On Kubernetes healthy workers stay: it is the
scheduler that gives room, and might give theirs to others. Where we give it, nobody holds room for nothing: all go
meanwhile, and when the wait is over the job asks for room again, by its old age and priority.
"""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import Final

from oarsman import names
from oarsman.backoff import Backoff
from oarsman.job.job import Job, RestartPolicy
from oarsman.job.observed import Exit, Member, Phase
from oarsman.job.state import Cause, Status
from oarsman.plan import attempts, finish
from oarsman.plan.actions import DeleteLauncher
from oarsman.plan.policies import barrier, replacement, success, suspend
from oarsman.plan.turn import Turn
from oarsman.status import causes, conditions, lasting
from oarsman.text.sentence import Text

DEFAULT_LIMIT: Final = 6
FIRST_DELAY: Final = timedelta(seconds=10)
LONGEST_DELAY: Final = timedelta(seconds=360)
# A launcher that was just created may not be visible yet; only later is it missed.
GRACE: Final = timedelta(seconds=5)
MOVE_DELAY: Final = timedelta(seconds=2)  # before a job asks for another place than the one it lost
_TAKEN_AWAY: Final = ("Evicted", "HostLost", replacement.VANISHED)  # none of the program's doing


def limit(job: Job) -> int:
    stated = job.run_policy.backoff_limit
    if stated is not None:
        return stated
    return 0 if job.launcher.restart_policy is RestartPolicy.NEVER else DEFAULT_LIMIT


def delay(failures: int) -> timedelta:
    return timedelta(seconds=Backoff(FIRST_DELAY.total_seconds(), LONGEST_DELAY.total_seconds()).after(failures))


def place_lost(turn: Turn) -> Turn:
    """A machine that it was given cannot be used, and nothing has run there: it gives all back and asks anew."""
    why, launcher, retry_at = turn.seen.place_lost, turn.seen.launcher, turn.status.retry_at
    rests = retry_at is not None and turn.now < retry_at
    if not why or rests or (launcher.phase is not Phase.PENDING if launcher else turn.open_attempt):
        return turn
    message, cause = conditions.cut(Text("placed anew: {why}", why=why)), Cause(summary=why)
    turn = attempts.close(turn, attempts.NOT_STARTED, cause=cause).become(retry_at=turn.now + MOVE_DELAY)
    turn = turn.say(names.QUEUED, True, names.REASON_NO_HOSTS, message, refresh=True)
    return turn.tell(names.REASON_NO_HOSTS, message, warning=True).again().end()


def attempt_failed(turn: Turn) -> Turn:
    """Find out whether the open attempt has failed, and write down why. Nothing is cleared away yet."""
    attempt, launcher = turn.open_attempt, turn.launcher
    if attempt is None:
        return turn
    lost = replacement.lost_workers(turn)
    if launcher is None:
        began = attempt.started or turn.now
        if turn.waits(began, GRACE):
            return turn.wake_at(began + GRACE).end()
        return _verdict(turn, causes.of_missing_launcher(turn.job, turn.seen, lost), lost)
    if launcher.phase is Phase.FAILED and launcher.reason == names.REASON_BARRIER:
        on_their_way = [w for w in turn.seen.workers if w.waits_for_room]
        if on_their_way:  # they have an address before they have all they wait for
            return _not_started(turn, Cause(summary=launcher.message, host=on_their_way[0].name))
        said = launcher.message.partition(":")[0]  # the barrier begins with the host it waited for
        return barrier.not_ready(turn, launcher.message, said if said in turn.job.hosts else launcher.name)
    if launcher.phase is Phase.FAILED and launcher.reason == names.REASON_PLACEMENT:
        wrong = success.misplaced(turn, complete=False) or launcher.message
        return finish.fail(turn, names.REASON_PLACEMENT, wrong, Cause(summary=wrong))
    if launcher.phase is Phase.PENDING and lost:
        return _not_started(turn, causes.of_lost_worker(turn.seen, lost), lost)
    if launcher.phase is Phase.FAILED:
        lost = (*lost, *replacement.lost_launcher(launcher))
        if lost and launcher.exit is None and _was_taken(turn, launcher):
            return _not_started(turn, causes.of_lost_worker(turn.seen, lost), lost)
        return _verdict(turn, causes.of_failed_launcher(turn.job, turn.seen, launcher, lost), lost)
    if lost and not turn.job.elastic:
        return _verdict(turn, causes.of_lost_worker(turn.seen, lost), lost)
    return turn


def _was_taken(turn: Turn, launcher: Member) -> bool:
    """Whether a launcher without a code of its own went before it began."""
    if not turn.seen.keeps_idle_members:
        return True
    return (launcher.disrupted or launcher.terminating) and turn.status.phase != names.RUNNING


def _not_started(turn: Turn, cause: Cause, lost: tuple[causes.Lost, ...] = ()) -> Turn:
    """A worker went while the launcher still waited for it. Nothing ran, so no retry is spent.

    Workers that end by themselves, time after time, get no more time than the start barrier gives.
    """
    *earlier, present = turn.status.attempts
    before = list(itertools.takewhile(lambda a: a.outcome == attempts.NOT_STARTED, reversed(earlier)))
    began = min((a.started for a in (present, *before) if a.started), default=turn.now)
    by_itself = bool(lost) and all(w.reason not in _TAKEN_AWAY and not w.disrupted for w in lost)
    if by_itself and turn.now >= began + turn.seen.patience:
        return barrier.not_ready(turn, cause.summary, cause.host or "")
    turn = attempts.close(turn, attempts.NOT_STARTED, cause=cause).become(cause=cause)
    if before or not turn.seen.keeps_idle_members:  # who gives its room back may get a better place
        turn = turn.become(retry_at=turn.now + delay(len(before) + 1))
    message = conditions.cut(Text("not started: {why}", why=cause.summary))
    return turn.tell(names.REASON_RESTARTING, message, warning=True).again().end()


def keep_the_delay(turn: Turn) -> Turn:
    """No delay is that long: the clock was put back, and the next attempt does not wait until it is right again."""
    retry_at = turn.status.retry_at
    if retry_at is None or retry_at <= turn.now + LONGEST_DELAY:
        return turn
    return turn.become(retry_at=turn.now + delay(max(1, attempts.failures(turn))))


def clear_away(turn: Turn) -> Turn:
    """The launcher of an attempt that is over goes before the next one can come."""
    launcher = turn.seen.launcher
    if launcher is None or launcher.terminating or turn.launcher is not None:
        return turn
    return turn.do(DeleteLauncher(launcher.attempt))


def next_attempt(_: Job, status: Status, __: datetime) -> datetime | None:
    return status.retry_at


def rest(turn: Turn) -> Turn:
    """Between two attempts nothing of a job stays on hosts: others may have its room."""
    retry_at = turn.status.retry_at
    if not gives_room_back(turn) or retry_at is None or turn.now >= retry_at:
        return turn
    return suspend.take_back(turn).wake_at(retry_at).end()


def gives_room_back(turn: Turn) -> bool:
    """Whether it is between two attempts, where these do not keep what they have."""
    return turn.status.retry_at is not None and turn.open_attempt is None and not turn.seen.keeps_idle_members


def _verdict(turn: Turn, cause: Cause, lost: tuple[causes.Lost, ...]) -> Turn:
    ended = turn.launcher
    failures = attempts.failures(turn) + 1
    permanent = _permanent(turn.job, ended.exit if ended else None, lost)
    if limit(turn.job) and any(gone.disrupted and gone.host == cause.host for gone in lost):
        return _disrupted(turn, cause)
    if permanent or failures > limit(turn.job):
        return _give_up(turn, cause, failures, lost, permanent=permanent)
    final = "" if lost else lasting.why(turn.job, turn.seen, cause)
    if final:
        why = Text("{what}; not retried: {why}", what=cause.summary, why=final)
        return finish.fail(turn, names.REASON_FAILED, conditions.failed(turn.job.key, why), cause)
    number = turn.status.attempt.number if turn.status.attempt else failures
    wait = delay(failures)
    message = conditions.restarting(number, cause.summary, int(wait.total_seconds()), limit(turn.job) + 1 - failures)
    return _again(turn, names.FAILED, cause, wait, message)


def _disrupted(turn: Turn, cause: Cause) -> Turn:
    number, wait = turn.status.attempts[-1].number, delay(attempts.in_a_row(turn, attempts.DISRUPTED) + 1)
    message = conditions.disrupted(number, cause.summary, int(wait.total_seconds()))
    return _again(turn, attempts.DISRUPTED, cause, wait, message)


def _again(turn: Turn, outcome: str, cause: Cause, wait: timedelta, message: str) -> Turn:
    ended = turn.launcher
    at = ended.finished_at if ended and ended.phase.ended else None
    turn = attempts.close(turn, outcome, at=at, cause=cause)
    turn = turn.become(cause=cause, retry_at=turn.now + wait)
    if not turn.seen.keeps_idle_members:
        turn = turn.unsay(names.RUNNING, names.REASON_RESTARTING, message)
    elif turn.status.is_true(names.RUNNING):
        # Upstream's stays True from the first start to the end or a suspension. Kueue evicts a job soon after it turns
        # False, and the workers are still up.
        turn = turn.say(names.RUNNING, True, names.REASON_RESTARTING, message, refresh=True)
    turn = turn.say(names.RESTARTING, True, names.REASON_RESTARTING, message, refresh=True)
    return turn.tell(names.REASON_RESTARTING, message, warning=True).again().end()


def _give_up(turn: Turn, cause: Cause, failures: int, lost: tuple[causes.Lost, ...], *, permanent: bool) -> Turn:
    key = turn.job.key
    if limit(turn.job) and not permanent:
        why = Text("after {count} attempts: {why}", count=failures, why=cause.summary)
        return finish.fail(turn, names.REASON_BACKOFF, conditions.failed(key, why), cause)
    reason = names.REASON_FAILED
    if cause.host is not None and any(w.host == cause.host for w in lost):
        evicted = any(w.reason == "Evicted" or w.disrupted for w in lost)
        reason = names.REASON_EVICTED if evicted else names.REASON_HOST_LOST
    return finish.fail(turn, reason, conditions.failed(key, cause.summary), cause)


def _permanent(job: Job, ended: Exit | None, lost: tuple[causes.Lost, ...]) -> bool:
    """Whether ExitCode says that trying again is of no use. A lost host is never the program's verdict."""
    if job.launcher.restart_policy is not RestartPolicy.EXIT_CODE or ended is None or lost:
        return False
    return ended.signal is None and ended.code < 128
