"""The CustomResourceDefinition, made from the document models: `python -m oarsman.manifest.crd > FILE`.

Kubernetes wants structural schemas: no references, no `anyOf` with null, no closed mappings, a type
everywhere. One CRD serves both versions without a conversion webhook, so the API server hands an
object written in one version to readers of the other. Hence three choices: a spec keeps fields its
own version does not know, nothing is defaulted by the server (the controller fills in), and
lists of allowed words are those of both versions together.
"""

from __future__ import annotations

import sys
from typing import Any

from pydantic import BaseModel

from oarsman import names
from oarsman.manifest.crd_status import status_schema
from oarsman.manifest.document import MPIJobV1, MPIJobV2beta1
from oarsman.manifest.write import to_yaml

Schema = dict[str, Any]

_INT32, _INT64 = 2**31 - 1, 2**63 - 1
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
            "versions": [
                _version("v2beta1", MPIJobV2beta1, storage=True),
                _version("v1", MPIJobV1, storage=False),
            ],
        },
    }


def _version(name: str, model: type[BaseModel], *, storage: bool) -> dict[str, Any]:
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": _schema(model)},
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
    }


def _column(name: str, type_: str, path: str, description: str, *, priority: int = 0) -> dict[str, Any]:
    column = {"name": name, "type": type_, "jsonPath": path, "description": description}
    return {**column, "priority": priority} if priority else column


def _schema(model: type[BaseModel]) -> Schema:
    raw = model.model_json_schema(by_alias=True)
    properties = raw["properties"]
    spec = structural(properties["spec"], raw.get("$defs", {}))
    spec["x-kubernetes-preserve-unknown-fields"] = True
    _say_role_counts(spec["properties"]["mpiReplicaSpecs"]["properties"])
    _join_words(spec)
    return {
        "type": "object",
        "description": raw["description"],
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": properties["apiVersion"]["description"]},
            "kind": {"type": "string", "description": properties["kind"]["description"]},
            "metadata": {"type": "object"},  # the API server has its own schema and allows no word more
            "spec": spec,
            "status": status_schema(),
        },
    }


def _say_role_counts(roles: Schema) -> None:
    """The models leave counts to the rules, which explain; a schema can only bound them."""
    roles["Launcher"]["properties"]["replicas"].update(minimum=1, maximum=1)
    roles["Worker"]["properties"]["replicas"].update(minimum=1)
    roles["Worker"]["required"] = ["replicas", "template"]


def _join_words(spec: Schema) -> None:
    """An object stored by one version must pass when it is written back through the other."""
    managed = spec["properties"]["runPolicy"]["properties"]["managedBy"]
    managed["enum"] = ["kubeflow.org/mpi-operator", "kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"]
    for role in spec["properties"]["mpiReplicaSpecs"]["properties"].values():
        role["properties"]["restartPolicy"]["enum"] = ["Never", "OnFailure", "Always", "ExitCode"]


def structural(schema: Schema, definitions: Schema) -> Schema:
    """One schema as Kubernetes wants it: references written out, null folded in, nothing closed."""
    schema = _inlined(schema, definitions)
    result = {key: value for key, value in schema.items() if key in _KEPT}
    _fold_null(result, definitions)
    if result.get("additionalProperties") is False:
        del result["additionalProperties"]
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), dict):
            result[key] = structural(result[key], definitions)
    if "properties" in result:
        result["properties"] = {name: structural(part, definitions) for name, part in result["properties"].items()}
    _bound(result, schema)
    return dict(sorted(result.items(), key=lambda item: _ORDER.get(item[0], 9)))


_ORDER = {
    "type": 0,
    "description": 1,
    "nullable": 2,
    "format": 3,
    "enum": 4,
    "minimum": 5,
    "required": 6,
    "properties": 7,
}


def _inlined(schema: Schema, definitions: Schema) -> Schema:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target = definitions[reference.rsplit("/", 1)[-1]]
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def _fold_null(result: Schema, definitions: Schema) -> None:
    """anyOf [X, null] is X that may be null."""
    choices = result.get("anyOf")
    if choices is None or {"type": "null"} not in choices:
        return
    (only,) = [choice for choice in choices if choice != {"type": "null"}]
    del result["anyOf"]
    for key, value in structural(only, definitions).items():
        result.setdefault(key, value)
    result["nullable"] = True


def _bound(result: Schema, schema: Schema) -> None:
    """Bounds that only state the size of an integer become its format."""
    if result.get("type") != "integer":
        return
    bounds = [schema, *schema.get("anyOf", ())]
    largest = next((bound["maximum"] for bound in bounds if "maximum" in bound), None)
    if largest == _INT32:
        result["format"] = "int32"
    elif largest == _INT64:
        result["format"] = "int64"


def text() -> str:
    head = "# Generated by `python -m oarsman.manifest.crd` from src/oarsman/manifest/document.py.\n"
    return head + to_yaml([crd()])


if __name__ == "__main__":
    sys.stdout.write(text())
