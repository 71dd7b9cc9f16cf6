"""What the guide about installing tells a reader to type works on a cluster without an operator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.cluster import Cluster
from cluster.guides import Reader, images_of, on_kube
from cluster.jobs import mpijob, submit_one
from cluster.kubectl import until
from cluster.releases import Release

GUIDE = "docs/guide/kubernetes-install.md"


@pytest.fixture
def reader(cluster: Cluster, tmp_path: Path) -> Reader:
    return Reader(cluster, "default", tmp_path)


@pytest.fixture
def release(cluster: Cluster) -> Iterator[Release]:
    """What the guide installs: a release of `default`, whose pods are in the operator's namespace."""
    found = Release(cluster)
    yield found
    Release(cluster, namespace="default").helm("uninstall", found.name, check=False)
    found.uninstall()


def run_a_job(cluster: Cluster, namespace: str) -> None:
    first = mpijob("first", cluster.images["openmpi4"], ["true"], workers=0)
    submit_one(cluster, namespace, first).wait_for("Succeeded")


def test_the_way_with_helm_installs_serves_metrics_upgrades_and_removes(
    cluster: Cluster, namespace: str, reader: Reader, release: Release
) -> None:
    try:
        reader.types(on_kube(GUIDE, "With Helm"), images_of(release))
        run_a_job(cluster, namespace)
        reader.types(on_kube(GUIDE, "Metrics"), {})
        upgrade, removal = on_kube(GUIDE, "Upgrading and removing")
        reader.types([upgrade], {})
        release.until_whole()
        reader.types([removal], {})
        until(lambda: not release.pods(), "the operator's pods are gone")
        assert cluster.get("mpijobs.v2beta1.kubeflow.org", "first", namespace)["status"]["phase"] == "Succeeded"
    finally:
        cluster.kubectl("delete", "clusterrolebinding", "oarsman-scraper", "--ignore-not-found")


def test_the_way_with_kubectl_installs_once_the_image_is_ours(
    cluster: Cluster, namespace: str, reader: Reader, release: Release
) -> None:
    try:
        reader.types(on_kube(GUIDE, "With kubectl"), images_of(release))
        release.until_whole()
        run_a_job(cluster, namespace)
    finally:
        # Not the CRD and the namespace: other tests find theirs there.
        kinds = (
            "deployments,services,serviceaccounts,roles,rolebindings,networkpolicies,clusterroles,clusterrolebindings"
        )
        chosen = ("--selector=app.kubernetes.io/name=oarsman", "--ignore-not-found")
        release.kubectl("delete", kinds, *chosen)


def test_the_way_for_some_namespaces_installs_an_operator_for_one(cluster: Cluster, reader: Reader) -> None:
    """team-a is the guide's name for it; whoever installs holds all rights, so all three blocks may be typed."""
    release = Release(cluster, namespace="team-a")
    images = " ".join(f"--set {name}" for name in _values(images_of(release)))
    ours = {"--namespace team-a --skip-crds": f"--namespace team-a --skip-crds {images}"}
    cluster.create_namespace("team-a")
    try:
        reader.types(on_kube(GUIDE, "In some namespaces only"), ours)
        release.until_whole()
        run_a_job(cluster, "team-a")
    finally:
        release.uninstall()
        roles = "app.kubernetes.io/instance=users"
        cluster.kubectl("delete", "clusterroles", f"--selector={roles}", "--ignore-not-found")
        cluster.delete_namespace("team-a")


def _values(images: dict[str, str]) -> list[str]:
    repository = images["image.repository=registry.example/team/operator"]
    return [repository, f"kubectlDelivery.image={images['registry.example/team/kubectl-delivery:0.1.0']}"]
