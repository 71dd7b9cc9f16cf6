"""The chart, rendered by the real Helm."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "chart" / "oarsman"
MANIFESTS = runpy.run_path(str(ROOT / "scripts" / "manifests.py"))

Values = dict[str, Any]
Object = dict[str, Any]

CLUSTER_WIDE = {
    "Namespace",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "PriorityClass",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
}


@cache
def client() -> str:
    try:
        return str(MANIFESTS["helm"]())
    except FileNotFoundError as error:
        pytest.fail(str(error), pytrace=False)


def helm(*arguments: str, values: Values | None = None) -> subprocess.CompletedProcess[str]:
    return _helm(arguments, json.dumps(values or {}))


@cache  # many tests look at the same answer
def _helm(arguments: tuple[str, ...], values: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HELM_", "KUBE"))}
    return subprocess.run(
        [client(), *arguments], input=values, env=environment, capture_output=True, text=True, check=False
    )


def template(values: Values | None, *more: str, release: str, namespace: str) -> subprocess.CompletedProcess[str]:
    return helm("template", release, str(CHART), "--namespace", namespace, "--values", "-", *more, values=values)


def rendered(
    values: Values | None = None, *more: str, release: str = "oarsman", namespace: str = "default"
) -> list[Object]:
    done = template(values, *more, release=release, namespace=namespace)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.load_all(done.stdout, yaml.CSafeLoader) if document]


def refusal(values: Values, *, namespace: str = "default") -> str:
    """What Helm says to values it does not take."""
    done = template(values, release="oarsman", namespace=namespace)
    assert done.returncode != 0, "Helm took it"
    return done.stderr


def of_kind(objects: Iterable[Object], *kinds: str) -> list[Object]:
    return [found for found in objects if found["kind"] in kinds]


def only(objects: Iterable[Object], kind: str) -> Object:
    (found,) = of_kind(objects, kind)
    return found


def container(objects: Iterable[Object]) -> Object:
    (found,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(found)


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from walk(part, f"{path}.{key}")
