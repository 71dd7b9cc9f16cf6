"""The policies a job carries. What each one does is decided in `plan/policies/`, one file each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum


class CleanPodPolicy(str, Enum):
    NONE = "None"
    RUNNING = "Running"
    ALL = "All"


class RestartPolicy(str, Enum):
    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    ALWAYS = "Always"
    EXIT_CODE = "ExitCode"  # 1-127 is permanent, 128-255 is worth another try


class ManagedBy(str, Enum):
    US = "kubeflow.org/mpi-operator"
    TRAINING_OPERATOR = "kubeflow.org/training-operator"  # v1's name for the same thing
    MULTIKUEUE = "kueue.x-k8s.io/multikueue"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingPolicy:
    min_available: int | None = None
    queue: str = ""
    min_resources: Mapping[str, Decimal] | None = None
    priority_class: str = ""
    schedule_timeout_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPolicy:
    clean_pod_policy: CleanPodPolicy = CleanPodPolicy.NONE
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None  # None: see plan/policies/retry.py
    suspend: bool = False
    managed_by: ManagedBy | None = None
    scheduling: SchedulingPolicy | None = None
