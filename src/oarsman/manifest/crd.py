"""The CustomResourceDefinition, made from the document models: `python -m oarsman.manifest.crd > FILE`.

Kubernetes wants structural schemas: no references, no `anyOf` with null, no closed mappings, a type
everywhere. One CRD serves both versions without a conversion webhook, so the API server hands an
object written in one version to readers of the other. Hence four choices: a spec keeps fields its own version does
not know; the server notes in which version it was written; nothing else is defaulted by it (the controller fills in);
and lists of allowed words are those of both versions together.
"""

from __future__ import annotations

import sys
from dataclasses import is_dataclass
from datetime import datetime
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from oarsman import names
from oarsman.job.job import ApiVersion, ManagedBy, RestartPolicy
from oarsman.job.state import Described, ReplicaCount, Status, described
from oarsman.manifest.document import MPIJobV1, MPIJobV2beta1
from oarsman.manifest.template import REQUIRED, SHAPES, Kind, One
from oarsman.manifest.write import to_yaml

Schema = dict[str, Any]

_FORMATS = {2**31 - 1: "int32", 2**63 - 1: "int64"}
_FIRST = ("type", "description", "nullable", "format", "enum", "minimum", "required", "properties")
_KEPT = frozenset(
    {
        *("type", "description", "properties", "required", "items", "additionalProperties", "enum", "minimum"),
        *("minLength", "format", "anyOf", "nullable"),
        *("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"),
    }
)


