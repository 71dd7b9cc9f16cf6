"""The chart on a real cluster, by the real Helm: installed, changed and taken away."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from cluster.cluster import Cluster
from cluster.jobs import V1, V2BETA1, mpijob, submit, submit_one
from cluster.kubectl import until
from cluster.people import allowed, full_name
from cluster.places import ROOT
from cluster.releases import CHART, Release

SMALL = {"replicaCount": 1}
POLICY = {"cleanPodPolicy": "All", "backoffLimit": 0}


@pytest.fixture
def release(cluster: Cluster) -> Iterator[Release]:
    """Not installed yet; taken away at the end, whatever the test has left."""
    found = Release(cluster)
    yield found
    found.uninstall()


def test_helm_finds_nothing_to_complain_about(cluster: Cluster) -> None:
    assert "0 chart(s) failed" in Release(cluster).helm("lint", "--strict", str(CHART))


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
    kinds = ("deployments", "services", "serviceaccounts", "roles", "rolebindings")
    left = cluster.names(*kinds, namespace=release.namespace)
    assert left == ["serviceaccounts/default"]
    assert "oarsman" not in str(cluster.names("clusterroles", "clusterrolebindings"))
    assert cluster.get("crd", "mpijobs.kubeflow.org")
    assert job.status["phase"] == "Running"
    assert {pod["metadata"]["uid"] for pod in job.pods()} == before

    (launcher,) = job.pod_names("launcher")
    job.tell(launcher, "/tmp/go")  # it ends while there is no operator
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
        cluster.kubectl("apply", "-f", str(ROOT / "deploy" / "crd"))
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
            assert "team" not in str(cluster.names("clusterroles", "clusterrolebindings"))
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
    # As a Prometheus in the cluster would: by the name of the Service.
    asked = f"http://oarsman-metrics.{release.namespace}.svc:8081/metrics"
    code = f"import urllib.request as u; print(u.urlopen('{asked}', timeout=20).read().decode())"
    words = ("--restart=Never", f"--image={cluster.images['busy']}", "--", "python3", "-c", code)
    cluster.kubectl(f"--namespace={namespace}", "run", "scrape", *words)
    cluster.wait_for_pods(namespace, "scrape", phase="Succeeded")
    told = samples(cluster.log(namespace, "scrape"))
    assert told["mpi_operator_jobs_created_total"] == 3
    assert told["mpi_operator_jobs_successful_total"] == 2
    assert told["mpi_operator_jobs_failed_total"] == 1
    assert told["mpi_operator_is_leader"] == 1
    assert told[info("bad", namespace)] == 1
    cluster.delete("mpijobs.v2beta1.kubeflow.org", "bad", namespace)
    gone = lambda: info("bad", namespace) not in samples(release.ask(pod, 8081, "/metrics"))  # noqa: E731
    until(gone, "a job that was deleted is no longer among the metrics")


def info(job: str, namespace: str) -> str:
    return f'mpi_operator_job_info{{launcher="{job}-launcher",namespace="{namespace}"}}'


def samples(text: str) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}
