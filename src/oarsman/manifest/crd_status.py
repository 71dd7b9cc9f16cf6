"""The schema of what the controller writes back, derived from `job/state.py`. Upstream's names are kept."""

from __future__ import annotations

from dataclasses import is_dataclass
from datetime import datetime
from typing import Any, get_args, get_origin

from oarsman.job.described import Described, described
from oarsman.job.state import ReplicaCount, Status

Schema = dict[str, Any]

# of a text; an API server compiled with a newer Go than its own takes an empty one for null
_MAY_BE_EMPTY = {"nullable": True}
_GROUPS = {"replicaStatuses": "Counts per role."}


def _text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


# What stands in a status and is nothing a job's state has: after which property, and its schema.
_MORE: dict[type, dict[str, tuple[str, Schema]]] = {
    Status: {
        "phase": ("", _text("The strongest condition that is true, in one word.")),
        "lastReconcileTime": (
            "completionTime",
            _text("Written by some other operators; accepted and not used.", format="date-time"),
        ),
        "writtenAs": ("retryAt", _text("The API version the job was written in, whichever it is read in.")),
    },
    ReplicaCount: {
        "selector": ("failed", _text("Selector that finds the pods, for whatever scales them.")),
        "labelSelector": (
            "selector",
            {
                "type": "object",
                "description": "The older form of selector; accepted and not used.",
                "x-kubernetes-preserve-unknown-fields": True,
            },
        ),
    },
}


def status_schema() -> Schema:
    # Another operator's status may hold more; it is not ours to drop.
    return {**_of_class(Status), "x-kubernetes-preserve-unknown-fields": True}


def _of_class(cls: type, description: str = "") -> Schema:
    properties: Schema = {}
    for one in described(cls):
        group, _, name = one.wire.rpartition(".")
        into = properties.setdefault(group, _mapping(_GROUPS[group], {}))["properties"] if group else properties
        into[name] = _of_field(one)
    for name, (after, schema) in _MORE.get(cls, {}).items():
        place = list(properties).index(after) + 1 if after else 0
        properties = dict([*list(properties.items())[:place], (name, schema), *list(properties.items())[place:]])
    required = [one.wire for one in described(cls) if one.says.required]
    return _mapping(description or cls.__doc__ or "", properties) | ({"required": required} if required else {})


def _mapping(description: str, properties: Schema) -> Schema:
    return {"type": "object", "description": description, "properties": properties}


def _of_field(one: Described) -> Schema:
    description, type_ = one.says.what, one.type
    if is_dataclass(type_):
        return _of_class(type_, description)  # type: ignore[arg-type]
    if type_ is int:
        return {"type": "integer", "format": f"int{one.says.bits}", "description": description}
    if one.says.words:
        return _text(description, enum=list(one.says.words))
    if type_ is bool:
        return {"type": "boolean", "description": description}
    if type_ is datetime:
        return _text(description, format="date-time")
    if type_ is str:
        return _text(description, **({} if one.says.filled else _MAY_BE_EMPTY))
    if get_origin(type_) is tuple:
        (item, _) = get_args(type_)
        items = (
            _of_class(item) if isinstance(item, type) and is_dataclass(item) else {"type": "string", **_MAY_BE_EMPTY}
        )
        keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [one.says.key]} if one.says.key else {}
        return {"type": "array", "description": description, "items": items, **keys}
    values = {"type": "string", "format": "date-time"} if get_args(type_)[1] is datetime else {"type": "string"}
    return {"type": "object", "description": description, "additionalProperties": values}
