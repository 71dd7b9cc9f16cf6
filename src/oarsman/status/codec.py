"""The status as Kubernetes keeps it: camelCase, RFC 3339, empty things left out.

What upstream tools read is where they expect it. Where ranks ran is written as ranges per host, since
a status with a line per rank would not fit into an object for a large job. Reading forgives: a status
written by another operator, or an older one of ours, may lack anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from oarsman.job.state import Attempt, Cause, Condition, QueuePlace, ReplicaCount, Status

Document = dict[str, Any]
_LONG_AGO: Final = datetime.fromtimestamp(0, UTC)


# -- writing ------------------------------------------------------------------------------------
def to_wire(status: Status) -> Document:
    return _without_nothing(
        {
            "phase": status.phase if status.conditions else None,  # for those who print one word
            "conditions": [_condition(c) for c in status.conditions],
            "replicaStatuses": {"Launcher": _count(status.launcher), "Worker": _count(status.worker)},
            "startTime": _time(status.start_time),
            "completionTime": _time(status.completion_time),
            "observedGeneration": status.observed_generation or None,
            "attempts": [_attempt(a) for a in status.attempts] or None,
            "cause": _cause(status.cause),
            "queue": {"position": status.queue.position, "reason": status.queue.reason} if status.queue else None,
            "timeline": {step: _time(at) for step, at in status.timeline.items()} or None,
            "placement": _placement(status.placement) or None,
            "machines": dict(status.machines) or None,
            "retryAt": _time(status.retry_at),
        }
    )


def _condition(condition: Condition) -> Document:
    return {
        "type": condition.type,
        "status": "True" if condition.status else "False",
        "reason": condition.reason,
        "message": condition.message,
        "lastUpdateTime": _time(condition.last_update_time),
        "lastTransitionTime": _time(condition.last_transition_time),
    }


def _count(count: ReplicaCount) -> Document:
    fields = {"active": count.active, "succeeded": count.succeeded, "failed": count.failed, "ready": count.ready}
    return {name: value for name, value in fields.items() if value}


def _attempt(attempt: Attempt) -> Document:
    return _without_nothing(
        {
            "number": attempt.number,
            "startedAt": _time(attempt.started_at),
            "finishedAt": _time(attempt.finished_at),
            "outcome": attempt.outcome or None,
            "cause": _cause(attempt.cause),
            "workers": attempt.workers,
            "launcher": attempt.launcher or None,
        }
    )


def _cause(cause: Cause | None) -> Document | None:
    if cause is None:
        return None
    return _without_nothing(
        {
            "summary": cause.summary,
            "rank": cause.rank,
            "host": cause.host,
            "exitCode": cause.exit_code,
            "signal": cause.signal,
            "memoryLimitHit": cause.memory_limit_hit or None,
            "lastLines": list(cause.last_lines) or None,
            "hint": cause.hint,
        }
    )


def _placement(placement: Mapping[int, str]) -> dict[str, str]:
    ranks: dict[str, list[int]] = {}
    for rank, host in sorted(placement.items()):
        ranks.setdefault(host, []).append(rank)
    return {host: _ranges(numbers) for host, numbers in ranks.items()}


def _ranges(numbers: Sequence[int]) -> str:
    """[0, 1, 2, 5] -> "0-2,5"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _time(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z") if at is not None else None


def _without_nothing(fields: Document) -> Document:
    return {name: value for name, value in fields.items() if value is not None}


# -- reading ------------------------------------------------------------------------------------
def from_wire(document: Mapping[str, Any] | None) -> Status:
    found = document or {}
    counts = found.get("replicaStatuses") or {}
    queue = found.get("queue")
    return Status(
        conditions=tuple(_read_condition(c) for c in found.get("conditions") or ()),
        launcher=_read_count(counts.get("Launcher") or {}),
        worker=_read_count(counts.get("Worker") or {}),
        start_time=_read_time(found.get("startTime")),
        completion_time=_read_time(found.get("completionTime")),
        observed_generation=found.get("observedGeneration") or 0,
        attempts=tuple(_read_attempt(a) for a in found.get("attempts") or ()),
        cause=_read_cause(found.get("cause")),
        queue=QueuePlace(position=queue["position"], reason=queue["reason"]) if queue else None,
        timeline={step: at for step, text in (found.get("timeline") or {}).items() if (at := _read_time(text))},
        placement=_read_placement(found.get("placement") or {}),
        machines=dict(found.get("machines") or {}),
        retry_at=_read_time(found.get("retryAt")),
    )


def _read_condition(found: Mapping[str, Any]) -> Condition:
    update, transition = _read_time(found.get("lastUpdateTime")), _read_time(found.get("lastTransitionTime"))
    return Condition(
        type=found["type"],
        status=found.get("status") == "True",
        reason=found.get("reason") or "",
        message=found.get("message") or "",
        last_update_time=update or transition or _LONG_AGO,
        last_transition_time=transition or update or _LONG_AGO,
    )


def _read_count(found: Mapping[str, Any]) -> ReplicaCount:
    return ReplicaCount(
        active=found.get("active") or 0,
        succeeded=found.get("succeeded") or 0,
        failed=found.get("failed") or 0,
        ready=found.get("ready") or 0,
    )


def _read_attempt(found: Mapping[str, Any]) -> Attempt:
    return Attempt(
        number=found["number"],
        started_at=_read_time(found.get("startedAt")),
        finished_at=_read_time(found.get("finishedAt")),
        outcome=found.get("outcome") or "",
        cause=_read_cause(found.get("cause")),
        workers=found.get("workers"),
        launcher=found.get("launcher") or "",
    )


def _read_cause(found: Mapping[str, Any] | None) -> Cause | None:
    if found is None:
        return None
    return Cause(
        summary=found.get("summary") or "",
        rank=found.get("rank"),
        host=found.get("host"),
        exit_code=found.get("exitCode"),
        signal=found.get("signal"),
        memory_limit_hit=bool(found.get("memoryLimitHit")),
        last_lines=tuple(found.get("lastLines") or ()),
        hint=found.get("hint"),
    )


def _read_placement(found: Mapping[str, str]) -> dict[int, str]:
    pairs = ((rank, host) for host, ranges in found.items() for rank in _read_ranges(ranges))
    return dict(sorted(pairs))


def _read_ranges(text: str) -> Iterable[int]:
    for run in text.split(","):
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _read_time(text: str | None) -> datetime | None:
    if not text:
        return None
    at = datetime.fromisoformat(text)
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
