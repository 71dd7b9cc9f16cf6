"""Rows of the store: which columns are read, and what becomes of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict

from oarsman.job.state import EventRecord
from oarsman.text.sentence import load

NUMBER = "(SELECT ifnull(max(number), 0) + 1 FROM runs WHERE runs.namespace = jobs.namespace AND runs.name = jobs.name)"
ALL = f"*, {NUMBER} AS run"
ALL_BUT_ENVIRONMENT = (
    "uid, namespace, name, engine, owner, folder, document, '{}' AS environment, created_at, generation,"
    f" stop_requested, deleting, finished, status, revision, {NUMBER} AS run"
)
KEPT = "uid, namespace, name, engine, owner, folder, document, created_at, generation, stop_requested, status, revision"
OF_RUN = f"{KEPT}, '{{}}' AS environment, 0 AS deleting, 1 AS finished, number AS run"
EVENT = ("first_time", "time", "severity", "reason", "message", "count")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    uid: str
    namespace: str
    name: str
    engine: str
    owner: str
    folder: str
    document: Mapping[str, Any]
    environment: Mapping[str, str]
    created_at: datetime
    generation: int
    stop_requested: bool
    deleting: bool
    finished: bool
    status: Mapping[str, Any]
    revision: int
    run: int  # which it is of those that had this name

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def identity(self) -> Mapping[str, Any]:
        """What its document does not say of the job."""
        return {name: getattr(self, name) for name in ("uid", "generation", "created_at", "namespace", "owner")}


class NewJob(TypedDict):
    uid: str
    namespace: str
    name: str
    engine: str
    owner: str
    folder: str
    document: Mapping[str, Any]
    environment: Mapping[str, str]
    now: datetime


def job_of(row: sqlite3.Row) -> StoredJob:
    values = dict(row)
    for name in ("document", "environment", "status"):
        values[name] = json.loads(values[name])
    for name in ("stop_requested", "deleting", "finished"):
        values[name] = bool(values[name])
    values["created_at"] = datetime.fromisoformat(values["created_at"])
    return StoredJob(**values)


def event_of(row: Sequence[Any]) -> EventRecord:
    values = dict(zip(EVENT, row, strict=True))
    for name in ("first_time", "time"):
        values[name] = datetime.fromisoformat(values[name])
    if values["message"].startswith('{"template": '):  # what a sentence was made of; else it was kept as it was said
        values["message"] = load(json.loads(values["message"]))
    return EventRecord(**values)


def time_text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()
