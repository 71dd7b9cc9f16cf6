"""Files that are made from others are as they would be made now."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from deploy.helm import CHART, CLUSTER_WIDE, MANIFESTS, ROOT, client, of_kind, only

PLAIN = ROOT / "deploy" / "oarsman.yaml"
CRD = ROOT / "deploy" / "crd" / "mpijobs.kubeflow.org.yaml"


def test_every_generated_file_is_fresh() -> None:
    client()  # fails with the reason if there is no Helm
    stale = [str(path.relative_to(ROOT)) for path, text in MANIFESTS["fresh"]() if path.read_text() != text]
    assert stale == [], "run `make manifests`"


def test_the_chart_has_the_definition_of_the_tree() -> None:
    assert (CHART / "crds" / CRD.name).read_bytes() == CRD.read_bytes()


@pytest.fixture(scope="module")
def plain() -> list[dict[str, object]]:
    return [document for document in yaml.load_all(PLAIN.read_text(), yaml.CSafeLoader) if document]


def test_the_plain_file_has_everything_in_an_order_that_can_be_applied(plain: list[dict[str, object]]) -> None:
    kinds = [found["kind"] for found in plain]
    assert kinds[:2] == ["CustomResourceDefinition", "Namespace"]
    assert set(kinds) - CLUSTER_WIDE == {
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "Service",
        "Deployment",
        "NetworkPolicy",
    }
    assert only(plain, "Namespace")["metadata"] == {
        "name": "mpi-operator",
        "labels": only(plain, "Deployment")["metadata"]["labels"],
    }


def test_the_plain_file_is_not_called_helms_own() -> None:
    body = PLAIN.read_text().removeprefix(MANIFESTS["HEAD"])
    assert [word for word in ("Helm", "helm.sh", "RELEASE") if word in body] == []


def test_the_plain_file_has_only_apis_that_every_kubernetes_since_1_16_has(plain: list[dict[str, object]]) -> None:
    assert {(found["apiVersion"], found["kind"]) for found in plain} == {
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("v1", "Namespace"),
        ("v1", "ServiceAccount"),
        ("v1", "Service"),
        ("apps/v1", "Deployment"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    }


def test_what_kubectl_remembers_of_the_definition_fits_into_an_annotation(plain: list[dict[str, object]]) -> None:
    (definition,) = of_kind(plain, "CustomResourceDefinition")
    assert len(json.dumps(definition)) < 256 * 1024


@pytest.mark.parametrize("path", sorted((ROOT / "deploy").rglob("*.md")), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_the_readmes_lead_somewhere(path: Path) -> None:
    targets = [link for link in re.findall(r"\]\(([^)\s#]+)\)", path.read_text()) if "://" not in link]
    assert [target for target in targets if not (path.parent / target).exists()] == []
