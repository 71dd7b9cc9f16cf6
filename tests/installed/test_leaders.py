"""Two replicas of the operator: whichever way the leader goes, the other takes over and no job notices.

Each way has a namespace with an operator of its own, and all are tried at the same time: nearly all of it is waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from cluster.cluster import Cluster
from cluster.crowd import Crowd, nothing_was_made_twice
from cluster.jobs import mpijob
from cluster.kubectl import until
from cluster.ledger import Ledger
from cluster.places import ROOT
from cluster.releases import Release

Way = Callable[[Release, str], None]


def kill_process(release: Release, pod: str) -> None:
    release.kill(pod)


def delete_by_force(release: Release, pod: str) -> None:
    """The API server forgets the pod at once; the process may live on for a moment and must not act any more."""
    release.kubectl("delete", "pod", pod, "--grace-period=0", "--force")


def drain(release: Release, pod: str) -> None:
    """As a node that is drained does it: the leader hands over."""
    release.kubectl("delete", "pod", pod, "--wait=false")


WAYS: tuple[Way, ...] = (kill_process, delete_by_force, drain)


@pytest.fixture(scope="module")
def tried(cluster: Cluster) -> Iterator[dict[Way, Future[Release]]]:
    """Each gives the release it was tried on, or raises what went wrong."""
    cluster.apply_file(ROOT / "deploy" / "crd")
    with ExitStack() as ending, ThreadPoolExecutor(len(WAYS)) as threads:
        releases = {way: Release(cluster, "oarsman", ending.enter_context(cluster.fresh_namespace())) for way in WAYS}
        for release in releases.values():
            ending.callback(release.uninstall)
        yield {way: threads.submit(no_job_notices, cluster, release, way) for way, release in releases.items()}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: str(way.__name__))
def test_no_job_notices_that_the_leader_goes(tried: dict[Way, Future[Release]], way: Way) -> None:
    tried[way].result()


def no_job_notices(cluster: Cluster, release: Release, way: Way) -> Release:
    """One job runs, one is just coming to life, and one is submitted while nobody leads."""
    namespace = release.namespace
    values = {"namespace": {"name": namespace}, "watchNamespaces": [namespace], "metrics": {"authentication": False}}
    release.install(values, "--skip-crds")
    leader = release.until_led()
    image, policy = cluster.images["openmpi4"], {"cleanPodPolicy": "All"}
    running = mpijob("running", image, ["sh", "-c", "until test -e /tmp/go; do sleep 0.2; done"], policy=policy)
    starting, later = (mpijob(name, image, workers=1, policy=policy) for name in ("starting", "later"))
    crowd = Crowd(cluster, namespace, [running, starting, later], at_once=1)
    with Ledger(cluster, namespace) as ledger:
        crowd.until(lambda: crowd.phases.get("running") == "Running", patience=180)
        crowd.at_once = 2
        crowd.until(lambda: len(crowd.phases) == 2, patience=180)
        way(release, leader)
        crowd.at_once = 3
        crowd.until(lambda: len(crowd.phases) == 3, patience=180)
        follower = release.until_led(other_than=leader)
        assert follower != leader
        crowd.until(lambda: crowd.ended == 2, patience=180)
        assert crowd.phases == {"running": "Running", "starting": "Succeeded", "later": "Succeeded"}
        (pod,) = launchers(cluster, namespace, "running")
        cluster.run_in(namespace, pod, "touch", "/tmp/go")
        crowd.until_ended(patience=180)
        assert set(crowd.phases.values()) == {"Succeeded"}
        nothing_was_made_twice(ledger, [running, starting, later])
    return release


def launchers(cluster: Cluster, namespace: str, job: str) -> list[str]:
    selector = f"--selector=training.kubeflow.org/job-name={job},training.kubeflow.org/job-role=launcher"
    return cluster.kubectl(
        f"--namespace={namespace}", "get", "pods", selector, "-o", "jsonpath={.items[*].metadata.name}"
    ).stdout.split()


@pytest.mark.timeout(900)
def test_a_replica_that_waits_is_ready_and_takes_no_turns(tried: dict[Way, Future[Release]]) -> None:
    release = tried[drain].result()
    release.until_whole()
    leader = release.until_led()
    others = [pod["metadata"]["name"] for pod in release.pods() if "deletionTimestamp" not in pod["metadata"]]
    others.remove(leader)
    assert others
    until(
        lambda: "mpi_operator_is_leader 1.0" in release.ask(leader, 8081, "/metrics"), "the leader says that it leads"
    )
    for other in others:
        assert release.ask(other, 8080, "/readyz").strip() == "ok"
        told = release.ask(other, 8081, "/metrics")
        assert "mpi_operator_is_leader 0.0" in told
        assert "mpi_operator_jobs_created_total 0.0" in told
