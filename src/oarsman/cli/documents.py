"""The forms for programs: a job as the MPIJob document a cluster would show, status included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any

import click

from oarsman import names
from oarsman.cli.session import short
from oarsman.cli.times import rfc3339
from oarsman.text import sentence

if TYPE_CHECKING:
    from oarsman.backends.base import JobRecord


PREFIX = "mpijob/"


def document(record: JobRecord) -> dict[str, Any]:
    from oarsman.status.codec import to_wire

    given = dict(record.job.document)
    job = record.job
    metadata = {
        **dict(given.get("metadata") or {}),
        "name": job.name,
        "namespace": job.namespace,
        "uid": job.uid,
        "generation": job.generation,
        "resourceVersion": str(record.revision),
        "creationTimestamp": rfc3339(record.created_at),
    }
    head = {"apiVersion": job.api_version.value, "kind": names.KIND, "metadata": metadata}
    body = {name: value for name, value in given.items() if name not in (*head, "status")}
    return {**head, **body, "status": to_wire(record.status, texts=False)}


def reference(record: JobRecord) -> str:
    """What `-o name` prints; every NAME argument takes it back."""
    return PREFIX + short(record.job.key)


def emit(value: Any, form: str) -> None:
    click.echo(to_json(value) if form == "json" else to_yaml(value).rstrip("\n"))


def emit_record(record: JobRecord, form: str) -> None:
    if form == "name":
        click.echo(reference(record))
    else:
        emit(document(record), form)


def emit_records(records: Sequence[JobRecord], form: str) -> None:
    if form == "name":
        for record in records:
            click.echo(reference(record))
    else:
        items = [document(record) for record in records]
        emit({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}, form)


def to_json(value: Any) -> str:
    import json

    return json.dumps(plain(value), indent=2, ensure_ascii=False)


def to_yaml(value: Any) -> str:
    import yaml

    return yaml.safe_dump(plain(value), sort_keys=False, allow_unicode=True, width=120)


def plain(value: Any) -> Any:
    """Frozen values as dicts, lists, strings and numbers, without sharing (YAML would write anchors)."""
    match value:
        case Mapping():
            return {sentence.plain(str(key)): plain(item) for key, item in value.items()}
        case datetime():
            return rfc3339(value)
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case Enum():
            return value.value
        case str():
            return sentence.plain(value)
        case int() | float() | None:
            return value
        case Sequence() | set() | frozenset():
            return [plain(item) for item in value]
        case _:
            return str(value)
