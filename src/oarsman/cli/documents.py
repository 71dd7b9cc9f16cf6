"""The forms for programs: a job as the MPIJob document a cluster would show, status included."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any

import click

from oarsman.cli.session import short
from oarsman.cli.text import rfc3339
from oarsman.text import sentence

if TYPE_CHECKING:
    from oarsman.service.models import JobView

_CONTROL = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # what JSON leaves, and a terminal may obey


def reference(key: str) -> str:
    """What `-o name` prints; every NAME argument takes it back."""
    return f"mpijob/{short(key)}"


def emit(value: Any, form: str) -> None:
    if form == "json":
        import json

        said = json.dumps(plain(value), indent=2, ensure_ascii=False)
        click.echo(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", said))
    else:
        import yaml

        click.echo(yaml.safe_dump(plain(value), sort_keys=False, allow_unicode=True, width=120).rstrip("\n"))


def emit_views(views: Sequence[JobView], form: str | None) -> None:
    """Jobs that were named: one is printed by itself. Without a form there is nothing to print."""
    if form is None:
        return
    if form != "name" and len(views) == 1:
        emit(views[0].document, form)
    else:
        emit_jobs([(view.summary.key, view.document) for view in views], form)


def emit_jobs(jobs: Iterable[tuple[str, Mapping[str, Any]]], form: str) -> None:
    if form == "name":
        for key, _ in jobs:
            click.echo(reference(key))
    else:
        emit_list([document for _, document in jobs], form)


def emit_list(items: Sequence[Any], form: str) -> None:
    emit({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}, form)


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
        case _ if hasattr(value, "model_dump"):  # what the service says, as REST tells it
            return plain(value.model_dump(mode="json", by_alias=True))
        case _:
            return str(value)
