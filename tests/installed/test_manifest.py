"""The plain manifest on a real cluster, without Helm: what it makes, who may then do what, how kubectl shows jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from cluster.cluster import Cluster
from cluster.jobs import V1, V2BETA1, mpijob
from cluster.kubectl import Kubectl, until
from cluster.people import allowed
from cluster.places import ROOT

MANIFEST = ROOT / "deploy" / "oarsman.yaml"
NAMESPACE, DEFINITION = "mpi-operator", "mpijobs.kubeflow.org"


@dataclass(frozen=True)
class Applied:
    cluster: Cluster
    said: list[str]


@pytest.fixture(scope="module")
def applied(cluster: Cluster) -> Iterator[Applied]:
    """A cluster on which the plain manifest was applied, and nothing is of whatever was installed before."""
    without(cluster)
    try:
        yield Applied(cluster, cluster.kubectl("apply", "-f", str(MANIFEST)).stdout.splitlines())
    finally:
        cluster.kubectl("delete", "--wait=false", "--ignore-not-found", "-f", str(MANIFEST))
        without(cluster)


def without(cluster: Cluster) -> None:
    """Those who install leave the namespace and the definition behind, on purpose."""
    for kind, name in (("namespace", NAMESPACE), ("customresourcedefinition", DEFINITION)):
        cluster.delete(kind, name)
    gone = lambda: not cluster.has("namespace", NAMESPACE) and not cluster.has("customresourcedefinition", DEFINITION)  # noqa: E731
    until(gone, "namespace and definition are gone")


def test_the_plain_manifest_makes_all_it_says_and_can_be_applied_twice(applied: Applied) -> None:
    documents = [document for document in yaml.safe_load_all(MANIFEST.read_text()) if document]
    names = {f"{document['kind'].lower()}/{document['metadata']['name']}" for document in documents}
    assert {plain(line) for line in applied.said} == names
    assert all(line.endswith(" created") for line in applied.said)
    again = applied.cluster.kubectl("apply", "-f", str(MANIFEST)).stdout.splitlines()
    assert all(line.endswith(" unchanged") for line in again)
    dry = applied.cluster.kubectl("apply", "--dry-run=server", "-f", str(MANIFEST)).stdout.splitlines()
    assert all(line.endswith(" unchanged (server dry run)") for line in dry)
    until(lambda: replicas(applied.cluster) == 2, "a controller takes the Deployment up")


def plain(line: str) -> str:
    """`deployment.apps/oarsman created` without its group."""
    kind, _, name = line.split()[0].partition("/")
    return f"{kind.partition('.')[0]}/{name}"


def replicas(cluster: Cluster) -> int:
    found: dict[str, Any] = cluster.get("deployment", "oarsman", NAMESPACE)
    return int(found.get("status", {}).get("replicas", 0))


def test_whoever_may_view_or_edit_a_namespace_may_do_so_with_its_jobs(applied: Applied) -> None:
    cluster = applied.cluster
    with cluster.fresh_namespace() as namespace:
        where = f"--namespace={namespace}"
        for role in ROLES:
            cluster.kubectl(where, "create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}")

        def who_may(verb: str) -> list[str]:
            return [role for role in ROLES if allowed(cluster, role, verb, "mpijobs.kubeflow.org", namespace)]

        until(lambda: who_may("list") == ["view", "edit", "admin"], "a controller adds our roles to the cluster's")
        until(lambda: who_may("create") == ["edit", "admin"], "those who edit may submit")
        assert not allowed(cluster, "edit", "list", "mpijobs.kubeflow.org", "default")


ROLES = ("view", "edit", "admin")


def test_kubectl_shows_jobs_and_explains_them(applied: Applied) -> None:
    api = applied.cluster
    api.until_established(DEFINITION)
    with api.fresh_namespace() as namespace:
        shown_and_explained(api, namespace)


def shown_and_explained(api: Cluster, namespace: str) -> None:
    Kubectl.apply(api, mpijob("shown", "image", workers=3), namespace=namespace)  # by kubectl, which validates it, too
    where = f"--namespace={namespace}"
    until(lambda: not api.kubectl(where, "get", "mj", check=False).returncode, "kubectl knows the short name")
    (head, line) = api.kubectl(where, "get", "mj").stdout.splitlines()
    assert head.split() == ["NAME", "STATE", "WORKERS", "READY", "AGE"]
    assert line.split()[:2] == ["shown", "3"]
    assert api.kubectl(where, "get", "mj", "-o", "wide").stdout.split()[:7] == [
        "NAME",
        "STATE",
        "WORKERS",
        "READY",
        "SLOTS",
        "CAUSE",
        "AGE",
    ]
    assert "mpijob.kubeflow.org/shown" in api.kubectl(where, "get", "all", "-o", "name").stdout
    assert api.kubectl(where, "scale", "mpijob", "shown", "--replicas=2").returncode == 0
    for version in (V1, V2BETA1):
        asked = ("explain", "mpijob.spec", f"--api-version={version}")
        # The server publishes what it knows of a new kind some time after it takes the first object.
        until(lambda asked=asked: not api.kubectl(*asked, check=False).returncode, "kubectl explains MPIJobs")  # type: ignore[misc]
        assert "What to run" in api.kubectl(*asked).stdout
