"""What is carried out of a job, and whether it is ours.

One whose manifest is not valid any more goes on as it last was, and does what its user still asks for.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from oarsman import names
from oarsman.job.job import Job, ManagedBy
from oarsman.job.state import Status
from oarsman.manifest import salvaged

Stored = TypeVar("Stored")


@dataclass(slots=True)
class Form(Generic[Stored]):
    """What is carried out of one version of a job."""

    version: Hashable
    job: Job
    source: Stored | None = None  # what it was read from, if this process did
    mistake: str = ""  # what is wrong with that version, where this is an earlier one


def obeying(job: Job, document: Mapping[str, Any]) -> Job:
    """Stop, suspend, deadline and time to live are those of the present document, whatever else is wrong with it."""
    policy: Mapping[str, Any] = (document.get("spec") or {}).get("runPolicy") or {}
    said = ((document.get("metadata") or {}).get("annotations") or {}).get(names.ANNOTATION_STOP, "")
    earlier = job.run_policy
    run_policy = replace(
        earlier,
        suspend=policy.get("suspend") is True,
        active_deadline_seconds=_seconds(policy.get("activeDeadlineSeconds"), earlier.active_deadline_seconds),
        ttl_seconds_after_finished=_seconds(policy.get("ttlSecondsAfterFinished"), earlier.ttl_seconds_after_finished),
    )
    return replace(job, run_policy=run_policy, annotations={**job.annotations, names.ANNOTATION_STOP: said})


def as_it_runs(document: Mapping[str, Any], status: Status) -> Job | None:
    """What a document most likely means whose last valid form nobody knows, with the workers it was launched with."""
    job, attempt = salvaged(document), status.attempt
    if job is None or job.worker is None or attempt is None or not attempt.workers:
        return job
    return replace(job, worker=replace(job.worker, replicas=attempt.workers))


def _seconds(said: Any, earlier: int | None) -> int | None:
    return said if said is None or (isinstance(said, int) and said >= 0) else earlier


def is_theirs(document: Mapping[str, Any]) -> bool:
    """Whether a job that is not valid is left to somebody else, who may make more of it."""
    manager = ((document.get("spec") or {}).get("runPolicy") or {}).get("managedBy")
    return manager is not None and manager not in (ManagedBy.US, ManagedBy.TRAINING_OPERATOR)


def still_ours(job: Job, status: Status) -> tuple[Job, bool]:
    """managedBy cannot be changed once we have taken a job up: it would be run by two."""
    if job.is_ours or status.condition(names.CREATED) is None or status.observed_generation == 0:
        return job, False
    return replace(job, run_policy=replace(job.run_policy, managed_by=None)), True
