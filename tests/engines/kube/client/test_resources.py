"""Where resources are on a server, and what all objects share."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from oarsman.engines.kube.client import PartialObject, Resource, resources
from oarsman.errors import UnsupportedError


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (resources.PODS.path(), "/api/v1/pods"),
        (resources.PODS.path("ns"), "/api/v1/namespaces/ns/pods"),
        (resources.PODS.path("ns", "a", "log"), "/api/v1/namespaces/ns/pods/a/log"),
        (resources.NODES.path("ignored", "a"), "/api/v1/nodes/a"),
        (resources.MPIJOBS.path("ns", "pi", "status"), "/apis/kubeflow.org/v2beta1/namespaces/ns/mpijobs/pi/status"),
        (
            resources.CLUSTER_ROLES.path(None, "system:node"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
        ),
        (resources.PODS.path("..", "a/b"), "/api/v1/namespaces/%2E%2E/pods/a%2Fb"),
    ],
)
def test_every_resource_has_its_place(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("v1", "Pod", resources.PODS),
        ("apps/v1", "Deployment", resources.DEPLOYMENTS),
        ("kubeflow.org/v1", "MPIJob", resources.MPIJOBS_V1),
        ("kubeflow.org/v2beta1", "MPIJob", resources.MPIJOBS),
        ("scheduling.volcano.sh/v1beta1", "PodGroup", resources.VOLCANO_POD_GROUPS),
        ("scheduling.x-k8s.io/v1alpha1", "PodGroup", resources.PLUGINS_POD_GROUPS),
    ],
)
def test_a_document_tells_its_resource(api_version: str, kind: str, expected: Resource) -> None:
    assert resources.for_document({"apiVersion": api_version, "kind": kind}) is expected
    assert expected.api_version == api_version


def test_an_unknown_document_is_refused_with_what_is_known() -> None:
    with pytest.raises(UnsupportedError, match="kind 'Gadget' with apiVersion 'v1'") as caught:
        resources.for_document({"apiVersion": "v1", "kind": "Gadget"})
    assert "MPIJob" in str(caught.value.hint)


def test_of_several_owners_one_is_the_controller() -> None:
    text = b"""{"kind": "Pod", "spec": {"much": "more"}, "metadata": {
        "name": "pi-worker-0", "namespace": "ns", "uid": "1", "resourceVersion": "7", "generation": 2,
        "creationTimestamp": "2026-01-02T03:04:05Z", "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "2"},
            {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "pi", "uid": "3", "controller": true}]}}"""
    meta = msgspec.json.decode(text, type=PartialObject).metadata
    assert meta.controller is not None
    assert (meta.controller.name, meta.controller.uid) == ("pi", "3")
    assert meta.creation_timestamp == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert meta.labels == {}


def test_what_nobody_owns_has_no_controller() -> None:
    assert msgspec.convert({"metadata": {"name": "a"}}, PartialObject).metadata.controller is None
