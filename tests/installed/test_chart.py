"""The chart and the plain manifest on a real cluster, by the real Helm: installed, changed and taken away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from cluster.cluster import Cluster, start
from cluster.jobs import V1, V2BETA1, mpijob, submit, submit_one
from cluster.kubectl import Kubectl, until
from cluster.people import allowed, full_name
from cluster.places import ROOT
from cluster.releases import CHART, Release

MANIFEST = ROOT / "deploy" / "oarsman.yaml"
SMALL = {"replicaCount": 1}
POLICY = {"cleanPodPolicy": "All", "backoffLimit": 0}


@pytest.fixture
def release(cluster: Cluster) -> Iterator[Release]:
    """Not installed yet; taken away at the end, whatever the test has left."""
    found = Release(cluster)
    yield found
    found.uninstall()


@dataclass(frozen=True)
class Applied:
    cluster: Cluster
    said: list[str]


@pytest.fixture(scope="module")
def applied() -> Iterator[Applied]:
    """A control plane of its own on which the plain manifest was applied, and nothing else ever."""
    found = start("fresh", pods=False)
    try:
        yield Applied(found, found.apply_file(MANIFEST))
    finally:
        found.stop()


def test_helm_finds_nothing_to_complain_about(applied: Applied) -> None:
    assert "0 chart(s) failed" in Release(applied.cluster).helm("lint", "--strict", str(CHART))


def test_a_job_outlives_an_upgrade_and_the_end_of_the_release(
    cluster: Cluster, namespace: str, release: Release
) -> None:
    said = release.install(SMALL)
    assert "looks after MPIJobs in all namespaces" in said
    waiting = mpijob("patient", cluster.images["openmpi4"], ["sh", "-c", WAIT], policy=POLICY)
    job = submit_one(cluster, namespace, waiting)
    job.wait_for("Running")
    before = {pod["metadata"]["uid"] for pod in job.pods()}

    release.upgrade({"replicaCount": 2, "resources": {"requests": {"cpu": "50m"}, "limits": {"memory": "512Mi"}}})
    pods = [pod for pod in release.pods() if "deletionTimestamp" not in pod["metadata"]]
    assert [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods] == ["50m", "50m"]
    release.until_led()
    assert {pod["metadata"]["uid"] for pod in job.pods()} == before

    release.uninstall()
    assert json.loads(release.helm("list", "--output=json")) == []
    kinds = "deployments,services,serviceaccounts,roles,rolebindings,networkpolicies"
    left = release.kubectl("get", kinds, "-o", "name").split()
    assert left == ["serviceaccount/default"]
    assert "oarsman" not in cluster.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name").stdout
    assert cluster.get("crd", "mpijobs.kubeflow.org")
    assert job.status["phase"] == "Running"
    assert {pod["metadata"]["uid"] for pod in job.pods()} == before

    (launcher,) = job.pod_names("launcher")
    job.run_in(launcher, "touch", "/tmp/go")  # it ends while there is no operator
    job.until_pods(lambda pods: pods[0]["status"]["phase"] == "Succeeded", "the launcher's end", role="launcher")
    release.install(SMALL)
    job.wait_for("Succeeded")


WAIT = "until test -e /tmp/go; do sleep 0.2; done"


def test_an_operator_for_one_namespace_has_rights_in_that_one_alone(
    cluster: Cluster, namespace: str, release: Release
) -> None:
    """Jobs of both versions run to their end there; a job elsewhere is nobody's."""
    image = cluster.images["openmpi4"]
    with cluster.fresh_namespace() as elsewhere:
        cluster.apply_file(ROOT / "deploy" / "crd")
        cluster.kubectl("wait", "--for=condition=Established", "crd/mpijobs.kubeflow.org", "--timeout=180s")
        here = Release(cluster, name="team", namespace=namespace)
        there = submit_one(cluster, elsewhere, mpijob("untouched", image, workers=1))
        try:
            values = {**SMALL, "namespace": {"name": namespace}, "watchNamespaces": [namespace]}
            here.install(values, "--skip-crds")
            old = mpijob("old", image, version=V1, workers=1, policy=POLICY)
            new = mpijob("new", image, version=V2BETA1, workers=1, policy=POLICY)
            for job in submit(cluster, namespace, old, new):
                job.wait_for("Succeeded")
            assert there.status == {}
            assert there.pods() == []
            account = full_name(namespace, "team-oarsman")
            assert allowed(cluster, account, "list", "mpijobs.kubeflow.org", namespace)
            for verb, resource in ANYWHERE:
                assert not allowed(cluster, account, verb, resource, elsewhere), (verb, resource)
                assert not allowed(cluster, account, verb, resource), (verb, resource)
            assert "team" not in cluster.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name").stdout
        finally:
            here.uninstall()


ANYWHERE = [
    (verb, resource)
    for resource in (
        "mpijobs.kubeflow.org",
        "pods",
        "secrets",
        "configmaps",
        "jobs.batch",
        "leases.coordination.k8s.io",
        "namespaces",
    )
    for verb in ("get", "list", "watch", "create", "update", "delete")
]


