"""The values: explained, and checked before anything reaches a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml
from for_every import for_every, for_every_row

from deploy.helm import CHART, MANIFESTS, Values, refusal

DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
LEAVES = [".".join(path) for path, _ in MANIFESTS["leaves"](SCHEMA)]

WRONG: list[tuple[Values, tuple[str, ...]]] = [
    # values, what the message has to name
    ({"replicas": 3}, ("replicas", "not allowed")),
    ({"image": {"repo": "x"}}, ("image", "repo is not allowed")),
    ({"image": {"repository": ""}}, ("image.repository",)),
    ({"image": {"tag": 1.2}}, ("image.tag", "Expected: string, given: number")),
    ({"image": {"digest": "sha256:abc"}}, ("image.digest", "Does not match pattern")),
    ({"image": {"digest": "latest"}}, ("image.digest", "Does not match pattern")),
    ({"image": {"repository": "a@sha256:0"}}, ("image.repository", "Does not match pattern")),
    ({"console": {"image": "a@sha256:0"}}, ("console.image", "Does not match pattern")),
    ({"kubectlDelivery": {"image": "a b"}}, ("kubectlDelivery.image", "Does not match pattern")),
    ({"metrics": {"authentication": "token"}}, ("metrics.authentication", "Expected: boolean")),
    ({"networkPolicy": {"metricsFrom": [{"namespace": "a"}]}}, ("networkPolicy.metricsFrom.0", "namespace")),
    ({"networkPolicy": {"consoleFrom": [{}]}}, ("networkPolicy.consoleFrom.0", "at least 1")),
    ({"networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1"]}}}, ("networkPolicy.apiServer.cidrs.0", "pattern")),
    ({"networkPolicy": {"apiServer": {"ports": []}}}, ("networkPolicy.apiServer.ports", "at least 1")),
    ({"image": {"pullPolicy": "Sometimes"}}, ("image.pullPolicy", '"Always", "IfNotPresent", "Never"')),
    ({"image": {"pullSecrets": ["name"]}}, ("image.pullSecrets.0", "Expected: object")),
    ({"replicaCount": "two"}, ("replicaCount", "Expected: integer")),
    ({"replicaCount": -1}, ("replicaCount", "greater than or equal to 0")),
    ({"namespace": "mpi"}, ("namespace", "Expected: object")),
    ({"namespace": {"create": "yes"}}, ("namespace.create", "Expected: boolean")),
    ({"namespace": {"name": "Not_A_Name"}}, ("namespace.name", "Does not match pattern")),
    ({"watchNamespaces": "team-a"}, ("watchNamespaces", "Expected: array")),
    ({"watchNamespaces": ["A"]}, ("watchNamespaces.0", "Does not match pattern")),
    ({"watchNamespaces": [""]}, ("watchNamespaces.0", "Does not match pattern")),
    ({"gangScheduling": True}, ("gangScheduling", "Expected: string")),
    ({"logLevel": "loud"}, ("logLevel", '"debug", "info", "warning", "error"')),
    ({"threadiness": 0}, ("threadiness", "greater than or equal to 1")),
    ({"kubeApiQps": -1}, ("kubeApiQps", "greater than or equal to 0")),
    ({"kubeApiBurst": 1.5}, ("kubeApiBurst", "Expected: integer")),
    ({"health": {"port": 70000}}, ("health.port", "less than or equal to 65535")),
    ({"metrics": {"serviceMonitor": {"interval": "often"}}}, ("metrics.serviceMonitor.interval", "pattern")),
    ({"podAnnotations": {"a": True}}, ("podAnnotations.a", "Expected: string")),
    ({"nodeSelector": {"gpu": 1}}, ("nodeSelector.gpu", "Expected: string")),
    ({"resources": {"request": {}}}, ("resources", "request is not allowed")),
    ({"extraArgs": "--a"}, ("extraArgs", "Expected: array")),
    ({"extraEnv": [{"value": "1"}]}, ("extraEnv.0", "name is required")),
    ({"tolerations": {}}, ("tolerations", "Expected: array")),
    ({"v1": {"enabled": "no"}}, ("v1.enabled", "Expected: boolean")),
]


@for_every_row(WRONG)
def test_a_wrong_value_is_refused_by_its_name(values: Values, words: tuple[str, ...]) -> None:
    message = refusal(values)
    assert "values don't meet the specifications of the schema" in message
    assert [word for word in words if word not in message] == [], message


def test_several_mistakes_are_told_at_once() -> None:
    message = refusal({"replicaCount": "two", "logLevel": "loud", "imag": {}})
    assert [word for word in ("replicaCount", "logLevel", "imag is not allowed") if word not in message] == []


def objects(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if "properties" in schema and path != ".extraEnv":
        yield path, schema
        for name, part in schema["properties"].items():
            yield from objects(part, f"{path}.{name}")


def test_no_object_of_fixed_form_takes_unknown_names() -> None:
    assert [path for path, part in objects(SCHEMA) if part.get("additionalProperties") is not False] == []


def value_at(path: str) -> Any:
    found = DEFAULTS
    for part in path.split("."):
        found = found[part]
    return found


@for_every(LEAVES)
def test_a_value_of_the_schema_has_a_default_and_a_description(path: str) -> None:
    assert value_at(path) is not None
    assert MANIFESTS["comments"]((CHART / "values.yaml").read_text())[path].endswith(".")


def test_the_schema_knows_every_default() -> None:
    def paths(value: Any, path: str = "") -> Iterator[str]:
        if path in LEAVES or not isinstance(value, dict):
            yield path
            return
        for name, part in value.items():
            yield from paths(part, f"{path}.{name}".lstrip("."))

    assert set(paths(DEFAULTS)) == set(LEAVES)


def test_the_seeds_values_are_there_with_the_seeds_defaults() -> None:
    assert DEFAULTS["namespace"] == {"create": True, "name": "mpi-operator"}
    assert {"repository", "tag"} <= DEFAULTS["image"].keys()
