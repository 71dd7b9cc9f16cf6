"""The pods of a job, and how far their main container is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oarsman import names
from oarsman.job.job import Job

Pod = Mapping[str, Any]


def selector(job: Job, role: str) -> str:
    return f"{names.LABEL_JOB}={job.name},{names.LABEL_ROLE}={role}"


def attempt_of(pod: Pod) -> int:
    number = (pod["metadata"].get("annotations") or {}).get(names.ANNOTATION_ATTEMPT) or ""
    return int(number) if number.isdigit() else 1


def newest(pods: Iterable[Pod], attempt: int | None = None) -> Pod | None:
    """The launcher of that attempt, or of the newest one."""
    fitting = [pod for pod in pods if attempt in (None, attempt_of(pod))]
    return max(fitting, key=lambda pod: (attempt_of(pod), pod["metadata"]["creationTimestamp"]), default=None)


def started(pod: Pod, container: str) -> bool:
    """Whether the container has, or had, a log."""
    state = _state(pod, container)
    return "running" in state or "terminated" in state or "terminated" in _state(pod, container, "lastState")


def ended(pod: Pod, container: str) -> bool:
    """For good: nothing is written any more. A container that failed may be started again in its pod."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return True
    return "terminated" in _state(pod, container) and pod["spec"].get("restartPolicy") == "Never"


def began(pod: Pod, container: str) -> str:
    """When its log can have begun at the earliest, in UTC and to the second."""
    state = _state(pod, container)
    inner = state.get("running") or state.get("terminated") or {}
    return str(inner.get("startedAt") or pod["metadata"]["creationTimestamp"])


def _state(pod: Pod, container: str, which: str = "state") -> Mapping[str, Any]:
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if status["name"] == container:
            return status.get(which) or {}
    return {}