def crd() -> dict[str, Any]:
    """The whole definition, ready to be written as YAML."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names.PLURAL}.{names.GROUP}"},
        "spec": {
            "group": names.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": names.KIND,
                "listKind": f"{names.KIND}List",
                "plural": names.PLURAL,
                "singular": names.KIND.lower(),
                "shortNames": list(names.SHORT_NAMES),
                "categories": ["all"],
            },
            "versions": [_version("v2beta1", MPIJobV2beta1, storage=True), _version("v1", MPIJobV1, storage=False)],
        },
    }


# Servers refuse the definition if versions with different schemas have the same list.
_SELECTABLE = {"v2beta1": (".status.phase", ".spec.runPolicy.suspend"), "v1": (".status.phase",)}


def _version(name: str, model: type[BaseModel], *, storage: bool) -> dict[str, Any]:
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": _schema(model, f"{names.GROUP}/{name}")},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.mpiReplicaSpecs.Worker.replicas",
                "statusReplicasPath": ".status.replicaStatuses.Worker.active",
                "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
            },
        },
        "additionalPrinterColumns": [
            _column("State", "string", ".status.phase", "The strongest condition that is true."),
            _column("Workers", "integer", ".spec.mpiReplicaSpecs.Worker.replicas", "Workers asked for."),
            _column("Ready", "integer", ".status.replicaStatuses.Worker.ready", "Workers that are ready."),
            _column("Slots", "integer", ".spec.slotsPerWorker", "Processes per worker.", priority=1),
            _column("Cause", "string", ".status.cause.summary", "Why it failed.", priority=1),
            _column("Age", "date", ".metadata.creationTimestamp", "Time since it was created."),
        ],
        "selectableFields": [{"jsonPath": path} for path in _SELECTABLE[name]],
    }


def _column(name: str, type_: str, path: str, description: str, *, priority: int = 0) -> dict[str, Any]:
    column = {"name": name, "type": type_, "jsonPath": path, "description": description}
    return {**column, "priority": priority} if priority else column


def _schema(model: type[BaseModel], version: str) -> Schema:
    raw = model.model_json_schema(by_alias=True)
    properties = raw["properties"]
    spec = structural(properties["spec"], raw.get("$defs", {}))
    spec["x-kubernetes-preserve-unknown-fields"] = True
    noted = (
        "The version the job was written in, noted by the server; a copy that kubectl prints in another one keeps it."
    )
    words = {"enum": [known.value for known in ApiVersion], "default": version}
    spec["properties"][names.WRITTEN_AS] = _text(noted, **words)
    roles = spec["properties"]["mpiReplicaSpecs"]["properties"]
    # The models leave counts to the rules, which explain; a schema can only bound them.
    roles["Launcher"]["properties"]["replicas"].update(minimum=1, maximum=1)
    roles["Worker"]["properties"]["replicas"].update(minimum=1)
    roles["Worker"]["required"] = ["replicas", "template"]
    # An object stored by one version must pass when it is written back through the other.
    managed = spec["properties"]["runPolicy"]["properties"]["managedBy"]
    managed["enum"] = [manager.value for manager in ManagedBy]
    for role in roles.values():
        role["properties"]["template"] |= _of_kind(One("template"))
        role["properties"]["restartPolicy"]["enum"] = [policy.value for policy in RestartPolicy]
    spec["x-kubernetes-validations"] = _RULES_OF_SPEC
    return {
        "type": "object",
        "description": raw["description"],
        "required": ["spec"],
        "x-kubernetes-validations": _RULES,
        "properties": {
            "apiVersion": {"type": "string", "description": properties["apiVersion"]["description"]},
            "kind": {"type": "string", "description": properties["kind"]["description"]},
            "metadata": {"type": "object"},  # the API server has its own schema and allows no word more
            "spec": spec,
            # Another operator's status may hold more; it is not ours to drop.
            "status": {**_of_class(Status), "x-kubernetes-preserve-unknown-fields": True},
        },
    }


# -- what must not be, and what must not change: the server asks these before it stores a job ----------------------
_WORKER = "self.spec.mpiReplicaSpecs.Worker"
_MEMBERS = "self.runPolicy.schedulingPolicy.minAvailable"
_RULES_OF_SPEC = [
    {
        "rule": " == ".join(
            f"(has({one}.runPolicy) && has({one}.runPolicy.managedBy) ? {one}.runPolicy.managedBy : '')"
            for one in ("self", "oldSelf")
        ),
        "message": "runPolicy.managedBy cannot be changed: two controllers would run the job",
    },
    {
        "rule": "!has(self.runPolicy) || !has(self.runPolicy.schedulingPolicy) || "
        f"!has({_MEMBERS}) || {_MEMBERS} <= 1 + "
        "(has(self.mpiReplicaSpecs.Worker) ? self.mpiReplicaSpecs.Worker.replicas : 0)",
        "message": "runPolicy.schedulingPolicy.minAvailable is more than the pods of the job, the launcher included",
    },
]
_RULES = [
    {
        "rule": f"size(self.metadata.name) + (has({_WORKER}) ? "
        f"size('-worker-') + size(string({_WORKER}.replicas - 1)) : size('-launcher')) <= 63",
        "message": "the name is too long: names of pods, such as NAME-worker-0, have at most 63 characters",
    },
]


# -- pod templates -------------------------------------------------------------------------------------------------
_OPEN: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_QUANTITY: Schema = {"x-kubernetes-int-or-string": True}
_PLAIN_KINDS: dict[Kind, Schema] = {
    "text": {"type": "string"},
    "flag": {"type": "boolean"},
    "whole": {"type": "integer", "format": "int64"},
    "mapping": {"type": "object", **_OPEN},
    "list": {"type": "array", "items": _OPEN},
    "texts": {"type": "array", "items": {"type": "string"}},
    "text map": {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
    "quantities": {"type": "object", "additionalProperties": _QUANTITY},
    "quantity": _QUANTITY,
}


def _of_kind(kind: Kind) -> Schema:
    """Null is the same as absent in a template, and a field that a later Kubernetes brings is kept."""
    if not isinstance(kind, One):
        return {**_PLAIN_KINDS[kind], "nullable": True}
    if kind.listed:
        return {"type": "array", "nullable": True, "items": _of_shape(kind.shape)}
    return {**_of_shape(kind.shape), **({} if kind.shape == "template" else {"nullable": True})}


def _of_shape(shape: str) -> Schema:
    properties = {name: _of_kind(kind) for name, kind in SHAPES[shape].items()}
    required = {"required": list(REQUIRED[shape])} if shape in REQUIRED else {}
    return {"type": "object", **required, "properties": properties, **_OPEN}


def structural(schema: Schema, definitions: Schema) -> Schema:
    """One schema as Kubernetes wants it: references written out, null folded in, nothing closed."""
    if "$ref" in schema:
        schema = {**definitions[schema["$ref"].rsplit("/", 1)[-1]], **schema}
    result = {key: value for key, value in schema.items() if key in _KEPT}
    choices = result.get("anyOf") or []
    if {"type": "null"} in choices:  # anyOf [X, null] is X that may be null
        (only,) = [choice for choice in choices if choice != {"type": "null"}]
        del result["anyOf"]
        result = {**structural(only, definitions), **result, "nullable": True}
    if result.get("additionalProperties") is False:
        del result["additionalProperties"]
    if "properties" in result:
        result["properties"] = {name: structural(part, definitions) for name, part in result["properties"].items()}
    # Bounds that only state the size of an integer become its format.
    largest = next((bound["maximum"] for bound in (schema, *schema.get("anyOf", ())) if "maximum" in bound), None)
    if result.get("type") == "integer" and largest in _FORMATS:
        result["format"] = _FORMATS[largest]
    return {key: result[key] for key in (*_FIRST, *result) if key in result}


# -- what the controller writes back, derived from `job/state.py`; upstream's names are kept -----------------------
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
        names.WRITTEN_AS: ("retryAt", _text("The API version the job was written in, whichever it is read in.")),
        names.VALID_SPEC: (
            names.WRITTEN_AS,
            {
                "type": "object",
                "description": "The spec that is carried out while the present one is not valid.",
                "x-kubernetes-preserve-unknown-fields": True,
            },
        ),
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


# -- the file ---------------------------------------------------------------------------------------------------
def text() -> str:
    head = "# Generated by `python -m oarsman.manifest.crd` from src/oarsman/manifest/document.py.\n"
    return head + to_yaml([crd()])


if __name__ == "__main__":
    sys.stdout.write(text())