def test_metrics_and_health_are_served_and_right(cluster: Cluster, namespace: str, release: Release) -> None:
    """Two jobs that succeed and one that fails are counted as that, by name, and forgotten when they are deleted."""
    others = ("get", "mpijobs", "--all-namespaces", "-o", "name")  # an error if nobody has brought the definition yet
    until(lambda: not cluster.kubectl(*others, check=False).stdout, "the jobs of other tests are gone")
    release.install(SMALL)
    image = cluster.images["openmpi4"]
    good = [mpijob(f"good-{number}", image, ["true"], workers=0, policy=POLICY) for number in range(2)]
    bad = mpijob("bad", image, ["false"], workers=0, policy=POLICY)
    for job, phase in zip(submit(cluster, namespace, *good, bad), ["Succeeded", "Succeeded", "Failed"], strict=True):
        job.wait_for(phase)
    pod = release.until_led()
    assert release.ask(pod, 8080, "/healthz").strip() == "ok"
    assert release.ask(pod, 8080, "/readyz").strip() == "ok"
    words = ("--restart=Never", f"--image={cluster.images['busy']}", "--", "sleep", "3600")
    cluster.kubectl(f"--namespace={namespace}", "run", "prometheus", *words)
    cluster.wait_for_pods(namespace, "prometheus", phase="Running")
    assert scraped(cluster, namespace, release)[0] == "403"
    role = ("--clusterrole=oarsman-metrics-reader", f"--serviceaccount={namespace}:default")
    cluster.kubectl("create", "clusterrolebinding", f"scraper-{namespace}", *role)
    try:
        until(lambda: scraped(cluster, namespace, release)[0] == "200", "the right has arrived")
        _counted(cluster, namespace, release)
    finally:
        cluster.kubectl("delete", "clusterrolebinding", f"scraper-{namespace}")


def scraped(cluster: Cluster, namespace: str, release: Release) -> tuple[str, str]:
    """(status, text), as a Prometheus in the cluster is told: by the name of the Service, for its own token."""
    code = (
        "import ssl, urllib.error as e, urllib.request as u\n"
        "token = open('/var/run/secrets/kubernetes.io/serviceaccount/token').read()\n"
        f"asked = u.Request('https://oarsman-metrics.{release.namespace}.svc:8081/metrics')\n"
        "asked.add_header('Authorization', 'Bearer ' + token)\n"
        "try: answer = u.urlopen(asked, timeout=20, context=ssl._create_unverified_context())\n"
        "except e.HTTPError as refusal: answer = refusal\n"
        "print(answer.status); print(answer.read().decode())"
    )
    words = ("exec", "prometheus", "--", "python3", "-c", code)
    status, _, text = cluster.kubectl(f"--namespace={namespace}", *words).stdout.partition("\n")
    return status, text


def _counted(cluster: Cluster, namespace: str, release: Release) -> None:
    told = samples(scraped(cluster, namespace, release)[1])
    assert told["mpi_operator_jobs_created_total"] == 3
    assert told["mpi_operator_jobs_successful_total"] == 2
    assert told["mpi_operator_jobs_failed_total"] == 1
    assert told["mpi_operator_is_leader"] == 1
    assert told[info("bad", namespace)] == 1
    cluster.kubectl(f"--namespace={namespace}", "delete", "mpijob", "bad")
    gone = lambda: info("bad", namespace) not in samples(scraped(cluster, namespace, release)[1])  # noqa: E731
    until(gone, "a job that was deleted is no longer among the metrics")


def info(job: str, namespace: str) -> str:
    return f'mpi_operator_job_info{{launcher="{job}-launcher",namespace="{namespace}"}}'


def samples(text: str) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


# -- without Helm, and without an operator: the definition and the plain manifest ------------------------------------
def test_the_plain_manifest_makes_all_it_says_and_can_be_applied_twice(applied: Applied) -> None:
    documents = [document for document in yaml.safe_load_all(MANIFEST.read_text()) if document]
    names = {f"{document['kind'].lower()}/{document['metadata']['name']}" for document in documents}
    assert {plain(line) for line in applied.said} == names
    assert all(line.endswith(" created") for line in applied.said)
    again = applied.cluster.apply_file(MANIFEST)
    # An older server has dropped words of the definition, so kubectl brings them again.
    as_before = (" unchanged", " configured") if applied.cluster.lenient else (" unchanged",)
    assert all(line.endswith(as_before) for line in again), again
    dry = applied.cluster.apply_file(MANIFEST, "--dry-run=server")
    assert all(line.endswith(" unchanged (server dry run)") for line in dry)
    until(lambda: replicas(applied.cluster) == 2, "a controller takes the Deployment up")


def plain(line: str) -> str:
    """`deployment.apps/oarsman created` without its group."""
    kind, _, name = line.split()[0].partition("/")
    return f"{kind.partition('.')[0]}/{name}"


def replicas(cluster: Cluster) -> int:
    found: dict[str, Any] = cluster.get("deployment", "oarsman", "mpi-operator")
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
    api.kubectl("wait", "--for=condition=Established", "crd/mpijobs.kubeflow.org", "--timeout=180s")
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
